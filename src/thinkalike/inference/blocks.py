r"""Do the layers of a model fall into blocks, or are they places on a line?

Constant blocks (every block of layers has one mean similarity with every other) leave a share φ of the
variance over pairs of layers unexplained. Layers on a line, similarity falling with |t_i − t_j|, look like
blocks too where the steps happen to be uneven. So φ is held against layers put on a line *at random* (gaps
between them are exponential, the most uneven that have no structure), for similarities that fall in
several ways: the least favourable of them counts. p is how often such a gradient looks as much like blocks,
with any of the numbers of blocks that were tried.

What sentences differ in is no structure. With the matrices of two halves of the sentences, φ is the share of
what *both* halves show: Σ r r' / Σ c c', with residuals r and deviations c of the one half and r', c' of the
other, and the gradients get the same noise. Without halves, noise counts as lack of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, combinations_with_replacement, pairwise

import numpy as np
import numpy.typing as npt

from thinkalike.labels import Floats

Cuts = tuple[int, ...]

SMALLEST = 4
"""With fewer layers there is nothing to tell blocks from a gradient"""
FLOOR = 1e-4
"""Added to the mean squared error, so that no fit is infinitely better: differences of 0.01 are not seen"""
ALPHA = 0.05
FALLING: tuple[Callable[[Floats], Floats], ...] = (
    lambda d: -d,
    lambda d: np.exp(-d / 1.0),
    lambda d: np.exp(-d / 0.3),
    lambda d: np.exp(-((d / 0.5) ** 2)),
    lambda d: np.exp(-((d / 0.25) ** 2)),
)
"""How similarity may fall with the distance d of two places on a line of length 1"""


@dataclass(frozen=True)
class Blocks:
    """The best division of layers into contiguous blocks.

    Attributes
    ----------
    starts
        The place of the first layer of each block; the first is 0.
    within, between
        Mean similarity of different layers in one block, and in different blocks.
    explained, by_distance
        Share of the variance over pairs of layers that the blocks explain, 1 − φ; and that |i − j| explains.
    p
        How often layers at random places on a line look as much like blocks.
    """

    starts: tuple[int, ...]
    n_layers: int
    within: float
    between: float
    explained: float
    by_distance: float
    p: float
    halves: bool = field(default=False, repr=False)

    @property
    def better(self) -> bool:
        """Whether these are blocks rather than a gradient."""
        return self.p <= ALPHA and self.within > self.between

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(b - a for a, b in pairwise((*self.starts, self.n_layers)))

    @property
    def contrast(self) -> float:
        return self.within - self.between


def find_blocks(
    similarity: Floats,
    *,
    halves: tuple[Floats, Floats] | None = None,
    n_blocks: Sequence[int] = (2, 3, 4),
    smallest: int = 1,
    n_simulations: int = 399,
    seed: int = 0,
) -> Blocks | None:
    """The best contiguous blocks of a symmetric matrix (n, n); None for fewer than four layers.

    Parameters
    ----------
    halves : the same matrix from each half of the sentences.
    n_blocks : how many blocks to try; never more than half as many as there are layers.
    smallest : the length that a block must have at least.
    n_simulations : gradients to hold them against, for each way of falling.
    """
    similarity = np.asarray(similarity, dtype=np.float64)
    n = len(similarity)
    partitions = _partitions(n, tuple(n_blocks), smallest) if n >= SMALLEST else ()
    if not partitions:
        return None
    i, j = np.triu_indices(n, k=1)
    values = similarity[i, j]
    cuts = min(partitions, key=lambda one: _criterion(values, _cells(one, i, j), extra=len(one)))
    pair = (similarity, similarity) if halves is None else tuple(np.asarray(h, dtype=float) for h in halves)
    first, second = pair
    noise = 0.0 if halves is None else float((first - second)[i, j].std() / np.sqrt(2))
    spread = _reliable_spread(first, second)
    label = np.searchsorted(cuts, np.arange(n), side="right")
    same = label[i] == label[j]
    phi = _unexplained(first[None], second[None], (cuts,))[0, 0]
    null = _gradient_null(
        n, tuple(n_blocks), smallest, round(noise / spread, 2) if spread > 0 else 0.0, n_simulations, seed
    )
    return Blocks(
        starts=(0, *cuts),
        n_layers=n,
        within=float(values[same].mean()) if same.any() else float("nan"),
        between=float(values[~same].mean()),
        explained=float(1 - phi),
        by_distance=_explained(values, j - i),
        p=_p_of(phi, len(cuts) + 1, null) if np.isfinite(phi) else 1.0,
        halves=halves is not None,
    )


def _p_of(phi: float, k: int, null: dict[int, Floats]) -> float:
    """How often a gradient is as extreme with some number of blocks as this is with `k`, at worst.

    Numbers of blocks are made comparable by their own p-values; `null` has φ of the best partition into each
    number of blocks, (n_ways, n_simulations).
    """
    worst = 0.0
    for way in range(len(null[k])):
        own = (1 + (null[k][way] <= phi).sum()) / (1 + len(null[k][way]))
        each = np.stack([_ranked(null[other][way]) for other in null])
        worst = max(worst, float((1 + (each.min(axis=0) <= own).sum()) / (1 + each.shape[1])))
    return worst


def _ranked(values: Floats) -> Floats:
    """The p-value of each simulation among the others: small where it looks most like blocks."""
    return np.searchsorted(np.sort(values), values, side="right") / len(values)


@lru_cache(maxsize=64)
def _gradient_null(
    n: int, n_blocks: tuple[int, ...], smallest: int, noise: float, n_simulations: int, seed: int
) -> dict[int, Floats]:
    """φ of the best partition into each number of blocks, for layers at random places on a line.

    `noise` is in units of the standard deviation of the similarities.
    """
    rng = np.random.default_rng(seed)
    gaps = rng.exponential(size=(n_simulations, n - 1))
    places = np.concatenate([np.zeros((n_simulations, 1)), gaps.cumsum(axis=1)], axis=1)
    places /= places[:, -1:]
    distance = np.abs(places[:, :, None] - places[:, None, :])
    partitions = _partitions(n, n_blocks, smallest)
    sizes = np.array([len(cuts) + 1 for cuts in partitions])
    found: dict[int, list[Floats]] = {int(k): [] for k in np.unique(sizes)}
    i, j = np.triu_indices(n, k=1)
    for falling in FALLING:
        similarity = falling(distance)
        scale = noise * similarity[:, i, j].std(axis=1)[:, None, None]
        halves = [
            similarity + scale * _symmetric_noise(n_simulations, n, rng) for _ in range(2 if noise else 1)
        ]
        phi = _unexplained(halves[0], halves[-1], partitions)  # (n_simulations, n_partitions)
        for k in found:
            found[k].append(phi[:, sizes == k].min(axis=1))
    return {k: np.stack(ways) for k, ways in found.items()}


def _symmetric_noise(count: int, n: int, rng: np.random.Generator) -> Floats:
    drawn = np.triu(rng.standard_normal((count, n, n)), k=1)
    return drawn + np.swapaxes(drawn, 1, 2)


def _unexplained(first: Floats, second: Floats, partitions: Sequence[Cuts]) -> Floats:
    """φ of every partition for every pair of matrices (s, n, n): (s, n_partitions).

    Sums over rectangles of pairs of layers come from running sums, so that a partition costs a few lookups.
    """
    n = first.shape[1]
    upper = np.triu(np.ones((n, n)), k=1)
    counts, a, b = (_running(np.where(upper, m, 0.0)) for m in (upper[None], first, second))
    products = (np.where(upper, first * second, 0.0)).sum(axis=(1, 2))
    total = products - a[:, n, n] * b[:, n, n] / counts[0, n, n]
    unexplained = np.empty((len(first), len(partitions)))
    for p, cuts in enumerate(partitions):
        edges = (0, *cuts, n)
        explained = np.zeros(len(first))
        for (r0, r1), (c0, c1) in combinations_with_replacement(list(pairwise(edges)), 2):
            count = _rectangle(counts, r0, r1, c0, c1)[0]
            if count:
                explained += _rectangle(a, r0, r1, c0, c1) * _rectangle(b, r0, r1, c0, c1) / count
        unexplained[:, p] = products - explained
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total[:, None] > 0, unexplained / total[:, None], np.inf)


def _running(matrices: Floats) -> Floats:
    """(s, n + 1, n + 1) sums over all rows and columns before."""
    sums = np.zeros((len(matrices), matrices.shape[1] + 1, matrices.shape[2] + 1))
    sums[:, 1:, 1:] = matrices.cumsum(axis=1).cumsum(axis=2)
    return sums


def _rectangle(running: Floats, r0: int, r1: int, c0: int, c1: int) -> Floats:
    found: Floats = running[:, r1, c1] - running[:, r0, c1] - running[:, r1, c0] + running[:, r0, c0]
    return found


def _reliable_spread(first: Floats, second: Floats) -> float:
    """The standard deviation over pairs of layers of what two matrices share."""
    i, j = np.triu_indices(len(first), k=1)
    x, y = first[i, j], second[i, j]
    return float(np.sqrt(max(((x - x.mean()) * (y - y.mean())).mean(), 0.0)))


@lru_cache(maxsize=64)
def _partitions(n: int, n_blocks: tuple[int, ...], smallest: int) -> tuple[Cuts, ...]:
    return tuple(_cuts(n, n_blocks, smallest))


def _cuts(n: int, n_blocks: Sequence[int], smallest: int) -> Iterator[Cuts]:
    for k in (k for k in n_blocks if 2 * k <= n):
        for cuts in combinations(range(1, n), k - 1):
            if all(b - a >= smallest for a, b in pairwise((0, *cuts, n))):
                yield cuts


def _cells(cuts: Cuts, i: npt.NDArray[np.int64], j: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Which pair of blocks each pair of layers belongs to."""
    return np.searchsorted(cuts, i, side="right") * (len(cuts) + 1) + np.searchsorted(cuts, j, side="right")


def _criterion(values: Floats, groups: npt.NDArray[np.int64], *, extra: int = 0) -> float:
    """BIC of one mean per group, to choose among partitions; `extra` counts the places of the cuts."""
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
