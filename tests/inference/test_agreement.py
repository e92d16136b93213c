"""Agreement of matrices: ρ by scipy, Mantel p-values by brute force over all permutations."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import kstest, spearmanr

from thinkalike.inference.agreement import agreement, mantel, spearman

ROWS = (("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1))


def symmetric(seed: int, n: int = 5) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=(n, n))
    return values + values.T


def upper(matrix: np.ndarray) -> np.ndarray:
    return matrix[np.triu_indices(len(matrix), k=1)]


def test_rho_is_scipys_over_pairs_of_different_layers() -> None:
    x, y = symmetric(0), symmetric(1)
    got = agreement("features", x, "rsa", y, ROWS, n_permutations=9)
    assert got.rho == pytest.approx(spearmanr(upper(x), upper(y)).statistic)
    between = np.ix_(range(3), range(3, 5))
    assert got.rho_between == pytest.approx(spearmanr(x[between].ravel(), y[between].ravel()).statistic)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_mantel_is_the_share_of_permutations_that_agree_as_much(seed: int) -> None:
    x, y = symmetric(seed), symmetric(seed + 10)
    orders = [np.array(p) for p in permutations(range(5))]
    null = np.array([spearmanr(upper(x), upper(y[np.ix_(p, p)])).statistic for p in orders])
    got = mantel(x, y, np.triu(np.ones((5, 5), dtype=bool), k=1), iter(orders[1:]))
    assert got == pytest.approx((null >= null[0] - 1e-9).mean())


def test_permutations_within_models_keep_the_blocks() -> None:
    """Matrices that agree only in their blocks: the free test finds it, the one within models does not."""
    rows = tuple((s, k) for s in "ab" for k in range(8))
    block = np.kron(np.eye(2), np.ones((8, 8)))
    free, within = [], []
    for seed in range(30):
        x, y = (block + 0.1 * symmetric(s, 16) for s in (seed, seed + 100))
        got = agreement("features", x, "rsa", y, rows, n_permutations=199)
        free.append(got.p_all)
        within.append(got.p_within)
    assert max(free) < 0.01
    assert kstest(within, "uniform").pvalue > 0.01


def test_p_values_are_uniform_without_agreement() -> None:
    results = [
        agreement("a", symmetric(k, 8), "b", symmetric(k + 999, 8), ROWS_8, n_permutations=99)
        for k in range(150)
    ]
    assert kstest([r.p_all for r in results], "uniform").pvalue > 0.01
    assert kstest([r.p_within for r in results], "uniform").pvalue > 0.01


ROWS_8 = tuple((s, k) for s in "ab" for k in range(4))


def test_missing_values_are_left_out() -> None:
    x, y = symmetric(0), symmetric(1)
    x[0, 1] = x[1, 0] = np.nan
    keep = np.isfinite(upper(x))
    got = agreement("features", x, "rsa", y, ROWS, n_permutations=9)
    assert got.rho == pytest.approx(spearmanr(upper(x)[keep], upper(y)[keep]).statistic)


def test_one_model_has_no_pairs_between_models() -> None:
    got = agreement(
        "features", symmetric(0), "rsa", symmetric(1), [("a", k) for k in range(5)], n_permutations=9
    )
    assert np.isnan(got.rho_between)


def test_constant_matrices_do_not_correlate() -> None:
    assert np.isnan(spearman(np.ones(5), np.arange(5.0)))
    got = agreement("features", np.ones((5, 5)), "rsa", symmetric(1), ROWS, n_permutations=9)
    assert np.isnan(got.rho)
    assert np.isnan(got.p_all)


def test_the_same_seed_gives_the_same_p() -> None:
    x, y = symmetric(0), symmetric(1)
    assert agreement("a", x, "b", y, ROWS, seed=5) == agreement("a", x, "b", y, ROWS, seed=5)
