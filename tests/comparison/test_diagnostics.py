"""What qualifies a layer, against sums over all pairs and items written out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from thinkalike.comparison import profile
from thinkalike.comparison.diagnostics import anisotropy, norm_ratio, share_by_position, word_positions
from thinkalike.stimuli import Stimuli

X = np.random.default_rng(0).normal(size=(40, 7)).astype(np.float32) + 1


def test_anisotropy_is_the_mean_cosine() -> None:
    expected = cosine_similarity(X.astype(float))[np.triu_indices(40, 1)].mean()
    assert anisotropy(X) == pytest.approx(expected, abs=1e-9)
    assert np.isnan(anisotropy(np.vstack([X, np.zeros(7)])))


def test_shares_by_position_are_those_of_the_total_variance() -> None:
    positions = np.arange(40) % 10
    shares = share_by_position(X, positions)
    total = ((X - X.mean(axis=0)) ** 2).sum()
    for place in range(10):
        own = sum(((X[k] - X.mean(axis=0)) ** 2).sum() for k in range(40) if positions[k] == place)
        assert shares[place] == pytest.approx(own / total, rel=1e-5)
    assert shares.sum() == pytest.approx(1.0)


def test_positions_count_the_words_before() -> None:
    words = Stimuli.from_grammar(20, seed=0)
    order = words.items.groupby("sentence", sort=False).cumcount().to_numpy()
    np.testing.assert_array_equal(word_positions(words), np.minimum(order, 9))
    assert word_positions(Stimuli(words.features)) is None


def test_the_profile_has_them_and_planted_first_words_show(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Like SmolLM2: first words twice as long, and most of the variance."""
    words = Stimuli.from_grammar(40, seed=0)
    first = word_positions(words) == 0
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(len(words), 16))
    heavy = plain + np.where(first[:, None], 14 * rng.normal(size=16) / 4, 0.0)
    made = profile({0: plain, 1: heavy}, words, n_folds=2)
    found = made.diagnostics
    assert found is not None
    assert found.first_norm is not None
    assert found.by_position is not None
    np.testing.assert_allclose(found.first_norm, [norm_ratio(plain, first), norm_ratio(heavy, first)])
    norms = np.linalg.norm(heavy, axis=1)
    assert found.first_norm[1] == pytest.approx(norms[first].mean() / norms[~first].mean(), rel=1e-5)
    assert found.by_position[1, 0] > 3 * found.by_position[0, 0]
    assert {"anisotropy", "first_norm", "first_share"} <= set(made.layer_frame())
    again = type(made).load(made.save(tmp_path / "profile")).diagnostics
    assert again is not None
    np.testing.assert_allclose(again.by_position, found.by_position)  # type: ignore[arg-type]
