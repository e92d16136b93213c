"""Nearest neighbours: whether items keep the same company in both layers, and in the same order.

All measures of the family look at one array, which of the k neighbours of an item in one layer is which of
its k neighbours in the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from thinkalike.errors import InvalidInput
from thinkalike.measures.hsic import row_blocks
from thinkalike.measures.inputs import Array, Vectors, at_least, centred

Indices = npt.NDArray[np.int64]
Same = npt.NDArray[np.bool_]
RESOLUTION = 1e-10  # of the mean squared norm: closer distances are ties, whatever the rounding says


def unit_rows(X: Vectors, name: str = "X") -> Array:
    """Every row divided by its length; refuses rows of zeros, which have no direction."""
    norms = np.linalg.norm(X.astype(np.float64), axis=1, keepdims=True)
    if not norms.all():
        raise InvalidInput(
            f"{name} is zero in row {int(np.argmin(norms))}: a zero vector has no direction. "
            "Leave that item out, or use a Euclidean measure."
        )
    return X / norms


def nearest(X: Array, k: int) -> Indices:
    """The `k` nearest other items of each item by Euclidean distance, nearest first, of shape (n_items, k).

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
        found[start:stop] = np.sort(np.partition(ranked, k - 1, axis=1)[:, :k], axis=1) % n
    return found


def prepare_neighbours(X: Vectors, name: str = "X", *, k: int = 10, cosine: bool = False) -> Indices:
    """Neighbours by Euclidean distance, or by angle from the origin when `cosine`."""
    at_least(k + 2, X, name)
    C = centred(X, name)
    if cosine:  # centred all the same: no distance changes, and what all rows share drowns how they differ
        C = centred(unit_rows(X, name), f"{name}, every item at length 1,")
    return nearest(C, k)


def same_neighbours(A: Indices, B: Indices) -> Same:
    """Whether neighbour r of an item in one layer is its neighbour s in the other, (n_items, k, k)."""
    return A[:, :, None] == B[:, None, :]


def mutual_neighbours(A: Indices, B: Indices) -> float:
    """Mean share of the k nearest neighbours of an item that are the same in both layers, in [0, 1].

    Unrelated layers share k/(n − 1). Huh et al. 2024.
    """
    return float(same_neighbours(A, B).sum() / A.size)


def jaccard_neighbours(A: Indices, B: Indices) -> float:
    """Mean of |A_i ∩ B_i| / |A_i ∪ B_i|, in [0, 1]. Wang et al. 2022."""
    shared = same_neighbours(A, B).sum(axis=(1, 2))
    return float((shared / (2 * A.shape[1] - shared)).mean())


def rank_neighbours(A: Indices, B: Indices) -> float:
    """How alike shared neighbours are ranked, near ones counting most, in [0, 1]. Wang et al. 2022.

    Mean over items of Σ 2 / ((1 + |r − s|)(r + s)) / Σ_{m ≤ M} 1/m over the M shared neighbours, which are
    r-th nearest in one layer and s-th in the other; 0 where none is shared.
    """
    same, k = same_neighbours(A, B), A.shape[1]
    r, s = np.arange(1, k + 1)[:, None], np.arange(1, k + 1)[None, :]
    scores = (same * (2 / ((1 + np.abs(r - s)) * (r + s)))).sum(axis=(1, 2))
    most = np.concatenate([[np.inf], np.cumsum(1 / np.arange(1, k + 1))])
    return float((scores / most[same.sum(axis=(1, 2))]).mean())


def common_subsequence(A: Indices, B: Indices) -> float:
    """Mean length of the longest common subsequence of the two lists of neighbours, over k, in [0, 1].

    Huh et al. 2024, who do not divide by k.
    """
    same, k = same_neighbours(A, B), A.shape[1]
    lengths = np.zeros((k + 1, k + 1, len(A)), dtype=np.int64)
    for r in range(k):
        for s in range(k):
            longer = np.maximum(lengths[r, s + 1], lengths[r + 1, s])
            lengths[r + 1, s + 1] = np.where(same[:, r, s], lengths[r, s] + 1, longer)
    return float(lengths[k, k].mean() / k)


