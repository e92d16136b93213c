"""The feature side of an encoding: coded once for a table of stimuli, used for every layer of every model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeGuard, Union

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import issparse

from thinkalike.encoding.cells import pass_moments
from thinkalike.encoding.designs import Design, make_design
from thinkalike.encoding.folds import as_labels, balanced_folds, context_groups, given_folds, groups_by
from thinkalike.encoding.importance import (
    PERMUTING,
    FeatureSet,
    PatternSpace,
    make_feature_sets,
    pattern_space,
)
from thinkalike.encoding.moments import FeatureSide, Moments, diagonal_moments, feature_side, nested_sets
from thinkalike.encoding.rank_fit import check_patterns, rank_tables
from thinkalike.encoding.scoring import PairPatterns, RankTable, find_patterns
from thinkalike.encoding.settings import Settings, make_settings
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.pairs.distances import QuadraticTarget, Target
from thinkalike.pairs.preprocessing import NO_STEPS, Preprocessing, prepare_steps
from thinkalike.stimuli.differences import FeatureDifferences
from thinkalike.stimuli.feature_coding import code_features, require_variation

if TYPE_CHECKING:
    from thinkalike.stimuli.table import Stimuli

Features = Union[pd.DataFrame, "Stimuli", np.ndarray]
"""(n_items, n_features): a table, the stimuli that carry one, or plain numbers"""


@dataclass(frozen=True)
class JudgedPairs:
    """Pairs that models are judged on: those among `items`, with their patterns."""

    items: np.ndarray
    patterns: PairPatterns
    space: PatternSpace | None


@dataclass(frozen=True)
class EncodingPlan:
    """How to fit and judge any layer on one table of features; made by `plan_encoding`.

    Attributes
    ----------
    kept : int array of shape (n_kept,)
        The items in use: all, or one of each group with ``duplicates="collapse"``.
    fold : int array of shape (n_kept,)
    block : int array of shape (n_kept,)
        The finest parts that items are split into: the folds, or halves of them if there are only two.
    tests : one `JudgedPairs` per fold;  validations : one per block
    sets : for each set of items that is fitted on, the blocks that it leaves out
    """

    settings: Settings
    n_items: int
    kept: np.ndarray
    differences: FeatureDifferences
    design: Design
    feature_sets: tuple[FeatureSet, ...]
    fold: np.ndarray
    block: np.ndarray
    tests: tuple[JudgedPairs, ...]
    validations: tuple[JudgedPairs, ...]
    sets: tuple[frozenset[int], ...]
    side: FeatureSide | None
    steps: Preprocessing = NO_STEPS
    """What the vectors of the kept items go through first"""
    everyone: PairPatterns | None = None
    """The patterns of all pairs of kept items, for a fit by ranks"""

    @property
    def names(self) -> tuple[str, ...]:
        """What has an importance: declared groups, then the features outside them."""
        return tuple(p.name for p in self.feature_sets)

    @property
    def n_folds(self) -> int:
        return len(self.tests)

    @property
    def folds_are_halved(self) -> bool:
        """Whether the blocks are halves of folds; else they are the folds, and tests are validations."""
        return len(self.validations) > len(self.tests)

    def blocks_of(self, fold: int) -> frozenset[int]:
        return frozenset(int(b) for b in np.unique(self.block[self.fold == fold]))

    def ranks(self, target: Target) -> dict[frozenset[int], RankTable]:
        """The ranks of the pairs within each set of items; none unless W is fitted by ranks."""
        if self.everyone is None:
            return {}
        within = nested_sets(int(self.block.max()) + 1, self.sets)[:, self.block]
        return dict(zip(self.sets, rank_tables(self.everyone, target, within), strict=True))

    def moments(self, target: Target) -> dict[frozenset[int], Moments]:
        """The moments over each set of items, by the blocks that it leaves out."""
        found = set_moments(self.differences, target, self.design, self.block, self.sets, side=self.side)
        return dict(zip(self.sets, found, strict=True))


def set_moments(
    differences: FeatureDifferences,
    target: Target,
    design: Design,
    block: np.ndarray,
    left_out: Sequence[frozenset[int]],
    *,
    side: FeatureSide | None = None,
) -> list[Moments]:
    """Moments over the pairs within each set of items, all blocks but those left out; by the quickest way."""
    membership = nested_sets(int(block.max()) + 1, left_out)
    if design.name == "diagonal" and isinstance(target, QuadraticTarget):
        return diagonal_moments(side or feature_side(differences, block, membership), target)
    return pass_moments(differences, target, design, block, membership)


def plan_encoding(
    features: Features,
    *,
    preset: str = "default",
    groups: Mapping[str, Sequence[str]] | None = None,
    together: npt.ArrayLike | None = None,
    folds: npt.ArrayLike | None = None,
    duplicates: str = "together",
    coded: FeatureDifferences | None = None,
    **settings: object,
) -> EncodingPlan:
    """Code the features, make the folds, and find the patterns of their pairs.

    Parameters
    ----------
    features : DataFrame of shape (n_items, n_features), or Stimuli
    groups : mapping of name to features, optional
        Features whose importance is asked as one.
    together : optional
        Which items share a fold: one label per item; with Stimuli also "context" (the same word after the
        same text; the default), "none", or a column of the items, as "sentence".
    folds : labels, one per item, optional
        The folds themselves, instead of balanced ones.
    duplicates : {"together", "collapse"}
        Whether the items of a `together` group share a fold, or only the first of them is used.
    coded : the features of all items as `code_features` makes them, if that was done before
    settings : changes to the preset; see `Settings`
    """
    chosen = make_settings(preset, **settings)
    if chosen.folds_over != "items":
        raise InvalidInput(
            f"The preset {preset!r} has folds over pairs: use cross_validate, which plans them too."
        )
    if duplicates not in ("together", "collapse"):
        raise UnknownName.among("treatment of duplicates", duplicates, ("together", "collapse"))
    table = feature_table(features)
    label = together_labels(features, together, len(table))
    kept = np.arange(len(table))
    if duplicates == "collapse" and label is not None:
        kept = np.sort(np.unique(label, return_index=True)[1])
        label = None
    differences = coded
    if differences is None or len(kept) < len(table):
        differences = code_features(table.iloc[kept], ordered=chosen.ordered, missing=chosen.missing)
    require_variation(differences.features)
    if folds is not None:
        fold = given_folds(as_labels(folds, len(table), "folds")[kept], len(kept))
        chosen = replace(chosen, n_folds=int(fold.max()) + 1)
    else:
        fold = balanced_folds(differences, n_folds=chosen.n_folds, groups=label, seed=chosen.seed)
        check_sizes(fold)
    block = _blocks(differences, fold, label, chosen)
    feature_sets = make_feature_sets(differences.names, groups)
    tests = judge_each(differences, fold, chosen, feature_sets)
    halved = int(block.max()) > int(fold.max())
    validations = judge_each(differences, block, chosen, None) if halved else tests
    sets = _training_sets(fold, block, with_inner=chosen.has_inner_folds)
    design = make_design(chosen.design, len(differences.names))
    side = None
    if chosen.design == "diagonal":
        side = feature_side(differences, block, nested_sets(int(block.max()) + 1, sets))
    everyone = None
    if chosen.fit == "spearman":
        everyone = find_patterns(differences, max_pairs=chosen.max_pairs, seed=chosen.seed)
        check_patterns(everyone)
    return EncodingPlan(
        chosen,
        len(table),
        kept,
        differences,
        design,
        feature_sets,
        fold,
        block,
        tests,
        validations,
        sets,
        side,
        prepare_steps(chosen.steps, features if is_stimuli(features) else table).take(kept),
        everyone,
    )


def is_stimuli(features: Features) -> TypeGuard[Stimuli]:
    """Whether these are Stimuli, or like them; a table may have columns of any name."""
    return not isinstance(features, pd.DataFrame) and hasattr(features, "features")


def feature_table(features: Features) -> pd.DataFrame:
    """The DataFrame of features, which Stimuli carry and plain arrays become."""
    table = features.features if is_stimuli(features) else features
    if isinstance(table, np.ndarray):
        if table.ndim != 2:
            raise InvalidInput(
                f"Got features of shape {table.shape}: Reshape your data to (n_items, n_features)."
            )
        table = pd.DataFrame(table, columns=[f"x{k}" for k in range(table.shape[1])])
    if issparse(table):
        raise InvalidInput("Got features as a sparse array, which is not supported: give a DataFrame.")
    if not isinstance(table, pd.DataFrame):
        raise InvalidInput(f"Got features as {type(features).__name__}: give a DataFrame or Stimuli.")
    return table


def warn_of_sampling(spaces: Sequence[PatternSpace | None], settings: Settings) -> None:
    """Say that expected importance is not to be had, if it is asked for."""
    if settings.importance == "expected" and any(space is None for space in spaces):
        warnings.warn(
            "The features have too many patterns of differences for expected importance: importances are "
            f"means over {settings.n_permutations} seeded permutations instead. Binned features have fewer.",
            UserWarning,
            stacklevel=3,
        )


def judge(
    differences: FeatureDifferences,
    items: np.ndarray,
    settings: Settings,
    feature_sets: tuple[FeatureSet, ...] | None,
) -> JudgedPairs:
    """The pairs among some items; with feature sets, also what their exchange can make of the patterns."""
    patterns = find_patterns(differences.take(items), max_pairs=settings.max_pairs, seed=settings.seed)
    wanted = feature_sets is not None and settings.importance in PERMUTING
    return JudgedPairs(items, patterns, pattern_space(patterns, feature_sets or ()) if wanted else None)


def judge_each(
    differences: FeatureDifferences,
    part: np.ndarray,
    settings: Settings,
    feature_sets: tuple[FeatureSet, ...] | None,
) -> tuple[JudgedPairs, ...]:
    """The pairs among the items of each part 0, 1, …"""
    judged = tuple(
        judge(differences, np.flatnonzero(part == k), settings, feature_sets)
        for k in range(int(part.max()) + 1)
    )
    if feature_sets is not None:
        warn_of_sampling([j.space for j in judged], settings)
    return judged


def together_labels(features: Features, together: npt.ArrayLike | None, n_items: int) -> np.ndarray | None:
    """Which items share a fold, as numbers of shape (n_items,); None if every item is on its own."""
    if is_stimuli(features):
        if together is None:
            return context_groups(features)
        if isinstance(together, str):
            return groups_by(features, together)
    elif isinstance(together, str):
        raise InvalidInput(
            f"Got together={together!r} with a bare table of features: give one label per item."
        )
    return None if together is None else as_labels(together, n_items, "labels of what stays together")


def _blocks(
    differences: FeatureDifferences, fold: np.ndarray, label: np.ndarray | None, settings: Settings
) -> np.ndarray:
    """Folds, or halves of folds where one fold is all that is left to train on and α must be chosen on it."""
    if not settings.has_inner_folds or fold.max() >= 2:
        return fold
    block = np.empty_like(fold)
    for k in range(int(fold.max()) + 1):
        items = np.flatnonzero(fold == k)
        inner = None if label is None else label[items]
        halves = balanced_folds(differences.take(items), n_folds=2, groups=inner, seed=settings.seed)
        check_sizes(halves)
        block[items] = 2 * k + halves
    return block


def _training_sets(fold: np.ndarray, block: np.ndarray, *, with_inner: bool) -> tuple[frozenset[int], ...]:
    sets = []
    for k in range(int(fold.max()) + 1):
        test = frozenset(int(b) for b in np.unique(block[fold == k]))
        sets.append(test)
        if with_inner:
            sets += [test | {int(b)} for b in np.unique(block[fold != k])]
    return tuple(dict.fromkeys(sets))


def check_sizes(fold: np.ndarray) -> None:
    """Raise if a fold has no pair of items."""
    smallest = int(np.bincount(fold).min())
    if smallest < 2:
        raise InvalidInput(
            f"A fold would have {smallest} item(s), which make no pair: give more stimuli, or fewer folds."
        )
