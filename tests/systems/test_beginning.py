"""How texts begin: as asked, as in training where that can be known, and with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from thinkalike.errors import InvalidInput
from thinkalike.systems.beginning import REASONS, begin_texts


def tokenizer(*, begins: bool = False, **marks: Any) -> PreTrainedTokenizerFast:
    """Of single letters; `begins`: puts `<s>` first by itself."""
    core = Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "?": 2, "a": 3, "b": 4}, unk_token="?"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    if begins:
        core.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(tokenizer_object=core, unk_token="?", **marks)


def stating(add_bos_token: bool) -> PreTrainedTokenizerFast:
    """One whose configuration says what it does not do, as some on the hub."""
    made = tokenizer(**BOTH)
    made.init_kwargs["add_bos_token"] = add_bos_token
    return made


BOTH = {"bos_token": "<s>", "eos_token": "</s>"}


@pytest.mark.parametrize(
    ("made", "bos", "expected"),
    [
        # by itself, whatever else is said; only False takes it away
        (tokenizer(begins=True, **BOTH), "auto", (None, "<s>", "tokenizer", None)),
        (tokenizer(begins=True, cls_token="<s>"), "auto", (None, "<s>", "tokenizer", None)),
        (tokenizer(begins=True, **BOTH), True, (True, "<s>", "asked", None)),
        (tokenizer(begins=True, **BOTH), False, (False, None, "asked", "<s>")),
        # as the configuration says
        (tokenizer(**BOTH, add_bos_token=True), "auto", (None, "<s>", "tokenizer", None)),
        (stating(True), "auto", (True, "<s>", "stated", None)),
        (tokenizer(**BOTH, add_bos_token=False), "auto", (False, None, "stated", "<s>")),
        # one token between the texts of the training, as GPT-2's <|endoftext|>
        (tokenizer(bos_token="</s>", eos_token="</s>"), "auto", (True, "</s>", "separator", None)),
        # nobody says
        (tokenizer(**BOTH), "auto", (None, None, "unknown", "<s>")),
        (tokenizer(eos_token="</s>"), "auto", (None, None, "none", None)),
        # None is what the tokenizer does
        (tokenizer(bos_token="</s>", eos_token="</s>"), None, (None, None, "tokenizer", "</s>")),
        (tokenizer(**BOTH), True, (True, "<s>", "asked", None)),
    ],
)
def test_how_texts_begin(
    made: PreTrainedTokenizerFast, bos: Any, expected: tuple[bool | None, str | None, str, str | None]
) -> None:
    found = begin_texts(made, bos)
    assert (found.bos, found.token, found.why, found.unused) == expected
    assert found.why in REASONS


def test_another_word_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Got bos='always': give True, False, 'auto', or None"):
        begin_texts(tokenizer(), "always")
