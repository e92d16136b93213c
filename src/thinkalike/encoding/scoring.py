r"""Spearman's ρ between predicted and observed distances, from a table of patterns instead of the pairs.

With C_m pairs of pattern m, R_m the sum of their centred ranks of y, and r_m the centred average rank of the
prediction, ρ = Σ_m R_m r_m / √(Σ rank² · Σ_m C_m r_m²). Ties are averaged on both sides, as scipy does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thinkalike.encoding.pairkernels import group_ties, table_correlations
from thinkalike.encoding.patterns import PairPatterns
from thinkalike.pairs.distances import Target
from thinkalike.pairs.ranks import centred_ranks, sort_distances

TIE = 1e-12
KEPT_PAIRS = 1 << 20
"""Ranks of more pairs than this are not kept: those of all folds of a layer would fill the memory"""


@dataclass(frozen=True)
class RankTable:
    """The observed ranks, added up by pattern.

    Attributes
    ----------
    counts : array of shape (n_patterns,), pairs of each pattern
    ranks : array of shape (n_patterns,), sums of the centred average ranks of y
    spread : float, Σ over pairs of the squared centred rank; 0 if all y are equal
    """

    counts: np.ndarray
    ranks: np.ndarray
    spread: float


@dataclass(frozen=True)
class RankedPairs:
    """The ranks of the pairs, added up in a table; pair by pair they are made again when asked for."""

    table: RankTable
    rank: Callable[[], np.ndarray]

    @cached_property
    def of_pairs(self) -> np.ndarray:
        """(n_pairs,) centred average ranks; few importances need them, and they are many."""
        return self.rank()


def rank_pairs(patterns: PairPatterns, target: Target, items: np.ndarray) -> RankedPairs:
    """Rank the observed distances among `items`, whose patterns are given."""

    def rank() -> tuple[np.ndarray, float]:
        y, rounding = distances_among(patterns, target, items)
        return centred_ranks(*sort_distances(y, patterns.i, patterns.j, rounding))

    return _tabulated(patterns, rank)


def distances_among(
    patterns: PairPatterns, target: Target, items: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances (n_pairs,) of the pairs of `items`, and (len(items),) how far rounding moves them."""
    if not patterns.is_sample:
        return target.within(items)
    y, rounding = target.between(items[patterns.i], items[patterns.j])
    return y, rounding[items]


def rank_values(y: np.ndarray, patterns: PairPatterns, rounding: np.ndarray | None = None) -> RankedPairs:
    """Rank condensed distances; those within the `rounding` of their items, of shape (n_items,), are tied."""
    return _tabulated(patterns, lambda: centred_ranks(*sort_distances(y, patterns.i, patterns.j, rounding)))


def _tabulated(patterns: PairPatterns, rank: Callable[[], tuple[np.ndarray, float]]) -> RankedPairs:
    ranks, spread = rank()
    sums = np.bincount(patterns.ids, weights=ranks, minlength=len(patterns.counts))
    table = RankTable(patterns.counts, sums, spread)
    return RankedPairs(table, (lambda: ranks) if len(ranks) <= KEPT_PAIRS else (lambda: rank()[0]))


def spearman(predictions: np.ndarray, table: RankTable) -> float:
    """ρ for the predictions of each pattern, of shape (n_patterns,).

    0 if all predictions are equal (nothing is explained), NaN if all distances are.
    """
    return float(spearman_each(predictions[None], table)[0])


def spearman_each(predictions: np.ndarray, table: RankTable) -> np.ndarray:
    """`spearman` of several predictions (n_fits, n_patterns) against the same distances: (n_fits,)."""
    scores: np.ndarray = table_correlations(predictions, TIE, table.counts, table.ranks, table.spread)
    return scores


def tie_groups(predictions: np.ndarray) -> tuple[np.ndarray, int]:
    """The rank of each prediction among the distinct ones, and their number.

    Predictions within `TIE` of the largest are tied: rounding must not order them.
    """
    group = np.empty(len(predictions), dtype=np.int64)
    tolerance = TIE * float(np.abs(predictions).max(initial=0.0))
    return group, group_ties(predictions, tolerance, group)
