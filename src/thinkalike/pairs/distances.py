r"""What is to be explained: the squared distances y between the activations of two items.

Most distances are a transform of X, y_ij = Σ_t c_t ‖x^t_i − x^t_j‖², and then sums over all pairs have a
closed form:

- euclidean: X itself; cosine: rows of unit length, y = 2(1 − cos); correlation: the same, rows centred first;
- zscored: every unit divided by its standard deviation; mahalanobis: X whitened by its covariance; whitened:
  the same with the covariance shrunk towards a sphere (Ledoit & Wolf 2004), which any X has;
- crossnobis: X^r for each run r; y is the mean of (x_i − x_j)^r · (x_i − x_j)^s over pairs of different runs,
  which is unbiased by noise and may be negative (Walther et al. 2016).

The others are given by blocks: manhattan, precomputed, and any callable (A, B) → distances (len(A), len(B)).
Their y is the squared distance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from thinkalike.activations.store import refuse_masked
from thinkalike.errors import InvalidInput
from thinkalike.pairs.kernels import condense, pair_distances
from thinkalike.registry import Registry

BLOCK_ROWS = 512
DENSE = 4
"""A sample of more than one in so many pairs is made by whole blocks of products"""
DistanceLike = str | Callable[[np.ndarray, np.ndarray], np.ndarray]


class Target(Protocol):
    """Squared distances between n_items items, computed where asked."""

    @property
    def n_items(self) -> int: ...

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """y of shape (len(rows), len(columns))."""

    def within(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Condensed y over the pairs of `items`, and for each item how far rounding may move its y."""

    def between(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """y of the pairs (i, j), and the same rounding per item of all items."""


@dataclass(frozen=True)
class QuadraticTarget:
    """y_ij = Σ_t c_t ‖x^t_i − x^t_j‖² for `terms` (c_t, x^t of shape (n_items, n_units))."""

    terms: tuple[tuple[float, np.ndarray], ...]

    @property
    def n_items(self) -> int:
        return len(self.terms[0][1])

    @property
    def signed(self) -> bool:
        """Whether y may be negative."""
        return any(c < 0 for c, _ in self.terms)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        y = np.zeros((len(rows), len(columns)))
        for c, x in self.terms:
            a, b = np.asarray(x[rows], dtype=float), np.asarray(x[columns], dtype=float)
            middle = b.mean(axis=0)  # squared norms cancel badly with a common offset
            a, b = a - middle, b - middle
            y += c * ((a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2 * (a @ b.T))
        return y if self.signed else np.maximum(y, 0.0, out=y)

    def within(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m = len(items)
        y, rounding = np.zeros(m * (m - 1) // 2), np.zeros(m)
        for c, x in self.terms:
            z, norms = _centred(x[items])
            for first in range(0, m, BLOCK_ROWS):
                products = z[first : first + BLOCK_ROWS] @ z[first:].T
                condense(products, norms, first, c, y)
            rounding += abs(c) * norms
        if not self.signed:
            np.maximum(y, 0.0, out=y)
        return y, rounding * _rounding(x.shape[1])

    def between(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if 2 * DENSE * len(i) > self.n_items**2 and (i[1:] >= i[:-1]).all():
            return self._between_many(i, j)
        y = np.zeros(len(i))
        for c, x in self.terms:
            pair_distances(x, i, j, c, y)
        return y, np.zeros(self.n_items)

    def _between_many(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whole blocks of products, which are quicker where most of their entries are wanted; i rises."""
        y, rounding = np.zeros(len(i)), np.zeros(self.n_items)
        for c, x in self.terms:
            z, norms = _centred(x)
            for first in range(0, self.n_items, BLOCK_ROWS):
                part = slice(*np.searchsorted(i, [first, first + BLOCK_ROWS]))
                a, b = i[part], j[part]
                products = z[first : first + BLOCK_ROWS] @ z[first:].T
                y[part] += c * (norms[a] + norms[b] - 2.0 * products[a - first, b - first])
            rounding += abs(c) * norms
        return y if self.signed else np.maximum(y, 0.0, out=y), rounding * _rounding(x.shape[1])

    def coordinates(self) -> np.ndarray | None:
        """Rows whose Euclidean distances these are; None if no such rows exist."""
        (c, x), *others = self.terms
        return x if not others and c == 1.0 else None


@dataclass(frozen=True)
class BlockTarget:
    """Squared distances from a function (rows, columns) → distances (len(rows), len(columns))."""

    distances: Callable[[np.ndarray, np.ndarray], np.ndarray]
    n_items: int

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        d = np.asarray(self.distances(rows, columns), dtype=float)
        if d.shape != (len(rows), len(columns)):
            raise InvalidInput(
                f"The distance gave an array of shape {d.shape} for {len(rows)} and {len(columns)} items: "
                f"it must return ({len(rows)}, {len(columns)})."
            )
        if not np.isfinite(d).all():
            raise InvalidInput("The distance gave NaN or infinity for some pairs: it must be finite.")
        return d**2

    def within(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m = len(items)
        parts = []
        for first in range(0, m, BLOCK_ROWS):
            y = self.block(items[first : first + BLOCK_ROWS], items[first:])
            parts += [row[k + 1 :] for k, row in enumerate(y)]
        return np.concatenate(parts), np.zeros(m)

    def between(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = np.empty(len(i))
        order = np.argsort(i, kind="stable")
        for part in np.array_split(order, max(1, len(i) // 4096)):
            rows, at_row = np.unique(i[part], return_inverse=True)
            columns, at_column = np.unique(j[part], return_inverse=True)
            y[part] = self.block(rows, columns)[at_row, at_column]
        return y, np.zeros(self.n_items)


def _centred(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x less its mean in float64, so that squared norms cancel little; and those norms."""
    z = np.array(x, dtype=float)
    z -= z.mean(axis=0)
    return z, np.einsum("ij,ij->i", z, z)


def _rounding(n_units: int) -> float:
    """By what share of ‖x_i‖² + ‖x_j‖² a y from inner products may be wrong; ties are told within it."""
    return float((8 + 4 * np.sqrt(n_units)) * np.finfo(float).eps)


def as_vectors(X: npt.ArrayLike, *, n_items: int | None = None, dimensions: int = 2) -> np.ndarray:
    """X as a finite float array (n_items, n_units), of one unit if it is a vector; torch tensors too.

    Parameters
    ----------
    dimensions : 2, or 3 for repeated measurements (n_runs, n_items, n_units)
    """
    detach = getattr(X, "detach", None)  # a torch tensor has it; found without importing torch
    if detach is not None:
        tensor = detach().cpu()
        X = (tensor.float() if tensor.is_floating_point() and tensor.element_size() < 4 else tensor).numpy()
    refuse_masked(X, "X")
    X = np.asarray(X)
    if X.dtype.kind not in "fiub":
        raise InvalidInput(f"Got activations of type {X.dtype}: give real numbers.")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float32 if X.dtype == np.float16 else np.float64)
    if X.ndim == 1 and dimensions == 2:
        X = X[:, None]
    if X.ndim != dimensions:
        expected = "(n_items, n_units)" if dimensions == 2 else "(n_runs, n_items, n_units)"
        raise InvalidInput(f"Got activations of shape {X.shape}: give {expected}.")
    if X.shape[-1] == 0:
        raise InvalidInput(f"Got activations of shape {X.shape}, without units: give at least one unit.")
    if n_items is not None and X.shape[-2] != n_items:
        raise InvalidInput(
            f"Got {X.shape[-2]} rows of activations for {n_items} items of features: give one row per item."
        )
    _check_finite(X)
    return np.ascontiguousarray(X)


def make_target(X: npt.ArrayLike, distance: DistanceLike, *, whitener: np.ndarray | None = None) -> Target:
    """The squared distances between the rows of X.

    Parameters
    ----------
    X : array of shape (n_items, n_units); (n_items, n_items) for "precomputed"; (n_runs, n_items, n_units)
        for "crossnobis"
    distance : a name in `DISTANCES`, or a callable (A, B) → (len(A), len(B))
    whitener : array of shape (n_units, n_units), optional
        For a distance in `SCALINGS`, from there; computed from X if not given.

    Examples
    --------
    >>> import numpy as np
    >>> make_target(np.array([[0.0, 0.0], [3.0, 4.0]]), "euclidean").within(np.arange(2))[0]
    array([25.])
    """
    if callable(distance):
        rows_of = as_vectors(X)
        return BlockTarget(lambda rows, columns: distance(rows_of[rows], rows_of[columns]), len(rows_of))
    if distance not in SCALINGS:
        return DISTANCES[distance](X)
    x = as_vectors(X)
    z = (x - x.mean(axis=0, dtype=float)) @ (SCALINGS[distance](x) if whitener is None else whitener)
    return QuadraticTarget(((1.0, z),))


def unit_scales(X: np.ndarray) -> np.ndarray:
    """(n_units,): one over the standard deviation; 0 for a unit that is constant."""
    spread = X.std(axis=0, dtype=float)
    constant = spread <= 4 * np.finfo(X.dtype).eps * np.abs(X).max(axis=0)
    return np.divide(1.0, spread, out=np.zeros(len(spread)), where=~constant)


def standardising(X: np.ndarray) -> np.ndarray:
    """Diagonal, (n_units, n_units), of the `unit_scales`."""
    return np.diag(unit_scales(X))


def shrunk_whitening(X: np.ndarray) -> np.ndarray:
    """L of shape (n_units, n_units), L Lᵀ the inverse of the covariance shrunk as Ledoit & Wolf (2004) do."""
    from sklearn.covariance import ledoit_wolf

    covariance, _ = ledoit_wolf(X.astype(float))
    eigenvalues, vectors = np.linalg.eigh(np.atleast_2d(covariance))
    some = eigenvalues > eigenvalues[-1] * len(eigenvalues) * np.finfo(float).eps
    scale = np.divide(1.0, np.sqrt(np.abs(eigenvalues)), out=np.zeros(len(eigenvalues)), where=some)
    whitener: np.ndarray = vectors * scale
    return whitener


def whitening(X: np.ndarray) -> np.ndarray:
    """L of shape (n_units, n_units) with L Lᵀ the inverse of the sample covariance of X."""
    n, d = X.shape
    if n <= d:
        raise InvalidInput(
            f"The mahalanobis distance needs more items than units, got {n} items and {d} units: reduce the "
            "units first (for example by PCA), or use 'euclidean'."
        )
    covariance = np.atleast_2d(np.cov(X.astype(float), rowvar=False))
    eigenvalues, vectors = np.linalg.eigh(covariance)
    if eigenvalues[0] <= eigenvalues[-1] * d * np.finfo(float).eps:
        raise InvalidInput(
            "The covariance of X is singular: drop units that repeat others, or use 'euclidean'."
        )
    whitener: np.ndarray = vectors / np.sqrt(eigenvalues)
    return whitener


SCALINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "zscored": standardising,
    "mahalanobis": whitening,
    "whitened": shrunk_whitening,
}
"""Distance → function of X: the matrix (n_units, n_units) that its centred rows are multiplied by"""


def _scaled(distance: str) -> Callable[[npt.ArrayLike], Target]:
    return lambda X: make_target(X, distance)


def _euclidean(X: npt.ArrayLike) -> Target:
    return QuadraticTarget(((1.0, as_vectors(X)),))


def _cosine(X: npt.ArrayLike) -> Target:
    return QuadraticTarget(((1.0, _unit_rows(as_vectors(X), "cosine", "is zero")),))


def _correlation(X: npt.ArrayLike) -> Target:
    rows = centred_rows(as_vectors(X))
    return QuadraticTarget(((1.0, _unit_rows(rows, "correlation", "is the same in every unit")),))


def _crossnobis(X: npt.ArrayLike) -> Target:
    runs = as_vectors(X, dimensions=3)
    R = len(runs)
    if R < 2:
        raise InvalidInput(
            f"Got {R} run: crossnobis needs at least two independent measurements of each item."
        )
    # Σ_{r≠s} δ^r·δ^s = ‖Σ_r δ^r‖² − Σ_r ‖δ^r‖²
    mean = runs.mean(axis=0, dtype=float)
    terms = [(R / (R - 1), mean)] + [(-1 / (R * (R - 1)), run) for run in runs]
    return QuadraticTarget(tuple(terms))


def _manhattan(X: npt.ArrayLike) -> Target:
    x = as_vectors(X).astype(float)
    return BlockTarget(lambda rows, columns: cdist(x[rows], x[columns], "cityblock"), len(x))


def _precomputed(X: npt.ArrayLike) -> Target:
    D = as_vectors(X)
    if D.shape[0] != D.shape[1]:
        raise InvalidInput(f"Got a matrix of distances of shape {D.shape}: give (n_items, n_items).")
    scale = np.abs(D).max()
    for first in range(0, len(D), BLOCK_ROWS):
        rows = slice(first, first + BLOCK_ROWS)
        off = np.abs(D[rows] - D[:, rows].T) > 1e-6 * scale
        if off.any():
            i, j = np.argwhere(off)[0] + (first, 0)
            raise InvalidInput(
                f"The matrix of distances is not symmetric: D[{i}, {j}] = {D[i, j]:g} but D[{j}, {i}] = "
                f"{D[j, i]:g}. Give (D + D.T) / 2 if that is what you mean."
            )
    if np.abs(np.diagonal(D)).max() > 1e-6 * scale:
        raise InvalidInput(
            "The matrix of distances has a diagonal that is not 0: give distances, not similarities."
        )
    if D.min() < 0:
        raise InvalidInput("The matrix of distances has negative entries: give distances, not similarities.")
    return BlockTarget(lambda rows, columns: D[np.ix_(rows, columns)], len(D))


def _given(name: str, given: object) -> Callable[[npt.ArrayLike], Target]:
    """A distance that others add: a function (A, B) → distances (len(A), len(B))."""
    if not callable(given):
        raise InvalidInput(f"The distance {name!r} is {given!r}: give a function (A, B) → (len(A), len(B)).")
    return lambda X: make_target(X, given)


DISTANCES: Registry[Callable[[npt.ArrayLike], Target]] = Registry(
    "distance",
    "thinkalike.distances",
    {
        "euclidean": _euclidean,
        "cosine": _cosine,
        "correlation": _correlation,
        **{name: _scaled(name) for name in SCALINGS},
        "crossnobis": _crossnobis,
        "manhattan": _manhattan,
        "precomputed": _precomputed,
    },
    accept=_given,
)
"""Name → function of X that gives its `Target`; others add functions (A, B) → distances."""


def centred_rows(X: np.ndarray) -> np.ndarray:
    """X less the mean of each row, in its precision; exactly 0 where only rounding is left of a row."""
    centred: np.ndarray = (X - X.mean(axis=1, keepdims=True, dtype=float)).astype(X.dtype)
    rounding = 4 * np.finfo(X.dtype).eps * np.abs(X).max(axis=1)
    centred[np.abs(centred).max(axis=1) <= rounding] = 0.0
    return centred


def _unit_rows(X: np.ndarray, distance: str, problem: str) -> np.ndarray:
    norms = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=float))
    if (norms == 0).any():
        row = int(np.argmin(norms))
        raise InvalidInput(f"Row {row} of X {problem}, so it has no {distance} distance: drop that item.")
    return X / norms[:, None].astype(X.dtype)


def _check_finite(X: np.ndarray) -> None:
    rows = X.reshape(-1, X.shape[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum()):  # quick: one NaN or infinity would show; an overflow is looked into below
            return
    bad = [
        first + int(k)
        for first in range(0, len(rows), BLOCK_ROWS)
        for k in np.flatnonzero(~np.isfinite(rows[first : first + BLOCK_ROWS]).all(axis=1))
    ]
    if bad:
        shown = ", ".join(str(b % X.shape[-2]) for b in bad[:5]) + (", …" if len(bad) > 5 else "")
        raise InvalidInput(
            f"NaN or infinity in {len(bad)} row(s) of X: {shown}. Drop these items from X and the features."
        )
