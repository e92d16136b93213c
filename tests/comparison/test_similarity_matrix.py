"""The matrices: scipy pair by pair, labels, and what cannot be compared."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import multivariate_normal, spearmanr, weightedtau
from scipy.stats import t as student

from tests.planted import replicates
from thinkalike.activations import Activations
from thinkalike.comparison import compare
from thinkalike.comparison.cautions import CautionWarning
from thinkalike.comparison.feature_similarity import shared_features
from thinkalike.comparison.layer_similarity import similarity
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.similarity_matrix import SimilarityMatrix
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.stimuli import Stimuli

Make = Callable[..., Profile]
A = [0.3, 0.02, 0.1, 0.5, 0.05, 0.01, 0.2, 0.0]
B = [0.02, 0.3, 0.2, 0.01, 0.4, 0.1, 0.05, 0.15]


@pytest.fixture
def pair(make_profile: Make) -> list[Profile]:
    return [make_profile("a", A, n_layers=3, seed=1), make_profile("b", B, n_layers=2, seed=2)]


def activations(system: str, seed: int, n_items: int = 30) -> Activations:
    rng = np.random.default_rng(seed)
    return Activations.from_arrays({k: rng.normal(size=(n_items, 5 + k)) for k in range(2)}, system=system)


def test_by_features_is_scipys_weighted_tau_of_mean_importances(pair: list[Profile]) -> None:
    matrix = similarity(pair)
    profiles = np.concatenate([p.importance.mean(axis=1) for p in pair])
    expected = [[weightedtau(x, y).statistic for y in profiles] for x in profiles]
    np.testing.assert_allclose(matrix.values, expected, atol=1e-12)
    assert matrix.rows == (("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1))
    assert matrix.systems == ("a", "b")
    assert matrix["a", 1, "b", 0] == pytest.approx(weightedtau(profiles[1], profiles[3]).statistic)
    np.testing.assert_array_equal(matrix.block("a", "b"), matrix.values[:3, 3:])
    assert [(t.a, t.b) for t in matrix.blocks] == [("a", "a"), ("a", "b"), ("b", "b")]
    assert matrix.block_test("b", "a") is matrix.blocks[1]
    assert repr(matrix) == "SimilarityMatrix(features: 5 layers of a, b)"


def test_by_rsa_is_spearman_of_distances() -> None:
    systems = [activations("a", 0), activations("b", 1)]
    matrix = similarity(systems, measure="rsa")
    stack = np.stack([pdist(s[layer]) for s in systems for layer in s.layers], axis=1)
    np.testing.assert_allclose(matrix.values, spearmanr(stack).statistic, atol=1e-5)
    assert matrix.settings["n_pairs"] == 30 * 29 // 2
    assert matrix.p_block is None


def test_any_measure_of_the_table() -> None:
    systems = [activations("a", 0), activations("b", 1)]
    similarities, distances = (similarity(systems, measure=m) for m in ("cka", "procrustes"))
    assert (similarities.kind, distances.kind) == ("similarity", "distance")
    np.testing.assert_allclose(np.diag(similarities.values), 1.0)
    np.testing.assert_array_equal(distances.dissimilarities(), distances.values)
    np.testing.assert_array_equal(similarities.dissimilarities(), 1.0 - similarities.values)


def test_a_function_is_a_measure_and_a_mapping_names_the_systems() -> None:
    def first_units(X: np.ndarray, Y: np.ndarray) -> float:
        return float(np.corrcoef(X[:, 0], Y[:, 0])[0, 1])

    a, b = activations("a", 0), activations("b", 1)
    matrix = similarity({"one": dict(a), "two": b}, measure=first_units)
    assert matrix.rows == (("one", 0), ("one", 1), ("two", 0), ("two", 1))
    expected = np.corrcoef([system[layer][:, 0] for system in (a, b) for layer in system])
    np.testing.assert_allclose(matrix.values, expected, atol=1e-6)
    table = pd.DataFrame({name: np.arange(30) // k % 2 for name, k in (("x", 1), ("y", 3), ("z", 9))})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CautionWarning)  # the systems are noise
        compared = compare([a, b], Stimuli.from_table(table), measures=first_units, resamples=0)
    np.testing.assert_allclose(compared.matrices["first_units"].values, expected, atol=1e-6)


def test_the_frame_is_tidy(pair: list[Profile]) -> None:
    matrix = similarity(pair)
    frame = matrix.to_frame()
    assert list(frame.columns) == ["system_a", "layer_a", "system_b", "layer_b", "value", "p_block"]
    row = frame[
        (frame.system_a == "a") & (frame.layer_a == 2) & (frame.system_b == "b") & (frame.layer_b == 1)
    ]
    assert row["value"].item() == matrix.values[2, 4]
    assert "b:1" in matrix._repr_html_()


def test_a_feature_without_importance_is_left_out_everywhere(pair: list[Profile]) -> None:
    importance = pair[1].importance.copy()
    importance[0, :, 4] = np.nan  # one level in every fold
    importance[0, 0, 2] = np.nan  # one level in one fold: the mean of the others stands
    pair[1] = replace(pair[1], importance=importance)
    kept = shared_features(pair)
    assert "tense" not in kept
    assert "number" in kept
    rest = [k for k in range(8) if k != 4]
    expected = weightedtau(
        pair[0].importance.mean(axis=1)[0][rest], np.nanmean(importance[0][:, rest], axis=0)
    )
    assert similarity(pair)["a", 0, "b", 0] == pytest.approx(expected.statistic)


def resampled(pair: list[Profile], noise: float = 0.05) -> list[Profile]:
    return [replace(p, replicates=replicates(p, noise=noise, seed=k)) for k, p in enumerate(pair)]


def with_other_noise(made: list[Profile], n: int = 1500) -> list[list[np.ndarray]]:
    """Importances of each system with normal noise, 0.6 times that of the jackknife, drawn by scipy."""
    without = np.concatenate([p.replicates.importance for p in made], axis=1)  # type: ignore[union-attr]
    value = np.concatenate([p.mean_importance for p in made])
    covariance = 0.6**2 * 9 * np.cov(without.reshape(20, -1), rowvar=False, ddof=0)
    noise = multivariate_normal(np.zeros(len(covariance)), covariance, allow_singular=True)
    drawn = value + noise.rvs(n, random_state=1).reshape(n, *value.shape)
    ends = np.cumsum([len(p.layers) for p in made])[:-1]
    return [np.split(one, ends) for one in drawn]


def block_mean(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean([weightedtau(one, two).statistic for one in x for two in y]))


def reach_of(values: list[float]) -> float:
    """What noise changes, as for a whole step, times Student's quantile for ten parts."""
    return float(student.ppf(0.975, 9) * np.std(values) / 0.6)


