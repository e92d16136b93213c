"""Words and where they stand in their text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinkalike.errors import InvalidInput
from thinkalike.stimuli.spans import join, locate

WORDS = st.lists(st.text("abc'.é", min_size=1, max_size=4), min_size=1, max_size=8)


@settings(max_examples=100)
@given(words=WORDS, gaps=st.lists(st.sampled_from(["", " ", "  "]), min_size=8, max_size=8))
def test_words_that_make_up_the_text_are_found(words: list[str], gaps: list[str]) -> None:
    """Whatever spaces stand between them, even none."""
    text, starts = "", []
    for word, gap in zip(words, gaps, strict=False):
        starts.append(len(text))
        text += word + gap
    assert locate(words, text) == starts


@settings(max_examples=50)
@given(words=WORDS)
def test_joined_words_are_where_join_says(words: list[str]) -> None:
    text, starts = join(words)
    assert text.split(" ") == words
    assert [text[start : start + len(word)] for word, start in zip(words, starts, strict=True)] == words


def test_some_of_the_words() -> None:
    text = "the other man saw the man's hat"
    assert locate(["saw"], text) == [14]
    assert locate(["other", "the"], text) == [4, 18]  # whole words only, and in order
    with pytest.raises(InvalidInput, match="'the' can stand in several places"):
        locate(["the", "hat"], text)
    with pytest.raises(InvalidInput, match="'he' does not stand in the sentence"):
        locate(["he"], text)
    with pytest.raises(InvalidInput, match="'other' does not stand in"):
        locate(["saw", "other"], text)
    with pytest.raises(InvalidInput, match="'ba' does not stand in"):
        locate(["ba", "b"], "b ab")  # the same letters in another order of words
