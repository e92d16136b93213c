"""Which pairs of items: all of them in the order of `scipy.spatial.distance.pdist`, or a sorted sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thinkalike.pairs.kernels import condensed_pairs

MAX_PAIRS = 20_000_000
"""The one cap: of more pairs than this, a seeded sample without replacement stands for all."""
BLOCK_PAIRS = 1 << 16
"""Pairs handed out at a time"""

Indices = npt.NDArray[np.int64]
Ends = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs i < j of `n_items` items in condensed order.

    Examples
    --------
    >>> pairs = Pairs.of(4)
    >>> len(pairs), pairs.i.tolist(), pairs.j.tolist()
    (6, [0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3])
    """

    n_items: int
    sample: Indices | None = field(default=None, repr=False)
    """Places of the sampled pairs among all, rising; None when all are there"""

    @classmethod
    def of(cls, n_items: int, *, max_pairs: int = MAX_PAIRS, seed: int = 0) -> Pairs:
        """All pairs of `n_items` items, or `max_pairs` of them drawn without replacement."""
        total = n_items * (n_items - 1) // 2
        if total <= max_pairs:
            return cls(n_items)
        return cls(n_items, draw_places(total, max_pairs, np.random.default_rng(seed)))

    def __len__(self) -> int:
        return self.n_all if self.sample is None else len(self.sample)

    @property
    def n_all(self) -> int:
        """How many pairs there are; more than `len` if these are a sample."""
        return self.n_items * (self.n_items - 1) // 2

    @property
    def is_sample(self) -> bool:
        return self.sample is not None

    @property
    def i(self) -> Ends:
        """(n_pairs,) the first item of each pair"""
        return self._ends[0]

    @property
    def j(self) -> Ends:
        """(n_pairs,) the second item of each pair"""
        return self._ends[1]

    @cached_property
    def _ends(self) -> tuple[Ends, Ends]:
        if self.sample is None:
            first, second = condensed_pairs(self.n_items)
            return first, second
        item = np.arange(self.n_items, dtype=np.int64)
        starts = item * self.n_items - item * (item + 1) // 2  # place of the first pair of each item
        i = np.searchsorted(starts[:-1], self.sample, side="right") - 1
        return i.astype(np.int32), (self.sample - starts[i] + i + 1).astype(np.int32)

    def blocks(self) -> Iterator[slice]:
        """The pairs in parts, for sums over them in bounded memory."""
        return (slice(k, min(k + BLOCK_PAIRS, len(self))) for k in range(0, len(self), BLOCK_PAIRS))


def draw_places(total: int, size: int, rng: np.random.Generator) -> Indices:
    """`size` of the numbers 0 … total − 1, each set equally likely, rising; in memory of the order of `size`.

    Distinct values of independent draws are a random set; those too many leave it at random.
    """
    if size > total // 2:
        kept = np.ones(total, dtype=bool)
        kept[draw_places(total, total - size, rng)] = False
        return np.flatnonzero(kept)
    found = np.empty(0, dtype=np.int64)
    while len(found) < size:
        missing = size - len(found)
        drawn = np.sort(np.concatenate([found, rng.integers(0, total, missing + missing // 2 + 16)]))
        found = drawn[np.diff(drawn, prepend=-1) > 0]  # NumPy's `unique` hashes them, which takes far longer
    surplus = len(found) - size
    if not surplus:
        return found
    return np.delete(found, rng.permutation(len(found))[:surplus])
