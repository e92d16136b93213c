"""Mutual nearest neighbours: whether items keep the same company in both layers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput
from thinkalike.measures.hsic import row_blocks
from thinkalike.measures.inputs import Array, Layer, at_least, centred

Indices = npt.NDArray[np.int64]
RESOLUTION = 1e-10  # of the mean squared norm: closer distances are ties, whatever the rounding says


def unit_rows(X: Layer, name: str = "X") -> Array:
    """Every row divided by its length; refuses rows of zeros, which have no direction."""
    norms = np.linalg.norm(X.astype(np.float64), axis=1, keepdims=True)
    if not norms.all():
        raise InvalidInput(
            f"{name} is zero in row {int(np.argmin(norms))}: a zero vector has no direction. "
            "Leave that item out, or use a Euclidean measure."
        )
    return X / norms


def nearest(X: Array, k: int) -> Indices:
    """The `k` nearest other items of each item by Euclidean distance, sorted by index, of shape (n_items, k).

    Ties go to the item that stands first.
    """
    n = len(X)
    squares = (X * X).sum(axis=1)
    unit = RESOLUTION * squares.mean()
    found = np.empty((n, k), dtype=np.int64)
    for start, stop in row_blocks(n, 1):
        squared = squares[start:stop, None] + squares[None, :] - 2 * (X[start:stop] @ X.T)
        squared[np.arange(stop - start), np.arange(start, stop)] = np.inf
        steps = np.rint(np.clip(squared / unit, 0, 2.0**40)).astype(np.int64)
        ranked = steps * n + np.arange(n)  # one integer orders by distance, then by index
        found[start:stop] = np.argpartition(ranked, k - 1, axis=1)[:, :k]
    return np.sort(found, axis=1)


def prepare_neighbours(X: Layer, name: str = "X", *, k: int = 10, cosine: bool = False) -> Indices:
    """Neighbours by Euclidean distance, or by angle from the origin when `cosine`."""
    at_least(k + 2, X, name)
    C = centred(X, name)
    if cosine:  # centred all the same: no distance changes, and what all rows share drowns how they differ
        C = centred(unit_rows(X, name), f"{name}, every item at length 1,")
    return nearest(C, k)


def mutual_neighbours(A: Indices, B: Indices) -> float:
    """Mean share of the k nearest neighbours of an item that are the same in both layers, in [0, 1].

    Unrelated layers share k/(n − 1). Huh et al. 2024.
    """
    n, k = A.shape
    marked = np.zeros((n, n), dtype=bool)
    np.put_along_axis(marked, A, True, axis=1)
    return float(np.take_along_axis(marked, B, axis=1).sum() / (n * k))