AS_DRAWN = 0.25
"""How far the size of changes in 100 draws may be from that in 1500 (three standard errors)"""


def test_ranges_are_what_noise_of_the_sentences_changes(pair: list[Profile]) -> None:
    made = resampled(pair, noise=0.02)
    matrix = similarity(made)
    taus = [weightedtau(a[1], b[0]).statistic for a, b in with_other_noise(made)]
    assert matrix.low is not None
    assert matrix.high is not None
    value, reach = matrix.values[1, 3], reach_of(taus)
    assert value - matrix.low[1, 3] == pytest.approx(reach, rel=AS_DRAWN)
    assert matrix.high[1, 3] == pytest.approx(min(1, value + value - matrix.low[1, 3]))
    assert similarity([made[0], pair[1]]).low is None  # one of them has no replicates


def test_the_mean_of_a_block_has_the_range_of_its_mean(pair: list[Profile]) -> None:
    made = resampled(pair, noise=0.02)
    blocks = {(b.a, b.b): b for b in similarity(made).blocks}
    drawn = with_other_noise(made, 400)
    between = [block_mean(a, b) for a, b in drawn]
    within = [
        float(np.mean([weightedtau(*two).statistic for two in itertools.combinations(a, 2)]))
        for a, _ in drawn
    ]
    for names, means in ((("a", "b"), between), (("a", "a"), within)):
        block = blocks[names]
        assert block.mean - block.low == pytest.approx(reach_of(means), rel=AS_DRAWN)
    assert np.isnan(similarity(pair).blocks[0].low)


def test_how_far_others_stay_behind_the_most_alike_is_paired(make_profile: Make, pair: list[Profile]) -> None:
    """Both blocks have the same noise: what they share cancels in the difference."""
    three = resampled([*pair, make_profile("c", A, n_layers=2, seed=3)], noise=0.03)
    blocks = {(t.a, t.b): t for t in similarity(three).blocks}
    best, other = blocks["a", "c"], blocks["a", "b"]
    assert np.isnan(best.behind_low)
    differences = [block_mean(a, c) - block_mean(a, b) for a, b, c in with_other_noise(three, 400)]
    behind = best.mean - other.mean
    reach = reach_of(differences)
    assert behind - other.behind_low == pytest.approx(reach, rel=AS_DRAWN)
    assert other.behind_high - behind == pytest.approx(behind - other.behind_low)
    assert other.is_tied == (other.behind_low <= 0)


