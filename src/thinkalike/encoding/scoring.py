r"""Spearman's ρ between predicted and observed distances, from a table of patterns instead of the pairs.

With C_m pairs of pattern m, R_m the sum of their centred ranks of y, and r_m the centred average rank of the
prediction, ρ = Σ_m R_m r_m / √(Σ rank² · Σ_m C_m r_m²). Ties are averaged on both sides, as scipy does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinkalike.encoding.pairkernels import group_ties, table_correlation
from thinkalike.encoding.patterns import PairPatterns
from thinkalike.pairs.distances import Target
from thinkalike.pairs.ranks import centred_ranks, sort_distances

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
    ranks, spread = centred_ranks(*sort_distances(y, patterns.i, patterns.j, rounding))
    sums = np.bincount(patterns.ids, weights=ranks, minlength=len(patterns.counts))
    return RankedPairs(ranks, RankTable(patterns.counts, sums, spread))


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