def cycle_neighbours(A: Indices, B: Indices) -> float:
    """Share of items that are among the X-neighbours of one of their own Y-neighbours, in [0, 1].

    Not symmetric, and below 1 for equal layers if an item is nobody's neighbour. Huh et al. 2024.
    """
    return float((A[B] == np.arange(len(A))[:, None, None]).any(axis=(1, 2)).mean())


FAMILY: dict[str, Callable[[Indices, Indices], float]] = {
    "mutual": mutual_neighbours,
    "jaccard": jaccard_neighbours,
    "rank": rank_neighbours,
    "lcs": common_subsequence,
    "cycle": cycle_neighbours,
}
"""What of the neighbours is compared → the measure of two prepared layers"""


class Directions(NamedTuple):
    """Unit rows (n_items, n_units) and the neighbours (n_items, k) by angle."""

    rows: Array
    near: Indices

    def cosines(self, items: Indices) -> Array:
        """Of each item with the given others, (n_items, n_others)."""
        return np.einsum("id,ijd->ij", self.rows, self.rows[items])


def prepare_directions(X: Vectors, name: str = "X", *, k: int = 10) -> Directions:
    """What the two measures need that also ask how near the neighbours are."""
    return Directions(unit_rows(X, name).astype(np.float64), prepare_neighbours(X, name, k=k, cosine=True))


def second_order_cosine(X: Directions, Y: Directions) -> float:
    """Mean cosine of an item's distances 1 − cos to the neighbours it has in either layer, in [0, 1].

    Hamilton et al. 2016.
    """
    others = np.concatenate([X.near, Y.near], axis=1)
    once = np.concatenate([np.ones_like(X.near, dtype=bool), ~same_neighbours(X.near, Y.near).any(1)], axis=1)
    x, y = ((1 - layer.cosines(others)).clip(0) * once for layer in (X, Y))
    sizes = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    # An item whose neighbours are all its copies, in both layers, has the same company in both.
    alike = np.where((x == 0).all(1) & (y == 0).all(1), 1.0, 0.0)
    return float(np.divide((x * y).sum(axis=1), sizes, out=alike, where=sizes > 0).mean())


def cknna(X: Directions, Y: Directions) -> float:
    """CKA among the pairs in which one item is a neighbour of the other in both layers. Huh et al. 2024.

    HSIC₁ of the cosines, those of other pairs set to 0, over the geometric mean of what each layer has with
    itself. As published: neighbourhood is not mutual, so it is no inner product, not symmetric, and may
    leave [−1, 1].
    """
    own = [_masked_hsic(one, one) for one in (X, Y)]
    if min(own) <= 0:
        raise InvalidInput(
            "cknna is not defined here: among nearest neighbours a layer has no HSIC with itself (its items "
            "are hardly ever each other's neighbours). Use mutual-knn-cosine, or more items."
        )
    return float(_masked_hsic(X, Y) / np.sqrt(own[0] * own[1]))


def _masked_hsic(X: Directions, Y: Directions) -> float:
    """Σ K_ij L_ji + ΣK ΣL / ((n−1)(n−2)) − 2 Σ KL / (n−2) of the cosines at shared neighbours."""
    n, k = X.near.shape
    shared = same_neighbours(X.near, Y.near).any(axis=2)
    K, L = (
        sparse.csr_array(
            ((shared * one.cosines(X.near)).ravel(), X.near.ravel(), np.arange(n + 1) * k), (n, n)
        )
        for one in (X, Y)
    )
    crossed = (K * L.T).sum() + K.sum() * L.sum() / ((n - 1) * (n - 2))
    return float(crossed - 2 * (K.sum(axis=0) @ L.sum(axis=1)) / (n - 2))
