r"""How much of a layer's geometry holds for other sentences, and how alike two layers are in that.

Items alike in every feature form a *condition*. Deal the sentences into two halves and take, in each, the
mean vector of every condition that both have. With s(a, b') the measure between layer a in one half and layer
b in the other, averaged over both ways and several deals:

    reliability of a = s(a, a'),   ceiling = √(s(a, a') s(b, b')),   disattenuated = s(a, b') / ceiling

What is particular to the sentences that were shown counts nowhere, for no sentence stands on both sides
(Spearman 1904).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import csr_array

from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats
from thinkalike.measures.measure import Measure
from thinkalike.pairs.distances import DistanceLike, make_target
from thinkalike.pairs.pairset import Pairs
from thinkalike.pairs.ranks import standardised_ranks

FEWEST = 10
"""Conditions that both halves must have"""
DEALS = 10
"""Deals of the sentences into halves"""
HALF_PAIRS = 10_000
"""Pairs of conditions that RSA across halves is computed from: of more, a seeded sample"""
OF_TWO_VECTORS = ("euclidean", "cosine", "correlation", "manhattan")
"""Distances that are the same for means as for items: they know nothing but the two vectors"""

Ranks = npt.NDArray[np.float32]


class AcrossHalves(NamedTuple):
    """Between all layers, (n_layers, n_layers); NaN where a layer is not reliable at all."""

    across: Floats
    ceiling: Floats
    disattenuated: Floats

    @property
    def reliability(self) -> Floats:
        """(n_layers,) of each layer with itself in the other half."""
        return np.diag(self.across)


@dataclass(frozen=True, eq=False)
class HalvesPlan:
    """Deals of the sentences into halves, as matrices that take items to the means of their conditions."""

    averages: tuple[tuple[csr_array, csr_array], ...] = field(repr=False)
    """For each deal, of either half: (n_conditions, n_items), over the conditions that both have"""
    seed: int = 0

    def means(self, X: npt.NDArray[np.floating], deal: int) -> tuple[Floats, Floats]:
        """The mean vectors of the conditions in either half, (n_conditions, n_units)."""
        X = np.asarray(X, dtype=np.float64)
        first, second = (average @ X for average in self.averages[deal])
        return first, second

    def ranks(self, X: npt.NDArray[np.floating], distance: DistanceLike = "euclidean") -> list[Ranks]:
        """For each deal (2, n_pairs) standardised ranks of the distances between conditions."""
        found = []
        for deal, (average, _) in enumerate(self.averages):
            pairs = Pairs.of(average.shape[0], max_pairs=HALF_PAIRS, seed=self.seed)
            halves = self.means(X, deal)
            found.append(
                np.stack([standardised_ranks(pairs, make_target(half, distance)) for half in halves])
            )
        return found


def plan_halves(
    conditions: Sequence[object] | np.ndarray,
    sentences: Sequence[object] | np.ndarray | None,
    *,
    n_deals: int = DEALS,
    seed: int = 0,
) -> HalvesPlan:
    """Deal the sentences; the same deals for every layer.

    Parameters
    ----------
    conditions : of each item; items of one condition are averaged within a half.
    sentences : of each item; None if every item stands for itself.
    """
    condition, _ = pd.factorize(np.asarray(conditions))
    owner, _ = pd.factorize(np.arange(len(condition)) if sentences is None else np.asarray(sentences))
    rng, averages = np.random.default_rng(seed), []
    for _ in range(n_deals):
        half = rng.permutation(np.arange(owner.max() + 1) % 2)[owner]
        counts = [np.bincount(condition[half == h], minlength=condition.max() + 1) for h in (0, 1)]
        both = np.flatnonzero((counts[0] > 0) & (counts[1] > 0))
        if len(both) < FEWEST:
            raise InvalidInput(
                f"Only {len(both)} combinations of feature values stand in both halves of the sentences, and "
                f"{FEWEST} are needed: show more sentences, or choose fewer features."
            )
        first, second = (_average(condition, half == h, both, counts[h]) for h in (0, 1))
        averages.append((first, second))
    return HalvesPlan(tuple(averages), seed)


def across_halves(
    measure: Measure, layers: Sequence[npt.NDArray[np.floating]], plan: HalvesPlan
) -> AcrossHalves:
    """A similarity between layers of one half of the sentences and layers of the other."""
    found = []
    for deal in range(len(plan.averages)):
        halves = [plan.means(X, deal) for X in layers]
        found.append(measure.matrix([first for first, _ in halves], [second for _, second in halves]))
    return _summed_up(found)


def rsa_across_halves(ranks: Sequence[Sequence[Ranks]]) -> AcrossHalves:
    """The same for RSA, from the ranks of every layer (`HalvesPlan.ranks`)."""
    found = []
    for of_deal in zip(*ranks, strict=True):
        first, second = np.stack(of_deal, axis=1).astype(np.float64)
        found.append(first @ second.T / first.shape[1])
    return _summed_up(found)


def _summed_up(matrices: Sequence[Floats]) -> AcrossHalves:
    """The mean over deals and both ways."""
    across = np.mean([(matrix + matrix.T) / 2 for matrix in matrices], axis=0)
    own = np.where(np.diag(across) > 0, np.diag(across), np.nan)
    ceiling = np.sqrt(np.outer(own, own))
    return AcrossHalves(across, ceiling, across / ceiling)


def _average(
    condition: npt.NDArray[np.int64],
    chosen: npt.NDArray[np.bool_],
    kept: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
) -> csr_array:
    """Takes items to the mean of each kept condition among the chosen, (n_kept, n_items)."""
    place = np.full(len(counts), -1)
    place[kept] = np.arange(len(kept))
    items = np.flatnonzero(chosen & (place[condition] >= 0))
    weights = 1.0 / counts[condition[items]]
    return csr_array((weights, (place[condition[items]], items)), shape=(len(kept), len(condition)))
