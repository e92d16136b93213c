"""Least squares under the constraint of W: no weight below 0 (diagonal), positive semi-definite (full).

*Without negative weights*, many small problems at once: an active set (Lawson & Hanson 1974), begun from the
signs of the unbounded solution, which are mostly the right ones. Where columns nearly make one another up,
the normal equations lose too many digits: those few problems are solved by the spectrum of their Gram matrix.

*Positive semi-definite*, one large problem, its Gram matrix taken apart once for all α: W is a vector
v = svec(W), its upper triangle with the off-diagonal times √2, so that the nearest matrix without negative
eigenvalues is the nearest point. Alternating directions (ADMM) take W near the best in many cheap steps, each
a product with the spectrum of G + αI and one projection; semismooth Newton steps finish, and if they do not,
more of the former follow.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from thinkalike.machine import compiled

OWN_SHARE = 1e-6
"""Of a column, what the others must leave unexplained for normal equations to be taken"""
ROUNDING = 1e-13
"""A slope that is smaller than this share of its terms is 0"""

ROOT_HALF = np.sqrt(0.5)
"""By which entries of svec(W) off the diagonal are those of W"""
PSD_TOLERANCE = 1e-10
PSD_MAX_ITERATIONS = 50_000
FIRST_ITERATIONS = 400
"""Of ADMM before Newton's steps are tried; twice as many each time after"""
NEAR = 1e-3
"""The residual from which Newton's steps are tried first"""
NEWTON_STEPS = 40
NEWTON_TOLERANCE = 1e-14
"""Where α alone holds W, along directions that the data do not tell, what is left counts most"""
RELAXATION = 1.6
"""Of the steps of ADMM"""
SMALLEST_SIZE = 1e-3  # of W, for residuals relative to it: the best W can be 0, and c is of size 1


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


def solve_psd(gram: np.ndarray, cross: np.ndarray, alpha: float) -> np.ndarray:
    """Minimise vᵀGv − 2cᵀv + α‖v‖² over v = svec(W), W symmetric positive semi-definite.

    svec takes the upper triangle row by row, with the off-diagonal times √2, so that ‖v‖ is the Frobenius
    norm of W and clipping the eigenvalues of W is the projection. Alternating directions (ADMM; Boyd et al.
    2011) with the step adapted to the residuals come near; semismooth Newton steps finish, for ADMM crawls in
    directions that the data do not tell, where only a small α does.

    Parameters
    ----------
    gram : array of shape (F(F + 1)/2, F(F + 1)/2)
    cross : array of shape (F(F + 1)/2,)

    Returns
    -------
    array of shape (F(F + 1)/2,)
    """
    return solve_psd_each(gram, cross, [alpha])[0]


def solve_psd_each(gram: np.ndarray, cross: np.ndarray, alphas: Sequence[float]) -> list[np.ndarray]:
    """`solve_psd` for several penalties, the Gram matrix taken apart once."""
    eigenvalues, vectors = np.linalg.eigh(gram)
    return [_psd(eigenvalues + alpha, vectors, cross) for alpha in alphas]