def test_every_tau_stands_beside_its_ceiling(pair: list[Profile]) -> None:
    made = resampled(pair)
    matrix = similarity(made)
    halves = made[0].replicates.halves  # type: ignore[union-attr]
    r = np.mean([weightedtau(one[1], two[1]).statistic for one, two in halves])
    assert made[0].reliability[1] == pytest.approx(2 * r / (1 + r))
    assert matrix.ceiling is not None
    assert matrix.ceiling[1, 3] == pytest.approx(np.sqrt(made[0].reliability[1] * made[1].reliability[0]))
    block = matrix.block_test("a", "b")
    assert block is not None
    assert block.ceiling == pytest.approx(matrix.ceiling[:3, 3:].mean())
    assert block.disattenuated == pytest.approx(block.mean / block.ceiling)
    assert similarity(pair).ceiling is None


def test_one_system_against_itself(pair: list[Profile]) -> None:
    assert similarity(pair[:1]).values.shape == (3, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stimuli_digest": "e" * 64}, "a and b were shown different stimuli"),
        ({"settings": {"preset": "salle2024"}}, r"different settings \(preset: 'default' and 'salle2024'\)"),
        ({"features": tuple("ABCDEFGH")}, "a and b are profiled on different features"),
        ({"system": "a"}, "a comes twice"),
    ],
)
def test_profiles_that_cannot_be_compared(
    pair: list[Profile], change: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        similarity([pair[0], replace(pair[1], **change)])  # type: ignore[arg-type]


def test_bad_input(pair: list[Profile]) -> None:
    with pytest.raises(InvalidInput, match="There are no systems"):
        similarity([])
    with pytest.raises(InvalidInput, match="compares Activations, not Profile: give activations"):
        similarity(pair, measure="rsa")
    with pytest.raises(InvalidInput, match=r"compares Profile, not Activations: make one with ta\.profile"):
        similarity([activations("a", 0)])
    with pytest.raises(UnknownName, match="There is no measure 'ckaa'"):
        similarity([activations("a", 0), activations("b", 1)], measure="ckaa")
    with pytest.raises(InvalidInput, match="a and b were shown different stimuli"):
        similarity([activations("a", 0), activations("b", 1, n_items=20)], measure="rsa")
    with pytest.raises(InvalidInput, match="so it makes no matrix over layers"):
        similarity([activations("a", 0), activations("b", 1)], measure="dsa")
    matrix = similarity(pair)
    with pytest.raises(UnknownName, match="There is no system 'c'"):
        matrix.block("c", "a")
    with pytest.raises(UnknownName, match="There is no layer '9' in a"):
        matrix["a", 9, "b", 0]
    with pytest.raises(InvalidInput, match=r"values of a rsa matrix has shape \(2, 2\), not \(1, 1\)"):
        SimilarityMatrix("rsa", (("a", 0),), np.ones((2, 2)))
    only = [replace(p, importance=np.where(np.arange(8) < 1, p.importance, np.nan)) for p in pair]
    with pytest.raises(InvalidInput, match="at least two features with an importance; there are 1 of 8"):
        similarity(only)


def test_a_layer_that_ranks_nothing_is_in_no_mean_and_in_no_range(pair: list[Profile]) -> None:
    importance = pair[0].importance.copy()
    importance[1] = 0.0  # every feature alike: τ_w is not known
    flat = [replace(pair[0], importance=importance), pair[1]]
    made = resampled(flat, noise=0.02)
    matrix = similarity(made)
    assert matrix.low is not None
    assert np.isnan(matrix.low[1]).all()
    block = matrix.block_test("a", "b")
    assert block is not None
    without = replace(
        made[0],
        layers=(0, 2),
        importance=importance[[0, 2]],
        scores=made[0].scores[[0, 2]],
        strengths=None,
        replicates=replace(
            made[0].replicates,
            importance=made[0].replicates.importance[:, [0, 2]],  # type: ignore[union-attr]
            scores=made[0].replicates.scores[:, [0, 2]],  # type: ignore[union-attr]
            halves=made[0].replicates.halves[:, :, [0, 2]],  # type: ignore[union-attr]
        ),
    )
    same = similarity([without, replace(made[1], strengths=None)]).block_test("a", "b")
    assert same is not None
    assert (block.mean, block.low) == pytest.approx((same.mean, same.low))
