"""What qualifies a layer, against sums over all pairs and items written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from thinkalike.comparison import profile
from thinkalike.comparison.diagnostics import (
    Lengths,
    anisotropy,
    norm_ratio,
    share_by_position,
    word_positions,
)
from thinkalike.comparison.profiles import LayerDiagnostics
from thinkalike.stimuli import Stimuli

# few resamples are enough here
pytestmark = pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")

X = np.random.default_rng(0).normal(size=(40, 7)).astype(np.float32) + 1


def test_anisotropy_is_the_mean_cosine() -> None:
    expected = cosine_similarity(X.astype(float))[np.triu_indices(40, 1)].mean()
    assert anisotropy(Lengths.of(X)) == pytest.approx(expected, abs=1e-9)
    assert np.isnan(anisotropy(Lengths.of(np.vstack([X, np.zeros(7)]))))


def test_shares_by_position_are_those_of_the_total_variance() -> None:
    positions = np.arange(40) % 10
    shares = share_by_position(Lengths.of(X), positions)
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
    np.testing.assert_allclose(found.first_norm, [norm_ratio(Lengths.of(X), first) for X in (plain, heavy)])
    norms = np.linalg.norm(heavy, axis=1)
    assert found.first_norm[1] == pytest.approx(norms[first].mean() / norms[~first].mean(), rel=1e-5)
    assert found.by_position[1, 0] > 3 * found.by_position[0, 0]
    assert {"anisotropy", "first_norm", "first_share"} <= set(made.layer_frame())
    again = type(made).load(made.save(tmp_path / "profile")).diagnostics
    assert again is not None
    np.testing.assert_allclose(again.by_position, found.by_position)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def first_only() -> tuple[Stimuli, np.ndarray]:
    """A world where first words lie apart, so that position matters through them alone; number for all."""
    words = Stimuli.from_grammar(60, seed=0, grammar="salle2024")
    rng = np.random.default_rng(0)
    first, plural = word_positions(words) == 0, (words.features["number"] == "plural").to_numpy()
    planted = 6 * np.outer(first, rng.normal(size=12)) + np.outer(plural, rng.normal(size=12))
    return words, planted + 0.3 * rng.normal(size=(len(words), 12))


def test_importance_without_a_position_is_that_of_the_other_words(
    first_only: tuple[Stimuli, np.ndarray],
) -> None:
    """Against profiles of the other words alone, in the same folds and with the same penalty."""
    words, vectors = first_only
    positions = word_positions(words)
    assert positions is not None
    folds = np.unique(words.items["sentence"], return_inverse=True)[1] % 3
    options: dict[str, Any] = {"alpha": 1.0, "missing": "level"}
    made = profile({0: vectors}, words, resamples=2, folds=folds, **options)
    assert made.diagnostics is not None
    without = made.diagnostics.without_position
    assert without is not None
    assert np.isnan(without[:, len(np.unique(positions)) :]).all()  # nobody stands there
    for place in (0, 1, 2):
        kept = positions != place
        alone = profile({0: vectors[kept]}, words.subset(kept), folds=folds[kept], **options)
        shared = [made.features.index(name) for name in alone.features]
        np.testing.assert_allclose(without[0, place, shared], alone.mean_importance[0], atol=1e-9)


def test_position_matters_through_first_words_alone(first_only: tuple[Stimuli, np.ndarray]) -> None:
    words, vectors = first_only
    made = profile({0: vectors}, words, resamples=2)
    shown = made.to_frame().set_index("feature")
    with_them, without = shown["importance"], shown["importance_without_first"]
    assert with_them.idxmax() == "word_position"
    assert abs(without["word_position"]) < 0.02 < 0.3 < with_them["word_position"]
    assert without.idxmax() == "number"
    frame = made.position_frame().set_index("position")
    assert frame["items"].sum() == pytest.approx(1.0)
    assert frame["variance"].sum() == pytest.approx(1.0)
    lost = 1 - np.maximum(without, 0).sum() / np.maximum(with_them, 0).sum()
    assert frame["importance"][0] == pytest.approx(lost)
    assert made.layer_frame()["first_importance"][0] == pytest.approx(lost)
    assert frame["importance"].idxmax() == 0


def test_shares_of_importance_by_hand() -> None:
    nothing = np.zeros(1)
    of = LayerDiagnostics(nothing, nothing, nothing, without_position=np.array([[[0.1, -0.2], [0.5, 0.3]]]))
    np.testing.assert_allclose(of.lost_importance(np.array([[0.3, 0.1]])), [[0.75, -1.0]])
    assert np.isnan(of.lost_importance(np.array([[0.0, -0.1]]))).all()
    assert np.isnan(LayerDiagnostics(nothing, nothing, nothing).lost_importance(np.ones((1, 2)))).all()


def test_items_that_are_no_words_have_no_positions(tmp_path) -> None:  # type: ignore[no-untyped-def]
    items = Stimuli(Stimuli.from_grammar(20, seed=0).features)
    made = profile({0: np.random.default_rng(0).normal(size=(len(items), 5))}, items, resamples=2)
    again = type(made).load(made.save(tmp_path / "profile"))
    assert again.diagnostics is not None
    assert again.diagnostics.by_position is again.diagnostics.without_position is None
    assert len(again.position_frame()) == 0