def _psd(eigenvalues: np.ndarray, vectors: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """`solve_psd` by the spectrum of G + αI."""
    largest, scale = eigenvalues[-1], np.abs(cross).max(initial=0.0)
    if largest <= 0 or scale == 0:
        return np.zeros(len(eigenvalues))
    problem = _Problem(
        np.maximum(eigenvalues, 0.0) / largest,
        np.ascontiguousarray(vectors),
        cross / scale,
        matrix_size(len(eigenvalues)),
    )
    v, residual = problem.solve()
    if residual > PSD_TOLERANCE:
        warnings.warn(
            f"The positive semi-definite fit stopped after {PSD_MAX_ITERATIONS} steps at a residual of "
            f"{residual:.1e}; a larger alpha makes it better conditioned.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return v * scale / largest


@dataclass(frozen=True)
class _Problem:
    """½vᵀHv − cᵀv over v = svec(W), W positive semi-definite, with H by its eigenvalues (at most 1)."""

    eigenvalues: np.ndarray
    vectors: np.ndarray
    c: np.ndarray
    n_features: int

    def solve(self) -> tuple[np.ndarray, float]:
        """v, and how far it is from optimal: alternating directions come near, Newton's steps finish."""
        z, dual, step = np.zeros(len(self.c)), np.zeros(len(self.c)), 0.1
        done, length, near = 0, FIRST_ITERATIONS, NEAR
        while True:
            length = min(length, PSD_MAX_ITERATIONS - done)
            z, dual, step, residual = _admm_psd(
                self.eigenvalues,
                self.vectors,
                self.vectors.T @ self.c,
                self.n_features,
                (z, dual, step),
                near,
                length,
            )
            z, dual, residual = self._newton(z, dual, step, residual)
            done, length, near = done + length, 2 * length, max(near / 100, PSD_TOLERANCE)
            if residual <= PSD_TOLERANCE or done >= PSD_MAX_ITERATIONS:
                return z, residual

    def _newton(
        self, z: np.ndarray, dual: np.ndarray, step: float, residual: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        r"""Semismooth Newton on F(x) = HΠ(x) − c − τ(Π(x) − x) = 0, with Π the projection onto the cone.

        At its zero v = Π(x) and the multiplier τ(Π(x) − x) are optimal. Directions in which H is nearly flat,
        where alternating directions crawl, are as good as any. What is no nearer than before is not taken.
        """
        H = (self.vectors * self.eigenvalues) @ self.vectors.T
        x = z + dual
        point = _Projected.of(x, self.n_features)
        away = H @ point.v - self.c - step * (point.v - x)
        for _ in range(NEWTON_STEPS):
            slope = point.slope()
            jacobian = H @ slope - step * (slope - np.eye(len(x)))
            move = np.linalg.lstsq(jacobian, -away, rcond=1e-15)[0]
            for share in (1.0, 0.5, 0.25, 0.1, 0.01):
                there = _Projected.of(x + share * move, self.n_features)
                left = H @ there.v - self.c - step * (there.v - x - share * move)
                if np.linalg.norm(left) < np.linalg.norm(away):
                    break
            else:
                break
            x, point, away = x + share * move, there, left
            if np.abs(away).max() <= NEWTON_TOLERANCE:
                break
        found = float(np.abs(away).max())
        return (point.v, x - point.v, found) if found < residual else (z, dual, residual)


@dataclass(frozen=True)
class _Projected:
    """Π(x): the symmetric matrix of x without its negative eigenvalues."""

    v: np.ndarray
    values: np.ndarray
    vectors: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray, n_features: int) -> _Projected:
        values, vectors = np.linalg.eigh(unpack(x, n_features))
        return cls(pack((vectors * np.maximum(values, 0.0)) @ vectors.T), values, vectors)

    def slope(self) -> np.ndarray:
        """An element of the generalised derivative of Π at x, of shape (n_entries, n_entries)."""
        n = len(self.values)
        f, g = np.triu_indices(n)
        above = np.maximum(self.values, 0.0)
        between = self.values[:, None] - self.values
        same = (self.values[:, None] > 0) == (self.values > 0)
        share = np.divide(above[:, None] - above, between, out=np.zeros((n, n)), where=~same)
        share = np.where(same, self.values[:, None] > 0, share)
        # Turning W by the eigenvectors, as a map of svec(W): products of their entries, both ways round.
        U = self.vectors
        turned = U[f][:, f] * U[g][:, g] + U[f][:, g] * U[g][:, f]
        size = np.where(f == g, ROOT_HALF, 1.0)
        turn = turned * np.outer(size, size)
        return np.asarray((turn * share[f, g]) @ turn.T)


def matrix_size(n_entries: int) -> int:
    """F, of the F(F + 1)/2 entries of the upper triangle of an F × F matrix."""
    return int((np.sqrt(8 * n_entries + 1) - 1) // 2)


def pack(W: np.ndarray) -> np.ndarray:
    """svec(W) of a symmetric W (F, F): the upper triangle row by row, off the diagonal times √2."""
    f, g = np.triu_indices(len(W))
    packed: np.ndarray = W[f, g] * np.where(f == g, 1.0, 1.0 / ROOT_HALF)
    return packed


@compiled(nogil=True)
def unpack(v: np.ndarray, n_features: int) -> np.ndarray:
    """W of shape (n_features, n_features) from v = svec(W)."""
    W = np.empty((n_features, n_features))
    k = 0
    for f in range(n_features):
        for g in range(f, n_features):
            W[f, g] = v[k] if f == g else v[k] * ROOT_HALF
            W[g, f] = W[f, g]
            k += 1
    return W


@compiled(nogil=True)
def _project(v: np.ndarray, n_features: int) -> np.ndarray:
    """Π(v), as `_Projected.of` has it: compiled code cannot call that, and needs no eigenvectors after."""
    eigenvalues, vectors = np.linalg.eigh(unpack(v, n_features))
    if eigenvalues[0] >= 0:
        return v
    W = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    out = np.empty_like(v)
    k = 0
    for f in range(n_features):
        for g in range(f, n_features):
            out[k] = W[f, g] if f == g else W[f, g] / ROOT_HALF
            k += 1
    return out


@compiled(nogil=True)
def _admm_psd(
    eigenvalues: np.ndarray,
    vectors: np.ndarray,
    c: np.ndarray,
    n_features: int,
    start: tuple[np.ndarray, np.ndarray, float],
    tolerance: float,
    max_iterations: int,
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """ADMM on ½vᵀHv − cᵀv, with H by its eigenvalues and vectors, c in their basis, from (z, dual, step).

    Returns the last of these, z being projected, and the larger of the primal and dual residuals.
    """
    residual = np.inf
    z, dual, step = start
    for iteration in range(max_iterations):
        v = vectors @ ((c + step * (vectors.T @ (z - dual))) / (eigenvalues + step))
        ahead = RELAXATION * v + (1.0 - RELAXATION) * z
        new = _project(ahead + dual, n_features)
        dual = dual + ahead - new
        size = max(np.abs(new).max(), SMALLEST_SIZE)
        apart, moved = np.abs(v - new).max() / size, step * np.abs(new - z).max()
        z, residual = new, max(apart, moved)
        if residual <= tolerance:
            break
        if iteration % 20 == 19:  # keep the two residuals in balance
            relative = moved / max(step * np.abs(dual).max(), 1e-300)
            if apart > 5.0 * relative and step < 1e3:
                step, dual = step * 2.0, dual / 2.0
            elif relative > 5.0 * apart and step > 1e-7:
                step, dual = step / 2.0, dual * 2.0
    return z, dual, step, residual
