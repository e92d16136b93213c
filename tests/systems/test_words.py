"""Which tokens a word is made of: pure functions on offsets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from thinkalike.errors import UnknownName
from thinkalike.systems.words import Groups, check_pooling, mean_over, tokens_of_spans


@pytest.mark.parametrize(
    ("offsets", "span", "expected"),
    [
        ([(0, 0), (0, 3), (4, 7), (0, 0)], (4, 7), [2]),  # special tokens belong to no word
        ([(0, 3), (3, 7), (7, 9)], (4, 9), [1, 2]),  # the leading space is part of the token
        ([(0, 3), (3, 4), (4, 7)], (4, 7), [2]),  # the space is a token of its own
        ([(0, 1), (0, 1), (0, 1), (0, 1), (1, 4)], (0, 1), [0, 1, 2, 3]),  # the bytes of an emoji
        ([(0, 3), (3, 5)], (0, 2), [0]),  # "do" in "don" + "'t"
        ([(0, 3), (3, 5)], (2, 5), [0, 1]),  # "n't" in "don" + "'t"
        ([(0, 3), (5, 8)], (3, 5), []),  # nothing there
        ([(0, 3), (3, 3), (3, 6)], (2, 4), [0, 2]),  # an empty token
    ],
)
def test_tokens_that_share_a_character(offsets, span, expected):
    found = tokens_of_spans(np.array(offsets), *(np.array([edge]) for edge in span))
    assert np.flatnonzero(found[0]).tolist() == expected


@settings(max_examples=60)
@given(st.data())
def test_tokens_of_spans_by_brute_force(data):
    cuts = sorted(data.draw(st.sets(st.integers(0, 30), min_size=2, max_size=12)))
    offsets = list(itertools.pairwise(cuts))
    edges = st.sets(st.integers(0, 30), min_size=2, max_size=2).map(sorted)
    spans = data.draw(st.lists(edges, min_size=1, max_size=4))
    found = tokens_of_spans(np.array(offsets), *np.array(spans).T)
    expected = [[bool(set(range(*token)) & set(range(*span))) for token in offsets] for span in spans]
    assert found.tolist() == expected


def groups_of(lists):
    members = np.repeat(np.arange(len(lists)), [len(one) for one in lists])
    positions = np.array([position for one in lists for position in one], dtype=np.int64)
    return Groups.of_members(members, positions, len(lists))


def test_members_are_grouped_in_their_order():
    groups = Groups.of_members(np.array([2, 0, 2, 0]), np.array([5, 9, 3, 7]), 3)
    assert groups.positions.tolist() == [9, 7, 5, 3]
    assert groups.sizes.tolist() == [2, 0, 2]


def test_chosen_tokens():
    groups = groups_of([[3, 4, 7], [], [1]])
    assert groups.chosen("last").positions.tolist() == [7, 1]
    assert groups.chosen("first").positions.tolist() == [3, 1]
    assert groups.chosen("first").sizes.tolist() == groups.chosen("last").sizes.tolist() == [1, 0, 1]
    assert groups.chosen("mean") is groups.chosen("all") is groups


def test_regrouping():
    groups = groups_of([[3, 4], [], [1]])
    assert groups.without_empty().bounds.tolist() == [0, 2, 3]
    assert groups.one_by_one().bounds.tolist() == [0, 1, 2, 3]


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), min_size=1, max_size=8),
    st.integers(0, 99),
)
def test_means_over_groups_by_brute_force(lists, seed):
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(10, 3)).astype(np.float32)
    which = rng.integers(0, len(lists), size=5)
    positions, mask = groups_of(lists).padded(which)
    found = mean_over(torch.from_numpy(states), torch.from_numpy(positions), torch.from_numpy(mask))
    expected = np.stack([states[lists[group]].mean(0) for group in which])
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("positions", [[[2], [0]], [[2, 1], [0, 3]]])
def test_means_are_in_single_precision(dtype, positions):
    states = torch.randn(4, 3).to(dtype)
    positions, mask = torch.tensor(positions), torch.ones(2, len(positions[0]), dtype=torch.bool)
    found = mean_over(states, positions, mask)
    torch.testing.assert_close(found, states.float()[positions].mean(1))


def test_means_of_half_precision_are_taken_in_single():
    states = torch.tensor([[1000.0], [0.5]], dtype=torch.float16)
    found = mean_over(states, torch.tensor([[0, 1]]), torch.tensor([[True, True]]))
    assert found.dtype == torch.float32
    assert found.item() == 500.25  # 500.0 or 500.5 in float16


def test_unknown_pooling():
    with pytest.raises(UnknownName, match=r"no pooling 'max'. Known: last, first, mean, all, cls"):
        check_pooling("max")
