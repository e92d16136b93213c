"""Least squares with weights that are not negative: many small problems at once.

An active set (Lawson & Hanson 1974), begun from the signs of the unbounded solution, which are mostly the
right ones. Where columns nearly make one another up, the normal equations lose too many digits: those few
problems are solved by the spectrum of their Gram matrix.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from thinkalike.machine import compiled

OWN_SHARE = 1e-6
"""Of a column, what the others must leave unexplained for normal equations to be taken"""
ROUNDING = 1e-13
"""A slope that is smaller than this share of its terms is 0"""


def solve_nonnegative(gram: np.ndarray, cross: np.ndarray, alpha: float) -> np.ndarray:
    """Minimise wᵀGw − 2cᵀw + α‖w‖² over w ≥ 0.

    Parameters
    ----------
    gram : array of shape (n_features, n_features), positive semi-definite
    cross : array of shape (n_features,)

    Returns
    -------
    array of shape (n_features,)
    """
    weights: np.ndarray = solve_nonnegative_many(gram[None], cross[None], alpha)[0]
    return weights


def solve_nonnegative_many(grams: np.ndarray, crosses: np.ndarray, alpha: float | np.ndarray) -> np.ndarray:
    """`solve_nonnegative` for n problems, of shapes (n, F, F) and (n, F), with one α or one for each."""
    n, F = crosses.shape
    ridged = grams + np.broadcast_to(alpha, n)[:, None, None] * np.eye(F)
    weights, solved = np.zeros((n, F)), np.zeros(n, dtype=np.bool_)
    _by_active_sets(ridged, np.ascontiguousarray(crosses), weights, solved)
    for k in np.flatnonzero(~solved):
        weights[k] = _by_spectrum(ridged[k], crosses[k])
    return weights


def _by_spectrum(ridged: np.ndarray, cross: np.ndarray) -> np.ndarray:
    eigenvalues, vectors = np.linalg.eigh(ridged)
    kept = eigenvalues > eigenvalues[-1] * len(cross) * np.finfo(float).eps
    if not kept.any():
        return np.zeros(len(cross))
    root = np.sqrt(eigenvalues[kept])
    return nnls(root[:, None] * vectors[:, kept].T, (vectors[:, kept].T @ cross) / root)[0]


@compiled(nogil=True)
def _by_active_sets(H: np.ndarray, c: np.ndarray, weights: np.ndarray, solved: np.ndarray) -> None:
    for k in range(len(H)):
        solved[k] = _active_set(H[k], c[k], weights[k])


@compiled(nogil=True)
def _active_set(H: np.ndarray, c: np.ndarray, w: np.ndarray) -> bool:
    """Minimise wᵀHw − 2cᵀw over w ≥ 0, into w, which is 0; False where that cannot be told."""
    F = len(c)
    free, found = np.ones(F, dtype=np.bool_), np.zeros(F)
    if not _solve_among(H, c, free, found):
        return False
    free[:] = found > 0
    for _ in range(3 * F):
        while True:  # go towards the solution among the free, and bind what reaches 0 first
            if not _solve_among(H, c, free, found):
                return False
            share, first = 1.0, -1
            for f in range(F):
                if free[f] and found[f] < 0:
                    own = w[f] / (w[f] - found[f])
                    if own < share:
                        share, first = own, f
            if first < 0:
                w[:] = found
                break
            for f in range(F):
                w[f] += share * (found[f] - w[f])
                if f == first or (found[f] < 0 and w[f] <= 0):
                    w[f], free[f] = 0.0, False
        steepest, at = 0.0, -1  # of the bound, which to set free
        for f in range(F):
            slope, size = c[f], abs(c[f])
            for g in range(F):
                slope -= H[f, g] * w[g]
                size += abs(H[f, g] * w[g])
            if not free[f] and slope > ROUNDING * size and slope / np.sqrt(H[f, f]) > steepest:
                steepest, at = slope / np.sqrt(H[f, f]), f
        if at < 0:
            return True
        free[at] = True
    return False


@compiled(nogil=True)
def _solve_among(H: np.ndarray, c: np.ndarray, free: np.ndarray, out: np.ndarray) -> bool:
    """Hw = c among the free entries, 0 elsewhere, by Cholesky's factors; False where H is nearly singular."""
    some = np.flatnonzero(free)
    m = len(some)
    L, z = np.empty((m, m)), np.empty(m)
    for a in range(m):
        for b in range(a + 1):
            left = H[some[a], some[b]]
            for k in range(b):
                left -= L[a, k] * L[b, k]
            if a > b:
                L[a, b] = left / L[b, b]
            elif left > OWN_SHARE * H[some[a], some[a]]:
                L[a, a] = np.sqrt(left)
            else:
                return False
    out[:] = 0.0
    for a in range(m):
        z[a] = c[some[a]]
        for k in range(a):
            z[a] -= L[a, k] * z[k]
        z[a] /= L[a, a]
    for a in range(m - 1, -1, -1):
        for k in range(a + 1, m):
            z[a] -= L[k, a] * z[k]
        z[a] /= L[a, a]
        out[some[a]] = z[a]
    return True
