"""Control features: properties of words that are not grammar but may explain as much."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Union, cast

import pandas as pd

from thinkalike.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TokenOffsets = Union["PreTrainedTokenizerBase", Callable[[str], Iterable[tuple[int, int]]]]
"""A fast tokenizer, or a function from a text to the (start, end) of its tokens"""
ZIPF_LEVELS = tuple(str(band) for band in range(9))


def zipf_frequency(
    items: pd.DataFrame, sentences: pd.Series, *, language: str = "en", **_: object
) -> pd.Series:
    """Word frequency in Zipf's bands: log10 of the occurrences per billion words, rounded; ordinal, 0 to 8.

    Bands, not exact values: by exact frequency nearly every two words differ, so the feature would stand for
    the identity of the word. Frequencies come from `wordfreq`; an unknown word has band 0.
    """
    from wordfreq import zipf_frequency as frequency

    if items["word"].str.contains(" ").any():
        raise InvalidInput("The control 'zipf' is for single words, and some of these items are longer.")
    bands = {word: str(round(frequency(word, language))) for word in items["word"].unique()}
    values = pd.Categorical(items["word"].map(bands), categories=list(ZIPF_LEVELS), ordered=True)
    return pd.Series(values, index=items.index)


def count_subwords(
    items: pd.DataFrame, sentences: pd.Series, *, tokenizer: TokenOffsets | None = None, **_: object
) -> pd.Series:
    """How many tokens a word is split into, in its sentence; numeric.

    Parameters
    ----------
    tokenizer : a fast Hugging Face tokenizer, or any function from a text to the (start, end) offsets of its
        tokens.
    """
    if tokenizer is None:
        raise InvalidInput(
            "The control 'subwords' needs a tokenizer: pass tokenizer=AutoTokenizer.from_pretrained(...)."
        )
    offsets = {name: _token_offsets(tokenizer, text) for name, text in sentences.items()}
    counts = [
        sum(a < end and b > start for a, b in offsets[sentence])
        for sentence, start, end in zip(items["sentence"], items["start"], items["end"], strict=True)
    ]
    return pd.Series(counts, index=items.index, dtype=float)


def words_after(items: pd.DataFrame, sentences: pd.Series, **_: object) -> pd.Series:
    """How many words of the sentence stand after the item: 0 for the last one; numeric.

    Words are what spaces separate and has a letter or a digit. What models that read both ways may know, and
    part of speech or tense may stand for where sentences tend to end alike.
    """
    counts = [
        _n_words(sentences[sentence][end:])
        for sentence, end in zip(items["sentence"], items["end"], strict=True)
    ]
    return pd.Series(counts, index=items.index, dtype=float)


def word_identity(items: pd.DataFrame, sentences: pd.Series, **_: object) -> pd.Series:
    """The word itself, capital or not; nominal.

    Nearly all pairs of items differ in it, so it takes what is special to single words rather than to
    features that words share.
    """
    return pd.Series(pd.Categorical(items["word"].str.casefold()), index=items.index)


CONTROLS: dict[str, Callable[..., pd.Series]] = {
    "zipf": zipf_frequency,
    "subwords": count_subwords,
    "position_from_end": words_after,
    "word_identity": word_identity,
}
COLUMNS = {
    "zipf": "zipf_frequency",
    "subwords": "n_subwords",
    "position_from_end": "position_from_end",
    "word_identity": "word_identity",
}


def control_features(
    names: tuple[str, ...], items: pd.DataFrame, sentences: pd.Series, **options: object
) -> pd.DataFrame:
    """The control features of words in sentences, a column each."""
    for name in names:
        if name not in CONTROLS:
            raise UnknownName.among("control feature", name, CONTROLS)
    if "sentence" not in items:
        raise InvalidInput("Control features are for words in sentences, and these items are not words.")
    return pd.DataFrame({COLUMNS[name]: CONTROLS[name](items, sentences, **options) for name in names})


def _n_words(rest: str) -> int:
    """The words in what follows an item; the end of the item's own word is none of them."""
    parts = rest.split()
    own = bool(parts) and not rest[0].isspace()
    return sum(any(letter.isalnum() for letter in part) for part in parts[own:])


def _token_offsets(tokenizer: TokenOffsets, text: str) -> list[tuple[int, int]]:
    fast = getattr(tokenizer, "is_fast", None)
    if fast is None:
        return list(tokenizer(text))
    if not fast:
        raise InvalidInput(
            f"{type(tokenizer).__name__} does not say where its tokens are: use the fast one, use_fast=True."
        )
    encode = cast("PreTrainedTokenizerBase", tokenizer)
    encoded = encode(text, return_offsets_mapping=True, add_special_tokens=False)
    return [_trimmed(text, start, end) for start, end in encoded["offset_mapping"]]


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The offsets of a token without the space that some tokenizers count to it."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end
