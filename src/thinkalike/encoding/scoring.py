r"""Spearman's ρ between predicted and observed distances, from a table of patterns instead of the pairs.

A pattern says which differences a pair of items shows, feature by feature, as one number. A prediction
depends on a pair only through its pattern, and there are few: at most 2^F for indicators. One pass over the
pairs finds them; scores and importances then follow from tables.

With C_m pairs of pattern m, R_m the sum of their centred ranks of y, and r_m the centred average rank of the
prediction, ρ = Σ_m R_m r_m / √(Σ rank² · Σ_m C_m r_m²). Ties are averaged on both sides, as scipy does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from thinkalike.encoding.pairkernels import all_pair_keys, group_ties, pair_keys, table_correlations
from thinkalike.pairs.distances import Target
from thinkalike.pairs.pairset import MAX_PAIRS, Pairs
from thinkalike.pairs.ranks import centred_ranks, sort_distances
from thinkalike.stimuli.differences import CodedFeature, FeatureDifferences

MAX_DISTINCT = 1024
_DENSE_KEYS = 1 << 22
_LARGEST_KEY = 1 << 62


class PatternCoder:
    """Numbers the patterns of a table of features.

    Attributes
    ----------
    size : int or None
        How many patterns are conceivable; None if they are too many to number (numeric differences).
    distinct : tuple of arrays
        For each feature, its distinct squared differences in rising order.
    """

    def __init__(self, differences: FeatureDifferences) -> None:
        self.differences = differences
        tables = [_difference_ids(f) for f in differences.features]
        self.size: int | None = None
        if any(table is None for table in tables):
            return
        self.distinct = tuple(table[0] for table in tables if table is not None)
        sizes = [len(d) for d in self.distinct]
        if float(np.prod([float(s) for s in sizes])) >= _LARGEST_KEY:
            return
        self.size = int(np.prod(sizes, dtype=np.int64))
        self.strides = np.concatenate([[1], np.cumprod(sizes[:-1], dtype=np.int64)]).astype(np.int64)
        ids = [table[1] for table in tables if table is not None]
        self._n_levels = np.array([len(t) for t in ids], dtype=np.int64)
        self._offsets = np.concatenate([[0], np.cumsum(self._n_levels[:-1] ** 2)]).astype(np.int64)
        self._tables = np.concatenate([t.ravel() for t in ids] + [np.zeros(1, dtype=np.int64)])
        self._codes = np.stack(
            [
                np.where(f.counted[f.codes], f.codes, -1) if f.is_indicator else f.codes
                for f in differences.features
            ],
            axis=1,
        )

    def keys(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """The pattern number of each pair (i, j)."""
        out = np.empty(len(i), dtype=np.int64)
        pair_keys(i, j, self._codes, self.strides, self._n_levels, self._offsets, self._tables, out)
        return out

    def all_keys(self) -> np.ndarray:
        """The pattern number of every pair of items, in condensed order."""
        n = len(self._codes)
        out = np.zeros(n * (n - 1) // 2, dtype=np.int64)
        by_feature = np.ascontiguousarray(self._codes.T)
        all_pair_keys(by_feature, self.strides, self._n_levels, self._offsets, self._tables, out)
        return out

    def values(self, keys: np.ndarray) -> np.ndarray:
        """The squared differences that patterns stand for: (n_patterns, n_features)."""
        columns = [d[(keys // s) % len(d)] for d, s in zip(self.distinct, self.strides, strict=True)]
        return np.stack(columns, axis=1)

    def part(self, keys: np.ndarray, features: np.ndarray) -> np.ndarray:
        """The share of `keys` that some features make up; the rest is `keys` less that."""
        total = np.zeros_like(keys)
        for f in features:
            stride, base = self.strides[f], len(self.distinct[f])
            total += (keys // stride) % base * stride
        return total


@dataclass(frozen=True)
class PairPatterns:
    """The patterns of the pairs of some items.

    Attributes
    ----------
    i, j : int arrays of shape (n_pairs,)
        The pairs, in condensed order unless they are a sample.
    ids : int array of shape (n_pairs,)
        Index of each pair's pattern.
    values : array of shape (n_patterns, n_features)
        Squared differences of each pattern.
    counts : array of shape (n_patterns,)
    keys : int array of shape (n_patterns,), or None
        Their numbers; None if the patterns cannot be numbered, and then every pair is its own pattern.
    n_all_pairs : int
        How many pairs there are; more than `n_pairs` if these are a sample.
    """

    n_items: int
    i: np.ndarray
    j: np.ndarray
    ids: np.ndarray
    values: np.ndarray
    counts: np.ndarray
    keys: np.ndarray | None
    coder: PatternCoder
    n_all_pairs: int

    @property
    def n_pairs(self) -> int:
        return len(self.i)

    @property
    def is_sample(self) -> bool:
        return self.n_pairs < self.n_all_pairs

    def select(self, pairs: np.ndarray) -> PairPatterns:
        """Some of the pairs (indices), with only the patterns that they have."""
        found, ids = np.unique(self.ids[pairs], return_inverse=True)
        return replace(
            self,
            i=self.i[pairs],
            j=self.j[pairs],
            ids=ids,
            values=self.values[found],
            counts=np.bincount(ids).astype(float),
            keys=None if self.keys is None else self.keys[found],
        )

    @cached_property
    def varies(self) -> np.ndarray:
        """For each feature, whether any pair differs in it."""
        return np.asarray((self.values > 0).any(axis=0))


def find_patterns(
    differences: FeatureDifferences, *, max_pairs: int = MAX_PAIRS, seed: int = 0
) -> PairPatterns:
    """The patterns of all pairs of items, or of a seeded sample if there are more than `max_pairs`."""
    n = len(differences)
    pairs = Pairs.of(n, max_pairs=max_pairs, seed=seed)
    i, j, n_all = pairs.i, pairs.j, pairs.n_all
    coder = PatternCoder(differences)
    if pairs.is_sample:
        warnings.warn(
            f"Scores are on a seeded sample of {len(i):,} of the {n_all:,} pairs of {n:,} items; raise "
            "max_pairs for more.",
            UserWarning,
            stacklevel=2,
        )
    if coder.size is None:
        values = np.stack([f.squared_differences(i, j) for f in differences.features], axis=1)
        every = np.arange(len(i))
        return PairPatterns(n, i, j, every, values, np.ones(len(i)), None, coder, n_all)
    keys = coder.all_keys() if len(i) == n_all else coder.keys(i, j)
    if coder.size <= _DENSE_KEYS:
        counts = np.bincount(keys, minlength=coder.size)
        found = np.flatnonzero(counts)
        index = np.zeros(coder.size, dtype=np.int32)
        index[found] = np.arange(len(found))
        ids, counts = index[keys], counts[found]
    else:
        found, ids, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return PairPatterns(n, i, j, ids, coder.values(found), counts.astype(float), found, coder, n_all)


def _difference_ids(f: CodedFeature) -> tuple[np.ndarray, np.ndarray] | None:
    """Distinct squared differences, and for each pair of levels which; an empty table for an indicator."""
    if f.is_indicator:
        return np.array([0.0, 1.0]), np.zeros((0, 0), dtype=np.int64)
    if f.n_levels > MAX_DISTINCT:
        return None
    distinct, ids = np.unique(np.round(f.table(), 12), return_inverse=True)
    if len(distinct) > MAX_DISTINCT:
        return None
    return distinct, ids.reshape(f.n_levels, f.n_levels).astype(np.int64)


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
