"""Which tokens a word is made of: pure functions on offsets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from thinkalike.activations.words import check_pooling, chosen, mean_over, padded, tokens_of_span
from thinkalike.errors import UnknownName


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
    assert tokens_of_span(np.array(offsets), *span).tolist() == expected


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.data())
def test_tokens_of_a_span_by_brute_force(data):
    cuts = sorted(data.draw(st.sets(st.integers(0, 30), min_size=2, max_size=12)))
    offsets = [(a, b) for a, b in itertools.pairwise(cuts) if data.draw(st.booleans())] or [(0, 1)]
    start, end = sorted(data.draw(st.sets(st.integers(0, 30), min_size=2, max_size=2)))
    expected = [i for i, (a, b) in enumerate(offsets) if set(range(a, b)) & set(range(start, end))]
    assert tokens_of_span(np.array(offsets), start, end).tolist() == expected


def test_chosen_tokens():
    tokens = np.array([3, 4, 7])
    assert chosen(tokens, "last").tolist() == [7]
    assert chosen(tokens, "first").tolist() == [3]
    assert chosen(tokens, "mean").tolist() == chosen(tokens, "all").tolist() == [3, 4, 7]


@settings(derandomize=True, deadline=None, max_examples=50)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), min_size=1, max_size=8), st.integers(0, 99)
)
def test_means_over_groups_by_brute_force(groups, seed):
    states = np.random.default_rng(seed).normal(size=(10, 3)).astype(np.float32)
    positions, mask = padded([np.array(group) for group in groups])
    found = mean_over(torch.from_numpy(states), torch.from_numpy(positions), torch.from_numpy(mask))
    expected = np.stack([states[group].mean(0) for group in groups])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_means_of_half_precision_are_taken_in_single():
    states = torch.tensor([[1000.0], [0.5]], dtype=torch.float16)
    found = mean_over(states, torch.tensor([[0, 1]]), torch.tensor([[True, True]]))
    assert found.dtype == torch.float32
    assert found.item() == 500.25  # 500.0 or 500.5 in float16


def test_unknown_pooling():
    with pytest.raises(UnknownName, match=r"no pooling 'max'. Known: last, first, mean, all, cls"):
        check_pooling("max")
