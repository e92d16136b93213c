"""Control features: frequency bands and numbers of sub-words."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from wordfreq import zipf_frequency

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.stimuli import Stimuli


def words() -> Stimuli:
    return Stimuli.from_table(
        pd.DataFrame({"sentence": [0, 0, 0], "word": ["the", "duchess", "xqzvk"], "x": [1, 2, 3]})
    )


def test_zipf_frequency_is_in_bands() -> None:
    stimuli = words().with_controls("zipf")
    assert stimuli.kinds["zipf_frequency"] == "ordinal"
    expected = [str(round(zipf_frequency(word, "en"))) for word in ("the", "duchess", "xqzvk")]
    assert stimuli.features["zipf_frequency"].to_list() == expected
    assert expected[0] == "8"
    assert expected[2] == "0"
    assert list(stimuli.features["zipf_frequency"].cat.categories) == list("012345678")
    french = words().with_controls("zipf", language="fr").features["zipf_frequency"]
    assert french.to_list() != expected


class FastTokenizer:
    """The part of a fast Hugging Face tokenizer that is used, over a real byte-pair tokenizer."""

    is_fast = True

    def __init__(self) -> None:
        pieces = ["th", "the", "Ġd", "Ġdu", "Ġx", *"abcdefghijklmnopqrstuvwxyzĠ"]
        vocabulary = {piece: number for number, piece in enumerate(pieces)}
        merges = [("t", "h"), ("th", "e"), ("Ġ", "d"), ("Ġd", "u"), ("Ġ", "x")]
        self.tokenizer = Tokenizer(models.BPE(vocabulary, merges))
        self.tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)

    def __call__(self, text: str, **options: Any) -> dict[str, Any]:
        assert options == {"return_offsets_mapping": True, "add_special_tokens": False}
        return {"offset_mapping": self.tokenizer.encode(text).offsets}


def test_subwords_are_counted_in_the_sentence() -> None:
    stimuli = words().with_controls("subwords", tokenizer=FastTokenizer())
    # the | Ġdu c h e s s | Ġx q z v k
    assert stimuli.features["n_subwords"].to_list() == [1, 6, 5]
    assert stimuli.kinds["n_subwords"] == "numeric"


def test_any_function_that_gives_offsets_will_do() -> None:
    def halves(text: str) -> list[tuple[int, int]]:
        return [(start, start + 2) for start in range(0, len(text), 2)]

    assert words().with_controls("subwords", tokenizer=halves).features["n_subwords"].to_list() == [2, 4, 3]


def test_position_from_the_end_counts_the_words_that_follow() -> None:
    table = pd.DataFrame(
        {
            "text": ["Don't , she said ."] * 3 + ["so so"] * 2,
            "word": ["Don", "'t", "she", "so", "so"],
            "start": [0, 3, 8, 0, 3],
            "end": [3, 5, 11, 2, 5],
            "x": [1, 2, 3, 4, 5],
        }
    )
    stimuli = Stimuli.from_table(table).with_controls("position_from_end")
    assert stimuli.kinds["position_from_end"] == "numeric"
    assert stimuli.features["position_from_end"].to_list() == [2, 2, 1, 1, 0]


def test_position_from_both_ends_adds_up_to_the_length() -> None:
    made = Stimuli.from_grammar(20).with_controls("position_from_end")
    length = made.items.groupby("sentence")["word"].transform("size")
    both = made.features["word_position"] + made.features["position_from_end"]
    assert both.to_list() == (length - 1).to_list()


def test_word_identity_is_the_word_whatever_its_case() -> None:
    table = pd.DataFrame({"sentence": [0, 0, 1], "word": ["The", "king", "the"], "x": [1, 2, 3]})
    stimuli = Stimuli.from_table(table).with_controls("word_identity")
    assert stimuli.features["word_identity"].to_list() == ["the", "king", "the"]
    assert stimuli.kinds["word_identity"] == "nominal"


def test_controls_can_be_asked_for_when_sentences_are_made() -> None:
    stimuli = Stimuli.from_grammar(10, controls=["zipf", "subwords"], tokenizer=FastTokenizer())
    assert list(stimuli.features)[-2:] == ["zipf_frequency", "n_subwords"]


def test_errors() -> None:
    with pytest.raises(UnknownName, match=r"no control feature 'zip'\. Did you mean 'zipf'"):
        words().with_controls("zip")
    with pytest.raises(InvalidInput, match="'subwords' needs a tokenizer"):
        words().with_controls("subwords")
    slow = type("SlowTokenizer", (), {"is_fast": False})()
    with pytest.raises(InvalidInput, match="SlowTokenizer does not say where its tokens are"):
        words().with_controls("subwords", tokenizer=slow)
    with pytest.raises(InvalidInput, match="'zipf' is for single words"):
        Stimuli.from_grammar(5, grammar="clauses", controls=["zipf"])
    images = Stimuli(pd.DataFrame({"hue": ["red", "blue"]}))
    with pytest.raises(InvalidInput, match="these items are not words"):
        images.with_controls("zipf")
