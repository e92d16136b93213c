"""Do two matrices over the same layers tell the same story? Spearman ρ, and Mantel tests for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from thinkalike.labels import Floats, Row, span_of, systems_of

Order = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Agreement:
    """How alike two matrices order the pairs of layers (the ρ = 0.69 of Salle et al. 2024)."""

    a: str
    b: str
    """The measures"""
    rho: float
    """Spearman over all pairs of different layers"""
    p_all: float
    """Mantel: layers of one matrix permuted freely. Lenient: neighbouring layers are alike in anything"""
    p_within: float
    """Mantel: layers permuted within their own model only, so the blocks of the models stay"""
    rho_between: float
    """Spearman over the pairs of layers of different models; NaN for one model"""
    n_permutations: int


def agreement(
    a: str,
    first: Floats,
    b: str,
    second: Floats,
    rows: Sequence[Row],
    *,
    n_permutations: int = 9_999,
    seed: int = 0,
) -> Agreement:
    """Compare two matrices (n, n) over the same `rows`; pairs with a NaN in either are left out.

    The Mantel test (Mantel 1967) permutes rows and columns of one matrix together; p counts the identity as
    one draw.
    """
    valid = np.triu(np.isfinite(first) & np.isfinite(second), k=1)
    system = np.array([row[0] for row in rows])
    between = valid & (system[:, None] != system)
    rng = np.random.default_rng(seed)
    whole, by_model = (
        [np.arange(len(rows))],
        [np.arange(len(rows))[span_of(rows, s)] for s in systems_of(rows)],
    )
    return Agreement(
        a=a,
        b=b,
        rho=spearman(first[valid], second[valid]),
        p_all=mantel(first, second, valid, _orders(whole, n_permutations, rng)),
        p_within=mantel(first, second, valid, _orders(by_model, n_permutations, rng)),
        rho_between=spearman(first[between], second[between]),
        n_permutations=n_permutations,
    )


def mantel(first: Floats, second: Floats, valid: npt.NDArray[np.bool_], orders: Iterator[Order]) -> float:
    """One-sided p of the Spearman correlation of two symmetric matrices over the `valid` pairs.

    Ranks are taken once: a permutation moves pairs to pairs, so the ranks move with them.
    """
    if not valid.any():
        return float("nan")
    x, y = _standardised_ranks(first, valid), _standardised_ranks(second, valid)
    observed = float((x * y).sum())
    if not np.isfinite(observed):
        return float("nan")
    at_least, n_orders = 1, 1
    for order in orders:
        at_least += float((x * y[np.ix_(order, order)]).sum()) >= observed - 1e-9
        n_orders += 1
    return at_least / n_orders


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's ρ with ties averaged; NaN when it is undefined."""
    if len(x) < 3:
        return float("nan")
    ranks = rankdata(np.stack([x, y]), axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    norms = np.sqrt((ranks**2).sum(axis=1))
    return float(ranks[0] @ ranks[1] / norms.prod()) if norms.all() else float("nan")


def _standardised_ranks(matrix: Floats, valid: npt.NDArray[np.bool_]) -> Floats:
    """Centred, unit-norm ranks of the valid pairs, mirrored; 0 elsewhere."""
    ranks = rankdata(matrix[valid])
    ranks = ranks - ranks.mean()
    norm = np.sqrt((ranks**2).sum())
    result = np.zeros(matrix.shape)
    result[valid] = ranks / norm if norm else np.nan
    return result + result.T


def _orders(groups: Sequence[Order], n_permutations: int, rng: np.random.Generator) -> Iterator[Order]:
    """Random orders of the rows that shuffle within each group."""
    for _ in range(n_permutations):
        yield np.concatenate([rng.permutation(group) for group in groups])
