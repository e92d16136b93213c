r"""Σ M_f y and Σ y over the training pairs of every resample: from all pairs, or from sums over items.

Few items: distances of all pairs are there for the ranks anyway, and a resample goes only through the pairs
that it changes. Many items, whose pairs have no room: the closed form of `moments`, with the resamples that
deal the same items taken together, so that a layer is passed a few times and not once for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from thinkalike.encoding.moments import FeatureSide, diagonal_moments, feature_side
from thinkalike.encoding.pairkernels import sum_among, sum_by_item
from thinkalike.encoding.plan import EncodingPlan
from thinkalike.encoding.scoring import PatternCoder
from thinkalike.errors import InvalidInput
from thinkalike.pairs.distances import QuadraticTarget, Target


class TrainingSums(NamedTuple):
    """Σ M_f y (n_folds, n_resamples, n_features) and Σ y (n_folds, n_resamples) over training pairs."""

    cross: np.ndarray
    totals: np.ndarray


class Summing(Protocol):
    """The sums of one layer."""

    def __call__(self, target: Target) -> TrainingSums: ...


@dataclass(frozen=True)
class OverPairs:
    """From the distances of all pairs.

    Attributes
    ----------
    multiplicities : array of shape (n_resamples, n_kept)
    patterns : array of shape (n_patterns, n_features), squared differences
    ids : the pattern of every pair of kept items, in condensed order
    """

    plan: EncodingPlan
    multiplicities: np.ndarray
    patterns: np.ndarray
    ids: np.ndarray

    @classmethod
    def of(cls, plan: EncodingPlan, multiplicities: np.ndarray) -> OverPairs:
        coder = PatternCoder(plan.differences)
        keys, ids = np.unique(coder.all_keys(), return_inverse=True)
        return cls(plan, multiplicities, coder.values(keys), ids.astype(np.int32))

    def __call__(self, target: Target) -> TrainingSums:
        """With u = 1 − w, which is 0 for whatever counts once, wᵀHw = 1ᵀH1 − 2 uᵀH1 + uᵀHu: only pairs of
        items that a resample changes are gone through again. All sums are by the folds of the two items.
        """
        plan, u = self.plan, 1.0 - self.multiplicities
        y, _ = target.within(np.arange(len(plan.kept)))
        columns = np.column_stack([self.patterns, np.ones(len(self.patterns))])
        n_folds, n_columns = plan.n_folds, columns.shape[1]
        reached = np.zeros((len(plan.kept), n_folds, n_columns))  # of each item to those of a fold
        sum_by_item(y, self.ids, plan.fold, columns, reached)
        sums = np.empty((len(u), n_folds, n_folds, n_columns))
        for r, one in enumerate(u):
            changed, among = np.flatnonzero(one), np.zeros((n_folds, n_folds, len(columns)))
            sum_among(y, self.ids, plan.fold, changed, one[changed], len(one), among)
            sums[r] = among @ columns
        for k in range(n_folds):
            inside = plan.fold == k
            own = reached[inside].reshape(int(inside.sum()), -1)
            sums[:, k] += (own.sum(axis=0) / 2 - u[:, inside] @ own).reshape(len(u), n_folds, n_columns)
        whole = sums.sum(axis=(1, 2))
        # What goes on between two folds is in both orders of them: its row and its column leave a fold out.
        cross = np.stack(
            [
                whole - sums[:, k].sum(axis=1) - sums[:, :, k].sum(axis=1) + sums[:, k, k]
                for k in range(n_folds)
            ]
        )
        return TrainingSums(cross[:, :, :-1], cross[:, :, -1])


@dataclass(frozen=True)
class OverItems:
    """From sums over the items of the blocks that resamples and folds cut them into.

    Attributes
    ----------
    sides : one for each run of resamples that are cut alike; its sets are (resample, fold), fold by fold
    """

    n_folds: int
    sides: tuple[FeatureSide, ...]

    @classmethod
    def of(cls, plan: EncodingPlan, multiplicities: np.ndarray) -> OverItems:
        if multiplicities.max() > 1:
            raise InvalidInput(
                f"Items are drawn more than once, and the pairs of {len(plan.kept):,} items have no room: "
                "leave items out instead, or take fewer."
            )
        return cls(plan.n_folds, tuple(_side(plan, run) for run in runs_cut_alike(multiplicities > 0)))

    def feature_moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs (n_folds, n_resamples), Σ M_f and Σ M_f M_g with one and two axes of features more."""
        return (
            self._by_fold([side.n_pairs for side in self.sides]),
            self._by_fold([side.sums for side in self.sides]),
            self._by_fold([side.grams for side in self.sides]),
        )

    def __call__(self, target: Target) -> TrainingSums:
        if not isinstance(target, QuadraticTarget):
            raise InvalidInput(
                f"This distance is made pair by pair, and the pairs of {target.n_items:,} items have no "
                "room: use resamples=0 (--resamples 0), or a distance such as euclidean or cosine."
            )
        moments = [diagonal_moments(side, target) for side in self.sides]
        cross = self._by_fold([np.stack([one.cross for one in part]) for part in moments])
        return TrainingSums(
            cross, self._by_fold([np.array([m.target_sum for m in part]) for part in moments])
        )

    def _by_fold(self, runs: list[np.ndarray]) -> np.ndarray:
        """(n_folds, n_resamples, …) from the sets of each run."""
        parts = [run.reshape(-1, self.n_folds, *run.shape[1:]) for run in runs]
        return np.concatenate(parts).swapaxes(0, 1)


def _side(plan: EncodingPlan, kept: np.ndarray) -> FeatureSide:
    """The feature side of some resamples, `kept` (n_some, n_items): blocks are fold × part."""
    parts, part = np.unique(kept, axis=1, return_inverse=True)  # (n_some, n_parts)
    n_parts = parts.shape[1]
    block = plan.fold * n_parts + part.ravel()
    fold_of = np.repeat(np.arange(plan.n_folds), n_parts)
    inside = np.tile(parts, plan.n_folds)  # of each block, in which resamples it is
    membership = inside[:, None, :] & (fold_of[None, None, :] != np.arange(plan.n_folds)[None, :, None])
    return feature_side(plan.differences, block, membership.reshape(-1, len(fold_of)))


def runs_cut_alike(kept: np.ndarray) -> list[np.ndarray]:
    """The resamples (n_resamples, n_items) in runs, each of which cuts the items into few parts.

    Leaving out each of ten parts in turn needs ten parts, a split into halves two; runs of other resamples
    are of one, into what stays and what goes.
    """
    runs: list[np.ndarray] = []
    first = 0
    for last in range(1, len(kept) + 1):
        more = kept[first : last + 1]
        if last == len(kept) or np.unique(more, axis=1).shape[1] > len(more) + 1:
            runs.append(kept[first:last])
            first = last
    return runs
