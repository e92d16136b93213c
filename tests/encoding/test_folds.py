"""Folds: balanced, together, the user's own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinkalike.encoding.folds import as_labels, balanced_folds, context_groups, given_folds, groups_by
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.stimuli.feature_coding import code_features


@dataclass
class Words:
    """What the functions need of Stimuli."""

    items: pd.DataFrame
    sentences: pd.Series


WORDS = Words(
    pd.DataFrame(
        {
            "sentence": ["s1", "s1", "s2", "s2", "s3", "s3"],
            "word": ["the", "cat", "the", "cat", "the", "cat"],
            "start": [0, 4, 0, 4, 0, 8],
            "template": ["t", "t", "t", "t", "u", "u"],
        }
    ),
    pd.Series({"s1": "the cat sat", "s2": "the cat ran", "s3": "the old cat"}),
)


@settings(max_examples=40)
@given(
    n=st.integers(10, 80), n_folds=st.integers(2, 5), n_groups=st.integers(5, 40), seed=st.integers(0, 1000)
)
def test_groups_stay_together_and_sizes_are_close(n: int, n_folds: int, n_groups: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = code_features(
        pd.DataFrame({"a": rng.choice(["x", "y", "z"], n), "b": rng.choice(["u", "v"], n)})
    )
    groups = np.concatenate([np.arange(n_folds), rng.integers(0, n_groups, n - n_folds)])
    fold = balanced_folds(features, n_folds=n_folds, groups=groups, seed=seed)
    for g in np.unique(groups):
        assert len(np.unique(fold[groups == g])) == 1
    sizes = np.bincount(fold, minlength=n_folds)
    assert sizes.min() > 0
    assert sizes.max() - sizes.min() <= 2 * np.bincount(groups).max() + 2
    np.testing.assert_array_equal(fold, balanced_folds(features, n_folds=n_folds, groups=groups, seed=seed))


def test_levels_are_balanced_better_than_by_chance() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"rare": rng.random(1000) < 0.02, "common": rng.choice(list("abcd"), 1000)})
    fold = balanced_folds(code_features(table), n_folds=5, seed=0)
    assert np.ptp(np.bincount(fold)) <= 2
    for name in table:
        counts = pd.crosstab(fold, table[name])
        assert (counts.max() - counts.min()).max() <= 3, name
    other = balanced_folds(code_features(table), n_folds=5, seed=1)
    assert (fold != other).any()


def test_too_few_for_the_folds() -> None:
    features = code_features(pd.DataFrame({"a": ["x", "y", "x"]}))
    with pytest.raises(InvalidInput, match="Got 3 items for 5 folds: give more stimuli, or fewer folds"):
        balanced_folds(features, n_folds=5)
    with pytest.raises(InvalidInput, match="Got 1 groups of items that stay together for 2 folds"):
        balanced_folds(features, n_folds=2, groups=np.zeros(3))
    with pytest.raises(InvalidInput, match=r"Got 1 fold\(s\): give at least 2"):
        balanced_folds(features, n_folds=1)


def test_own_folds() -> None:
    np.testing.assert_array_equal(given_folds(["b", "b", "a", "a"], 4), [0, 0, 1, 1])
    with pytest.raises(InvalidInput, match="Got 3 folds for 4 items"):
        given_folds([0, 1, 0], 4)
    with pytest.raises(InvalidInput, match="All items are in one fold"):
        given_folds([1, 1, 1], 3)
    with pytest.raises(InvalidInput, match="A fold has one item"):
        given_folds([0, 0, 1], 3)
    with pytest.raises(InvalidInput, match=r"The folds of 1 item\(s\) are missing"):
        as_labels(["a", None, "b"], 3, "folds")


def test_the_same_word_after_the_same_text_is_one_group() -> None:
    np.testing.assert_array_equal(context_groups(WORDS), [0, 1, 0, 1, 0, 2])
    np.testing.assert_array_equal(groups_by(WORDS, "context"), [0, 1, 0, 1, 0, 2])
    np.testing.assert_array_equal(groups_by(WORDS, "sentence"), [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(groups_by(WORDS, "template"), [0, 0, 0, 0, 1, 1])
    np.testing.assert_array_equal(groups_by(WORDS, "none"), np.arange(6))
    with pytest.raises(UnknownName, match=r"no grouping of items 'sentense'\. Did you mean 'sentence'"):
        groups_by(WORDS, "sentense")


def test_items_that_are_no_words_are_on_their_own() -> None:
    images = Words(pd.DataFrame(index=["a", "b"]), pd.Series(dtype=str))
    np.testing.assert_array_equal(context_groups(images), [0, 1])
