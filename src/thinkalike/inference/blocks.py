"""Do the layers of a model fall into blocks, or does similarity just fade with distance?

A matrix over the layers of one model is fitted by constant blocks (every block of layers with every other has
one mean), and, as the rival, by the mean at each distance |i − j| alone. The Bayesian information criterion
says which describes it better; a smooth gradient is then not taken for blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
SMALLEST = 4
"""With fewer layers there is nothing to tell blocks from a gradient"""
FLOOR = 1e-4
"""Added to the mean squared error, so that no fit is infinitely better: differences of 0.01 are not seen"""


@dataclass(frozen=True)
class Blocks:
    """The best division of layers into contiguous blocks.

    Attributes
    ----------
    starts
        The place of the first layer of each block; the first is 0.
    within, between
        Mean similarity of different layers in one block, and in different blocks.
    better
        Whether blocks describe the matrix better than one mean, and better than distance alone.
    explained, by_distance
        Share of the variance over pairs of layers that the blocks explain, and that |i − j| explains.
    """

    starts: tuple[int, ...]
    n_layers: int
    within: float
    between: float
    better: bool
    explained: float
    by_distance: float
    criterion: float = field(repr=False)

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(b - a for a, b in pairwise((*self.starts, self.n_layers)))

    @property
    def contrast(self) -> float:
        return self.within - self.between


def find_blocks(
    similarity: Floats, *, n_blocks: Sequence[int] = (2, 3, 4), smallest: int = 1
) -> Blocks | None:
    """The best contiguous blocks of a symmetric matrix (n, n); None for fewer than four layers.

    Parameters
    ----------
    n_blocks : how many blocks to try; never more than half as many as there are layers.
    smallest : the length that a block must have at least.
    """
    n = len(similarity)
    if n < SMALLEST:
        return None
    i, j = np.triu_indices(n, k=1)
    values = np.asarray(similarity, dtype=np.float64)[i, j]
    flat = _criterion(values, np.zeros(len(values), dtype=np.int64))
    fading = _criterion(values, j - i)
    best = min(
        (
            (_criterion(values, _cells(cuts, i, j), extra=len(cuts)), cuts)
            for cuts in _cuts(n, n_blocks, smallest)
        ),
        default=None,
    )
    if best is None:
        return None
    criterion, cuts = best
    label = np.searchsorted(cuts, np.arange(n), side="right")
    same = label[i] == label[j]
    return Blocks(
        starts=(0, *cuts),
        n_layers=n,
        within=float(values[same].mean()) if same.any() else float("nan"),
        between=float(values[~same].mean()),
        better=criterion < min(flat, fading)
        and bool(same.any() and values[same].mean() > values[~same].mean()),
        explained=_explained(values, _cells(cuts, i, j)),
        by_distance=_explained(values, j - i),
        criterion=criterion,
    )


def _cuts(n: int, n_blocks: Sequence[int], smallest: int) -> Iterator[tuple[int, ...]]:
    for k in (k for k in n_blocks if 2 * k <= n):
        for cuts in combinations(range(1, n), k - 1):
            if all(b - a >= smallest for a, b in pairwise((0, *cuts, n))):
                yield cuts


def _cells(
    cuts: tuple[int, ...], i: npt.NDArray[np.int64], j: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Which pair of blocks each pair of layers belongs to."""
    return np.searchsorted(cuts, i, side="right") * (len(cuts) + 1) + np.searchsorted(cuts, j, side="right")


def _criterion(values: Floats, groups: npt.NDArray[np.int64], *, extra: int = 0) -> float:
    """BIC of one mean per group; `extra` counts the places of the cuts."""
    n = len(values)
    parameters = len(np.unique(groups)) + extra
    return float(n * np.log(_rest(values, groups) / n + FLOOR) + parameters * np.log(n))


def _rest(values: Floats, groups: npt.NDArray[np.int64]) -> float:
    """The sum of squares within groups."""
    count = np.bincount(groups)
    sums, squares = np.bincount(groups, values), np.bincount(groups, values**2)
    return float((squares - np.divide(sums**2, count, out=np.zeros(len(count)), where=count > 0)).sum())


def _explained(values: Floats, groups: npt.NDArray[np.int64]) -> float:
    total = float(((values - values.mean()) ** 2).sum())
    return 1.0 - _rest(values, groups) / total if total > 0 else 0.0
