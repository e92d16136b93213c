"""Agreement of matrices: ρ by scipy; what surrogates keep; the level for unrelated trajectories."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr

from thinkalike.inference.agreement import (
    agreement,
    beside_untrained,
    spearman,
    surrogate_distances,
    trajectories,
)

ROWS = (("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1))
SIZES = (5, 5, 9)
MANY = tuple((f"m{s}", k) for s, size in enumerate(SIZES) for k in range(size))


def symmetric(seed: int, n: int = 5) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=(n, n))
    return values + values.T


def upper(matrix: np.ndarray) -> np.ndarray:
    return matrix[np.triu_indices(len(matrix), k=1)]


def walks(rng: np.random.Generator, *, uneven: bool = False, growing: bool = False) -> np.ndarray:
    """Points of three systems, each on a random walk from a start of its own."""
    found = []
    for size in SIZES:
        steps = rng.normal(size=(size, 3))
        if uneven:
            steps *= rng.gamma(1.0, size=(size, 1))
        if growing:
            steps *= np.arange(1, size + 1)[:, None] ** 3.0 / size**2
        found.append(2 * rng.normal(size=3) + steps.cumsum(axis=0))
    return np.concatenate(found)


def similarity(points: np.ndarray) -> np.ndarray:
    apart = squareform(pdist(points))
    return 1 - apart / apart.max()


def test_rho_is_scipys_over_pairs_of_different_layers() -> None:
    x, y = symmetric(0), symmetric(1)
    got = agreement("features", x, "rsa", y, ROWS, n_surrogates=9)
    assert got.rho == pytest.approx(spearmanr(upper(x), upper(y)).statistic)
    between = np.ix_(range(3), range(3, 5))
    assert got.rho_between == pytest.approx(spearmanr(x[between].ravel(), y[between].ravel()).statistic)


def test_distances_and_kernels_become_the_points_they_came_from() -> None:
    rng = np.random.default_rng(0)
    points = walks(rng)
    apart = squareform(pdist(points))
    assert squareform(pdist(trajectories(1 - apart))) == pytest.approx(apart, abs=1e-6)
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    # Of unit vectors with product s, 1 − s is half the squared distance.
    assert squareform(pdist(trajectories(unit @ unit.T))) ** 2 == pytest.approx(1 - unit @ unit.T, abs=1e-6)


def test_surrogates_keep_the_start_and_each_steps_length() -> None:
    rng = np.random.default_rng(1)
    points = walks(rng, uneven=True)
    spans = [slice(0, 5), slice(5, 10), slice(10, 19)]
    drawn = np.sqrt(np.maximum(surrogate_distances(points, spans, 20, rng), 0))
    apart = squareform(pdist(points))
    starts = [0, 5, 10]
    for one in drawn:
        assert one[np.ix_(starts, starts)] == pytest.approx(apart[np.ix_(starts, starts)], abs=1e-6)
        for span in spans:
            steps = [np.diag(m[span, span], k=1) for m in (one, apart)]
            assert steps[0] == pytest.approx(steps[1], abs=1e-6)
    assert drawn[:, 3, 8].std() > 0.1  # the rest is new


@pytest.mark.parametrize("kind", [{}, {"uneven": True}, {"growing": True}], ids=["even", "uneven", "growing"])
def test_unrelated_trajectories_agree_and_hold_the_level(kind: dict[str, bool]) -> None:
    """100 draws; the table with all worlds is in docs/certainty.md."""
    rng = np.random.default_rng(2)
    found = []
    for _ in range(100):
        x, y = (similarity(walks(rng, **kind)) for _ in range(2))
        found.append(agreement("a", x, "b", y, MANY, n_surrogates=79))
    assert np.mean([one.rho for one in found]) > 0.3  # though they have nothing to do with each other
    assert np.mean([one.expected for one in found]) == pytest.approx(
        np.mean([one.rho for one in found]), abs=0.08
    )
    assert np.mean([one.p_smooth <= 0.05 for one in found]) <= 0.11


def test_the_same_trajectories_seen_twice_agree_beyond_smoothness() -> None:
    rng = np.random.default_rng(3)
    found = []
    for _ in range(20):
        points = walks(rng)
        x, y = (similarity(points + 0.3 * rng.normal(size=points.shape)) for _ in range(2))
        found.append(agreement("a", x, "b", y, MANY, n_surrogates=79).p_smooth)
    assert np.mean(np.array(found) <= 0.05) >= 0.9


def test_missing_values_are_left_out() -> None:
    x, y = symmetric(0), symmetric(1)
    x[0, 1] = x[1, 0] = np.nan
    keep = np.isfinite(upper(x))
    got = agreement("features", x, "rsa", y, ROWS, n_surrogates=9)
    assert got.rho == pytest.approx(spearmanr(upper(x)[keep], upper(y)[keep]).statistic)
    assert 0 < got.p_smooth <= 1


def test_one_model_has_no_pairs_between_models() -> None:
    rows = [("a", k) for k in range(5)]
    assert np.isnan(
        agreement("features", symmetric(0), "rsa", symmetric(1), rows, n_surrogates=9).rho_between
    )


def test_without_steps_there_is_no_p() -> None:
    rows = [(f"m{k}", 0) for k in range(5)]
    got = agreement("features", symmetric(0), "rsa", symmetric(1), rows, n_surrogates=9)
    assert np.isfinite(got.rho)
    assert np.isnan(got.p_smooth)


def test_constant_matrices_do_not_correlate() -> None:
    assert np.isnan(spearman(np.ones(5), np.arange(5.0)))
    got = agreement("features", np.ones((5, 5)), "rsa", symmetric(1), ROWS, n_surrogates=9)
    assert np.isnan(got.rho)
    assert np.isnan(got.p_smooth)


def test_the_same_seed_gives_the_same_p() -> None:
    x, y = symmetric(0), symmetric(1)
    assert agreement("a", x, "b", y, ROWS, seed=5) == agreement("a", x, "b", y, ROWS, seed=5)


def test_untrained_copies_stand_beside_it() -> None:
    """Mean ρ over the draws, and in how many they agree as much; a draw without a matrix is left out."""
    rng = np.random.default_rng(0)
    first, second, *copies = (a + a.T for a in rng.normal(size=(8, 5, 5)))
    rows = [("one", k) for k in range(5)]
    found = agreement("a", first, "b", second, rows, n_surrogates=9)
    drawn = [(copies[0], copies[1]), (copies[2], copies[3]), (copies[4], np.full((5, 5), np.nan))]
    upper = np.triu_indices(5, k=1)
    rhos = [spearmanr(one[upper], other[upper]).statistic for one, other in drawn[:2]]
    made = beside_untrained(found, drawn)
    assert made.untrained == pytest.approx(np.mean(rhos))
    assert made.untrained_share == np.mean(np.array(rhos) >= found.rho)
    assert beside_untrained(found, drawn[2:]) == found
