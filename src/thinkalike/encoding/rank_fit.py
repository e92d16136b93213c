r"""A full W by ranks: from the least-squares W uphill in Spearman's ρ of the training pairs.

Ranks of predictions are steps, which have no slope; here they are softened, s_m = Σ_k C_k σ((p_m − p_k)/h)
over patterns m of C_m pairs, with the step σ of Epanechnikov's kernel and h a share of the spread of the
predictions. W = L Lᵀ stays positive semi-definite, and its gradient is exact, so that a quasi-Newton method
(L-BFGS) gets there in some ten steps. Nothing is drawn: the same data give the same W. Ranks do not know a
scale; slope and intercept are those of least squares on the refined predictions.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from thinkalike.encoding.designs import Design
from thinkalike.encoding.moments import Coefficients, Moments
from thinkalike.encoding.pairkernels import weighted_rank_tables
from thinkalike.encoding.scoring import PairPatterns, RankTable
from thinkalike.encoding.solvers import pack
from thinkalike.errors import InvalidInput
from thinkalike.machine import compiled
from thinkalike.pairs.distances import Target
from thinkalike.pairs.ranks import sort_distances

SOFTNESS = (0.5, 0.1)
"""h, in standard deviations of the first predictions: a smooth hill, then nearly the ranks themselves"""
MOST_STEPS = 40
MOST_PATTERNS = 4_096
START = 1e-3
"""Share of the mean eigenvalue of W that is added to all: from exactly 0 no direction leads uphill"""


def check_patterns(patterns: PairPatterns) -> None:
    """Raise where a fit by ranks cannot be made."""
    if patterns.is_sample:
        raise InvalidInput(
            f"fit='spearman' ranks all pairs, and {patterns.n_items:,} items have {patterns.n_all_pairs:,}: "
            "raise max_pairs, give fewer items, or leave fit out."
        )
    if patterns.keys is None or len(patterns.counts) > MOST_PATTERNS:
        raise InvalidInput(
            f"fit='spearman' takes at most {MOST_PATTERNS:,} patterns of differences, and the features make "
            "more: bin numeric features, choose fewer, or leave fit out."
        )


def rank_tables(patterns: PairPatterns, target: Target, within: np.ndarray) -> list[RankTable]:
    """The ranks of the pairs within each set of items, added up by pattern; one sort serves all sets.

    `within` has shape (n_sets, n_items), whether an item is in a set.
    """
    y, rounding = target.within(np.arange(patterns.n_items))
    order, stops = sort_distances(y, patterns.i, patterns.j, rounding)
    counts, ranks = np.zeros((2, len(patterns.counts), len(within)))
    spread = np.zeros(len(within))
    w = np.ascontiguousarray(within.T, dtype=float)
    weighted_rank_tables(
        patterns.i[order], patterns.j[order], patterns.ids[order], stops, w, counts, ranks, spread
    )
    return [
        RankTable(c, r, float(s))
        for c, r, s in zip(np.ascontiguousarray(counts.T), np.ascontiguousarray(ranks.T), spread, strict=True)
    ]


def refine(
    design: Design, start: Coefficients, squared: np.ndarray, table: RankTable, moments: Moments
) -> Coefficients:
    """A full W whose predictions are ranked more like the training pairs; `start` if nothing can be gained.

    Parameters
    ----------
    start : by least squares
    squared : array of shape (n_patterns, n_features), squared differences
    table, moments : of the training pairs
    """
    seen = np.flatnonzero(table.counts)
    delta, counts, ranks = np.sqrt(squared[seen]), table.counts[seen], table.ranks[seen]
    W = design.as_matrix(start.weights)
    predictions = np.einsum("mf,fg,mg->m", delta, W, delta)
    spread = np.sqrt(np.cov(predictions, aweights=counts, ddof=0)) if len(seen) > 1 else 0.0
    if not spread > 0 or table.spread <= 0:
        return start
    values, vectors = np.linalg.eigh(W / spread)  # predictions of spread 1, so that slopes have one size
    L = vectors * np.sqrt(np.maximum(values, 0.0) + START * values.mean())
    for softness in SOFTNESS:
        L = _uphill(L, delta, counts, ranks, table.spread, softness)
    return _scaled(pack(L @ L.T), moments, start)


def _uphill(
    L: np.ndarray, delta: np.ndarray, counts: np.ndarray, ranks: np.ndarray, spread: float, h: float
) -> np.ndarray:
    """From L to where ρ with ranks softened by h is highest, as far as some steps lead."""

    def descent(flat: np.ndarray) -> tuple[float, np.ndarray]:
        along = delta @ flat.reshape(L.shape)
        rho, slope = _soft_correlation((along**2).sum(axis=1), counts, ranks, spread, h)
        return -rho, -2.0 * (delta.T @ (slope[:, None] * along)).ravel()

    found = minimize(descent, L.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS})
    return np.asarray(found.x.reshape(L.shape))


def _scaled(weights: np.ndarray, moments: Moments, start: Coefficients) -> Coefficients:
    """The weights in units of the target, by least squares on their predictions."""
    n = moments.n_pairs
    mean, target_mean = moments.sums @ weights / n, moments.target_sum / n
    variance = weights @ moments.gram @ weights / n - mean**2
    covariance = weights @ moments.cross / n - mean * target_mean
    if not (variance > 0 and covariance > 0):
        return start
    slope = covariance / variance
    return Coefficients(weights * slope, float(target_mean - slope * mean))


def _soft_correlation(
    p: np.ndarray, counts: np.ndarray, ranks: np.ndarray, spread: float, h: float
) -> tuple[float, np.ndarray]:
    """ρ with softened ranks of the predictions p, and its gradient in p, both of shape (n_patterns,)."""
    order = np.argsort(p, kind="stable")
    slope = np.empty(len(p))
    sorted_slope = np.zeros(len(p))
    rho = _soft_sums(p[order], counts[order], ranks[order], spread, h, sorted_slope)
    slope[order] = sorted_slope
    return float(rho), slope


@compiled()
def _soft_sums(
    p: np.ndarray, counts: np.ndarray, ranks: np.ndarray, spread: float, h: float, slope: np.ndarray
) -> float:
    """Of predictions in rising order; only those within h of each other have a part that is not all or none.

    s has the mean 0 over pairs, because σ(u) + σ(−u) = 1.
    """
    n, total = len(p), counts.sum()
    s = np.empty(n)
    below, first = 0.0, 0  # pairs of all patterns at least h below
    for m in range(n):
        while p[first] <= p[m] - h:
            below += counts[first]
            first += 1
        own, k = below, first
        while k < n and p[k] < p[m] + h:
            u = (p[m] - p[k]) / h
            own += counts[k] * (0.5 + 0.75 * u - 0.25 * u * u * u)
            k += 1
        s[m] = own - total / 2.0
    across, square = 0.0, 0.0
    for m in range(n):
        across += ranks[m] * s[m]
        square += counts[m] * s[m] * s[m]
    if square <= 0.0:
        return 0.0
    norm = np.sqrt(spread * square)
    a = (ranks - (across / square) * counts * s) / norm
    for m in range(n):
        k = m + 1
        while k < n and p[k] < p[m] + h:
            u = (p[k] - p[m]) / h
            pull = 0.75 * (1.0 - u * u) / h * (a[m] * counts[k] - a[k] * counts[m])
            slope[m] += pull
            slope[k] -= pull
            k += 1
    return across / norm
