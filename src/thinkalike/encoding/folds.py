"""Folds over items: balanced in size and in the levels of every feature, with like items kept together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.machine import compiled
from thinkalike.stimuli.differences import FeatureDifferences

if TYPE_CHECKING:
    from thinkalike.stimuli.table import Stimuli

_MAX_BALANCED_LEVELS = 50


def balanced_folds(
    differences: FeatureDifferences, *, n_folds: int = 5, groups: np.ndarray | None = None, seed: int = 0
) -> np.ndarray:
    """A fold for each item, of shape (n_items,).

    Greedy: the largest groups first, ties in random order, each to the fold that leaves Σ (count − wanted)² /
    wanted smallest, summed over the folds' sizes and over the levels of the features with up to 50 levels.

    Parameters
    ----------
    groups : array of shape (n_items,), optional
        Items with the same value share a fold.
    """
    n_items = len(differences)
    group = np.arange(n_items) if groups is None else as_labels(groups, n_items, "groups")
    n_groups = int(group.max(initial=-1)) + 1
    if n_folds < 2:
        raise InvalidInput(f"Got {n_folds} fold(s): give at least 2.")
    if n_groups < n_folds:
        what = "items" if groups is None else "groups of items that stay together"
        raise InvalidInput(f"Got {n_groups} {what} for {n_folds} folds: give more stimuli, or fewer folds.")
    level = _level_rows(differences)
    wanted = np.bincount(level.ravel(), minlength=int(level.max()) + 1) / n_folds
    # Sizes weigh as much as all features together: row 0 is shared by all items.
    importance = 1.0 / np.maximum(wanted, 1e-9)
    importance[0] *= level.shape[1]
    sizes = np.bincount(group)
    order = np.random.default_rng(seed).permutation(n_groups)
    order = order[np.argsort(-sizes[order], kind="stable")]
    members = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)])
    fold = np.empty(n_items, dtype=np.int64)
    _assign(order, members, starts, level, importance, n_folds, fold)
    return fold


def given_folds(folds: npt.ArrayLike, n_items: int) -> np.ndarray:
    """A fold for each item, numbered from 0, from the user's own labels."""
    fold = as_labels(folds, n_items, "folds")
    sizes = np.bincount(fold)
    if len(sizes) < 2:
        raise InvalidInput("All items are in one fold: give at least 2.")
    if sizes.min() < 2:
        raise InvalidInput("A fold has one item, which makes no pair: give each fold at least 2 items.")
    return fold


def as_labels(labels: npt.ArrayLike, n_items: int, what: str) -> np.ndarray:
    """Labels of any type as numbers 0, 1, … in order of appearance; one per item, none missing."""
    series = pd.Series(np.asarray(labels))
    if len(series) != n_items:
        raise InvalidInput(f"Got {len(series)} {what} for {n_items} items: give one per item.")
    if series.isna().any():
        raise InvalidInput(
            f"The {what} of {int(series.isna().sum())} item(s) are missing: give one per item."
        )
    codes, _ = pd.factorize(series)
    return codes.astype(np.int64)


def context_groups(stimuli: Stimuli) -> np.ndarray:
    """Items with the same word after the same text are one group: a causal model gives them the same vector.

    Parameters
    ----------
    stimuli : Stimuli

    Returns
    -------
    int array of shape (n_items,)
        The group of each item. Items that are not words in sentences are each their own.

    Examples
    --------
    >>> import pandas as pd
    >>> import thinkalike as ta
    >>> from thinkalike.encoding import context_groups
    >>> table = pd.DataFrame({
    ...     "text": ["she sings", "she sings", "she sleeps"],
    ...     "word": ["she", "sings", "she"],
    ...     "number": ["singular"] * 3,
    ... })
    >>> context_groups(ta.Stimuli.from_table(table)).tolist()
    [0, 1, 0]
    """
    items, sentences = stimuli.items, stimuli.sentences
    if not {"sentence", "word", "start"} <= set(items.columns):
        return np.arange(len(items))
    before = [sentences[s][:start] for s, start in zip(items["sentence"], items["start"], strict=True)]
    keys = pd.MultiIndex.from_arrays([before, items["word"]])
    codes, _ = pd.factorize(keys)
    return codes.astype(np.int64)


def groups_by(stimuli: Stimuli, by: str) -> np.ndarray:
    """Groups of items that share a fold: by "context" (see `context_groups`), or by a column of the items.

    The column "sentence" keeps the words of a sentence together; "none" leaves every item on its own.
    """
    items = stimuli.items
    if by == "context":
        return context_groups(stimuli)
    if by == "none":
        return np.arange(len(items))
    if by not in items.columns:
        raise UnknownName.among("grouping of items", by, ["context", "none", *items.columns])
    return as_labels(items[by], len(items), "groups")


def _level_rows(differences: FeatureDifferences) -> np.ndarray:
    """Which levels each item has, of shape (n_items, 1 + n_features); 0 is the level of all items."""
    columns, first = [np.zeros(len(differences), dtype=np.int64)], 1
    for f in differences.features:
        if f.n_levels <= _MAX_BALANCED_LEVELS:
            columns.append(f.codes + first)
            first += f.n_levels
    return np.stack(columns, axis=1)


@compiled()
def _assign(
    order: np.ndarray,
    members: np.ndarray,
    starts: np.ndarray,
    level: np.ndarray,
    importance: np.ndarray,
    n_folds: int,
    fold: np.ndarray,
) -> None:
    counts = np.zeros((n_folds, len(importance)))
    for g in order:
        best, lowest = 0, np.inf
        for k in range(n_folds):
            cost = 0.0
            for m in range(starts[g], starts[g + 1]):
                for e in range(level.shape[1]):
                    row = level[members[m], e]
                    cost += counts[k, row] * importance[row]
            if cost < lowest:
                best, lowest = k, cost
        for m in range(starts[g], starts[g + 1]):
            fold[members[m]] = best
            for e in range(level.shape[1]):
                counts[best, level[members[m], e]] += 1.0
