"""Sequences side by side."""

from __future__ import annotations

import numpy as np
import pytest

from tests import tiny
from thinkalike.systems.batch import Batch, tokenise


def test_filled_up_on_the_right():
    batch = Batch.of([[5, 6, 7], [8], [9, 10]])
    np.testing.assert_array_equal(batch.ids, [[5, 6, 7], [8, 0, 0], [9, 10, 0]])
    np.testing.assert_array_equal(batch.mask, [[1, 1, 1], [1, 0, 0], [1, 1, 0]])
    assert (len(batch), batch.width) == (3, 3)


def test_a_width_of_its_own():
    assert Batch.of([[5, 6], [8]], width=4).mask.sum(axis=1).tolist() == [2, 1]
    assert Batch.of([[5, 6], [8]], width=4).width == 4


def test_some_of_them_are_no_wider_than_need_be():
    batch = Batch.of([[5, 6, 7], [8], [9, 10]], segments=[[0, 0, 1], [0], [0, 1]])
    some = batch.take([2, 1])
    np.testing.assert_array_equal(some.ids, [[9, 10], [8, 0]])
    np.testing.assert_array_equal(some.segments, [[0, 1], [0, 0]])
    assert batch.take([1], trimmed=False).width == 3
    assert batch.take(slice(1, 3)).ids.tolist() == [[8, 0], [9, 10]]


def test_repeated_one_after_another():
    batch = Batch.of([[5, 6], [8]], segments=[[0, 1], [0]]).repeated(2)
    assert batch.ids.tolist() == [[5, 6], [8, 0], [5, 6], [8, 0]]
    assert batch.mask.tolist() == [[True, True], [True, False]] * 2
    assert batch.segments.tolist() == [[0, 1], [0, 0]] * 2


def test_nothing_is_an_empty_batch():
    assert Batch.of([]).ids.shape == (0, 0)


@pytest.mark.parametrize("length", [None, 4])
def test_texts_as_the_tokenizer_cuts_them(length):
    tokenizer, texts = tiny.tokenizer("wordpiece"), ["the prince", "she"]
    batch = tokenise(tokenizer, texts, length=length)
    for row, mask, text in zip(batch.ids, batch.mask, texts, strict=True):
        expected = tokenizer(text, truncation=length is not None, max_length=length)["input_ids"]
        assert row[mask].tolist() == expected
    assert batch.segments is None


def test_pairs_have_segments():
    tokenizer = tiny.tokenizer("bytes")
    pairs = [("a prince", "sings"), ("she", "laughs a lot")]
    batch = tokenise(tokenizer, pairs)
    for row, mask, segments, pair in zip(batch.ids, batch.mask, batch.segments, pairs, strict=True):
        expected = tokenizer(*pair, return_token_type_ids=True)
        assert row[mask].tolist() == expected["input_ids"]
        assert segments[mask].tolist() == expected["token_type_ids"]
