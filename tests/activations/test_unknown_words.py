"""Words that a tokenizer does not know are counted, and refused where there are no others."""

from __future__ import annotations

import pytest

import thinkalike as ta
from tests import planted_models as planted
from thinkalike.errors import InvalidInput

WORDS = list(planted.WORDS)[:3]


def read(*texts: str, **options: object) -> ta.Activations:
    model = planted.with_a_head(1, 0)
    return ta.extract(model, list(texts), processor=planted.tokenizer(), system="planted", **options)


@pytest.mark.parametrize(("pooling", "share"), [("last", 0.25), ("first", 0.5), ("mean", 0.5)])
def test_the_share_of_items_that_have_one(pooling: str, share: float) -> None:
    known, other, _ = WORDS
    found = read(known, f"king {known}", "queen", f"{other} {known}", pooling=pooling)
    assert found.metadata["unknown"] == share


def test_a_model_that_knows_none_of_them_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"planted knows none of these words: .* all are \[UNK\]. Give a"):
        read("king", "queen")


def test_bytes_are_all_known() -> None:
    assert ta.extract("nano-gpt2", ["Zoë", "🙂"], cache=False).metadata["unknown"] == 0
