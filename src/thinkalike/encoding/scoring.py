r"""Spearman's ρ between predicted and observed distances, from a table of patterns instead of the pairs.

With C_m pairs of pattern m, R_m the sum of their centred ranks of y, and r_m the centred average rank of the
prediction, ρ = Σ_m R_m r_m / √(Σ rank² · Σ_m C_m r_m²). Ties are averaged on both sides, as scipy does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinkalike.encoding.distances import Target
from thinkalike.encoding.pairkernels import centred_ranks, group_ties, table_correlation, tie_stops
from thinkalike.encoding.patterns import PairPatterns

TIE = 1e-12


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
    """The ranks pair by pair, `of_pairs` of shape (n_pairs,), and their table."""

    of_pairs: np.ndarray
    table: RankTable


def rank_pairs(patterns: PairPatterns, target: Target, items: np.ndarray) -> RankedPairs:
    """Rank the observed distances among `items`, whose patterns are given."""
    if patterns.is_sample:
        y, rounding = target.between(items[patterns.i], items[patterns.j])
        rounding = rounding[items]
    else:
        y, rounding = target.within(items)
    return rank_values(y, patterns, rounding)


def rank_values(y: np.ndarray, patterns: PairPatterns, rounding: np.ndarray | None = None) -> RankedPairs:
    """Rank condensed distances; those within the `rounding` of their items, of shape (n_items,), are tied."""
    order, stops = sort_pairs(y, patterns, rounding)
    ranks, sums = np.empty(len(y)), np.zeros(len(patterns.counts))
    spread = centred_ranks(order, stops, patterns.ids, ranks, sums)
    return RankedPairs(ranks, RankTable(patterns.counts, sums, spread))


def sort_pairs(
    y: np.ndarray, patterns: PairPatterns, rounding: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The order of the pairs by distance, of shape (n_pairs,), and where each run of equal distances ends."""
    order, stops = np.argsort(y), np.empty(len(y), dtype=np.int64)
    slack = np.zeros(patterns.n_items) if rounding is None else rounding
    n_runs = tie_stops(y, order, patterns.i, patterns.j, slack, stops)
    return order, stops[:n_runs]


def spearman(predictions: np.ndarray, table: RankTable) -> float:
    """ρ for the predictions of each pattern, of shape (n_patterns,).

    0 if all predictions are equal (nothing is explained), NaN if all distances are.
    """
    group, n_groups = tie_groups(predictions)
    return float(table_correlation(group, n_groups, table.counts, table.ranks, table.spread))


def tie_groups(predictions: np.ndarray) -> tuple[np.ndarray, int]:
    """The rank of each prediction among the distinct ones, and their number.

    Predictions within `TIE` of the largest are tied: rounding must not order them.
    """
    group = np.empty(len(predictions), dtype=np.int64)
    tolerance = TIE * float(np.abs(predictions).max(initial=0.0))
    return group, group_ties(predictions, tolerance, group)
