"""Pairwise distances of many items and their ranks, fast and in bounded memory.

Distances are made by rows of the matrix, in the precision of the layer, and kept in the order of
`scipy.spatial.distance.pdist`. Past a number of pairs, a seeded sample of them stands for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numba
import numpy as np
import numpy.typing as npt

from thinkalike.encoding.distances import centred_rows
from thinkalike.errors import UnknownName
from thinkalike.measures.inputs import Layer

MAX_PAIRS = 20_000_000
_BLOCK = 1 << 16  # pairs handed out at a time
_ROWS = 256  # rows of the distance matrix made at a time

Floats = npt.NDArray[np.float64]
Ranks = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]


def euclidean(X: Layer) -> Layer:
    """Centred: distances stay, and squared norms cancel less."""
    return (X - X.mean(axis=0, dtype=np.float64)).astype(X.dtype)


def cosine(X: Layer) -> Layer:
    """Rows of length 1: ‖x̂ − ŷ‖² = 2(1 − cos); a zero row stays zero."""
    norms = np.sqrt((X.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    return (X / np.where(norms > 0, norms, 1.0)).astype(X.dtype)


def correlation(X: Layer) -> Layer:
    """Rows centred over units, then of length 1; a row that is the same in every unit becomes zero."""
    return cosine(centred_rows(X))


TRANSFORMS = {"euclidean": euclidean, "cosine": cosine, "correlation": correlation}
"""A distance is a transform of X after which it is Euclidean, up to a monotone function."""


def transformed(X: Layer, distance: str) -> Layer:
    """X such that the Euclidean distances of its rows are ordered as `distance` is."""
    if distance not in TRANSFORMS:
        raise UnknownName.among("distance", distance, TRANSFORMS)
    return TRANSFORMS[distance](X)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs i < j of items in the order of pdist: all of them, or a sorted sample."""

    n_items: int
    n: int
    sample: Indices | None = field(repr=False)
    """Places of the sampled pairs among all; None when all are there"""
    starts: Indices = field(repr=False)
    """(n_items,) place of the first pair of each item"""

    @classmethod
    def of(cls, n_items: int, *, max_pairs: int = MAX_PAIRS, seed: int = 0) -> Pairs:
        total = n_items * (n_items - 1) // 2
        item = np.arange(n_items, dtype=np.int64)
        starts = item * n_items - item * (item + 1) // 2
        if total <= max_pairs:
            return cls(n_items, total, None, starts)
        drawn = np.random.default_rng(seed).choice(total, size=max_pairs, replace=False, shuffle=False)
        return cls(n_items, max_pairs, np.sort(drawn), starts)

    def blocks(self) -> Iterator[slice]:
        return (slice(start, min(start + _BLOCK, self.n)) for start in range(0, self.n, _BLOCK))

    def items(self, places: Indices) -> tuple[Indices, Indices]:
        """The two items of the pairs at `places` of the order."""
        k = places if self.sample is None else self.sample[places]
        i = np.searchsorted(self.starts[:-1], k, side="right") - 1
        return i, k - self.starts[i] + i + 1

    def squared_distances(self, X: Layer) -> Ranks:
        """Squared Euclidean distances (n,) of these pairs; equal vectors are at 0 exactly.

        Where float32 could not hold them they are those of X divided by its largest entry: the same order.
        """
        largest = float(max(X.max(), -X.min()))
        if not 1e-12 < largest < 1e12:
            X = X / (largest or 1.0)
        result = np.empty(self.n, dtype=np.float32)
        norms = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        for first in range(0, self.n_items - 1, _ROWS):
            last = min(first + _ROWS, self.n_items - 1)
            start, stop = self.starts[first], self.starts[last]
            products = X[first:last] @ X[first:].T
            if self.sample is None:
                _fill_distances(products, norms, first, result[start:stop])
                continue
            part = np.empty(stop - start, dtype=np.float32)
            _fill_distances(products, norms, first, part)
            low, high = np.searchsorted(self.sample, [start, stop])
            result[low:high] = part[self.sample[low:high] - start]
        return result


def standardised_ranks(distances: Ranks) -> Ranks:
    """Ranks of `distances` (P,) ≥ 0, ties averaged, with mean 0 and mean square 1; NaN if all are equal."""
    # Distance and place as one integer: sorting those is several times faster than an argsort, and the bits
    # of non-negative floats are in the order of the floats.
    keys = np.empty(len(distances), dtype=np.uint64)
    _fill_keys(distances.view(np.uint32), keys)
    keys.sort()
    ranks = np.empty(len(keys), dtype=np.float32)
    _scatter_ranks(keys, ranks)
    return ranks


@numba.njit(cache=True)
def _fill_distances(products, norms, first, result):  # type: ignore[no-untyped-def]
    """‖x_i − x_j‖² of items first, first + 1, … with all later ones, in the order of pdist."""
    n_rows, n_columns = products.shape
    rounding = 1e-6 if products.itemsize == 4 else 1e-13
    place = 0
    for row in range(n_rows):
        for column in range(row + 1, n_columns):
            scale = norms[first + row] + norms[first + column]
            squared = scale - 2.0 * products[row, column]
            # What is within rounding of 0 is 0: the same vector twice.
            result[place] = squared if squared > rounding * scale else 0.0
            place += 1


@numba.njit(cache=True)
def _fill_keys(bits, keys):  # type: ignore[no-untyped-def]
    for place in range(len(bits)):
        keys[place] = (np.uint64(bits[place]) << np.uint64(32)) | np.uint64(place)


@numba.njit(cache=True)
def _scatter_ranks(keys, ranks):  # type: ignore[no-untyped-def]
    """Standardised average ranks from sorted keys: the value in the high 32 bits, the place in the low."""
    n = len(keys)
    shift, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    mean = 0.5 * (n - 1)
    total = (
        n * (n * float(n) - 1.0) / 12.0
    )  # Σ (rank − mean)² without ties; each run of t ties takes (t³ − t)/12
    start = 0
    for stop in range(1, n + 1):
        if stop == n or keys[stop] >> shift != keys[start] >> shift:
            t = float(stop - start)
            total -= (t * t * t - t) / 12.0
            start = stop
    scale = 1.0 / np.sqrt(total / n) if total > 0.5 else np.nan
    start = 0
    for stop in range(1, n + 1):
        if stop == n or keys[stop] >> shift != keys[start] >> shift:
            rank = np.float32((0.5 * (start + stop - 1) - mean) * scale)
            for k in range(start, stop):
                ranks[keys[k] & low] = rank
            start = stop
