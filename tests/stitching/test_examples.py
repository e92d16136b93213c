"""What stitched models are asked: targets, units, hidden tokens, batches."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import torch

from thinkalike.errors import InvalidInput
from thinkalike.stimuli.text import PADDING, pack
from thinkalike.stitching import LabelledTexts
from thinkalike.stitching.examples import (
    MASKED_SHARE,
    NOT_ASKED,
    Examples,
    TargetBatch,
    labelled_examples,
    text_examples,
)
from thinkalike.systems.batch import Batch


@pytest.fixture
def packed(tokenizer):
    """Two documents in passages of 5, the last filled up: abcd·efg· and hi·."""
    return pack(["abcd", "efg", "hi"], tokenizer, length=5, partial=True)


def test_a_causal_model_is_asked_for_the_next_token(packed, tokenizer):
    found = text_examples(packed, task="causal", tokenizer=tokenizer, by_document=True)
    for row in range(len(packed)):
        for place in range(packed.length - 1):
            asked = packed.mask[row, place + 1]
            assert found.targets[row, place] == (packed.ids[row, place + 1] if asked else NOT_ASKED)
            assert found.units[row, place] == packed.documents[row, place + 1]
    assert (found.targets[:, -1] == NOT_ASKED).all()  # what comes next is in another passage
    assert found.mask_token is None


def test_units_are_the_documents_of_what_is_predicted_or_the_passages(packed, tokenizer):
    by_document = text_examples(packed, task="causal", tokenizer=tokenizer, by_document=True)
    by_passage = text_examples(packed, task="causal", tokenizer=tokenizer, by_document=False)
    asked = by_passage.targets != NOT_ASKED
    assert by_document.n_units == 3
    assert by_passage.n_units == len(packed)
    rows = np.broadcast_to(np.arange(len(packed))[:, None], asked.shape)
    np.testing.assert_array_equal(by_passage.units[asked], rows[asked])
    assert (by_document.units[asked] != PADDING).all()


def test_a_masked_model_is_asked_for_tokens_that_are_hidden(tokenizer):
    packed = pack(["the old woman sings of princes " * 60], tokenizer, length=40, bos=True)
    examples = text_examples(packed, task="masked", tokenizer=tokenizer, by_document=False)
    batch = examples.batch(range(len(examples)))
    hidden = batch.tokens.ids == tokenizer.mask_token_id
    np.testing.assert_array_equal(hidden, batch.targets.numpy() != NOT_ASKED)
    np.testing.assert_array_equal(batch.targets.numpy()[hidden], packed.ids[hidden])
    np.testing.assert_array_equal(batch.tokens.ids[~hidden], packed.ids[~hidden])
    assert not hidden[:, 0].any()  # the tokenizer's own
    n, share = hidden[:, 1:].size, hidden[:, 1:].mean()
    assert abs(share - MASKED_SHARE) < 4 * np.sqrt(MASKED_SHARE * (1 - MASKED_SHARE) / n)


def test_what_is_hidden_goes_by_row_and_draw_alone(tokenizer):
    packed = pack(["the old woman sings of princes " * 20], tokenizer, length=40, bos=True)
    examples = text_examples(packed, task="masked", tokenizer=tokenizer, by_document=False)
    alone, together = examples.batch([3]), examples.batch([0, 3, 5])
    np.testing.assert_array_equal(alone.tokens.ids[0], together.tokens.ids[1])
    assert (examples.batch([3], draw=1).tokens.ids != alone.tokens.ids).any()


def test_a_masked_model_without_a_mask_token(tokenizer, packed):
    bare = copy.deepcopy(tokenizer)
    bare.mask_token = None
    with pytest.raises(InvalidInput, match=r"has no mask token: set tokenizer\.mask_token"):
        text_examples(packed, task="masked", tokenizer=bare, by_document=True)


def test_labelled_texts_are_one_question_each(tokenizer):
    data = LabelledTexts(["a long one", "b"], [2, 0])
    found = labelled_examples(data, tokenizer=tokenizer, length=6)
    assert found.targets.tolist() == [2, 0]
    assert found.units.tolist() == [0, 1]
    assert found.tokens.mask.sum(axis=1).tolist() == [6, 1]  # the first is cut
    assert found.n_tokens == 7
    batch = found.batch([1])
    assert (batch.tokens.width, batch.targets.tolist(), batch.units.tolist()) == (1, [0], [1])


def test_pairs_of_texts_have_segments(tokenizer):
    data = LabelledTexts([("ab", "c"), ("d", "efg")], [0, 1])
    found = labelled_examples(data, tokenizer=tokenizer, length=10)
    expected = tokenizer(["ab", "d"], ["c", "efg"], return_token_type_ids=True)["token_type_ids"]
    for row, mask, own in zip(found.tokens.segments, found.tokens.mask, expected, strict=True):
        assert row[mask].tolist() == own


def test_the_first_examples_keep_their_width():
    examples = Examples(Batch.of([[5], [6, 7]]), np.array([0, 1]), np.array([0, 1]))
    first = examples.first(1)
    assert (len(first), first.tokens.width) == (1, 2)
    assert len(examples.first(99)) == 2


@pytest.mark.parametrize("sequences", [[[5, 6, 7], [8]], [[5, 6], [8, 9]]], ids=["padded", "full"])
def test_rows_are_the_states_of_tokens(sequences):
    batch = TargetBatch(Batch.of(sequences), torch.zeros(2, dtype=torch.long), np.zeros(2, dtype=np.int64))
    n, width = batch.tokens.mask.shape
    states = torch.arange(n * width * 2.0).reshape(n, width, 2)
    expected = [states[k, t] for k, own in enumerate(sequences) for t in range(len(own))]
    torch.testing.assert_close(batch.rows(states), torch.stack(expected))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_tables_of_labelled_texts(tmp_path, suffix):
    table = pd.DataFrame({"text": ["NA", "b"], "second": ["c", "d"], "label": [1, 0]})
    path = tmp_path / f"texts{suffix}"
    if suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    found = LabelledTexts.from_table(path)
    assert list(found.texts) == [("NA", "c"), ("b", "d")]  # "NA" is a word
    assert list(found.labels) == [1, 0]
    assert list(found.subset([1]).texts) == [("b", "d")]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"text": ["a"], "class": [1]},
            "has no column 'label', only text, class: .* stitched on a text file",
        ),
        ({"text": ["a"], "label": ["yes"]}, "are not whole numbers: number the classes from 0"),
    ],
)
def test_tables_that_are_no_labelled_texts(tmp_path, table, message):
    pd.DataFrame(table).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InvalidInput, match=message):
        LabelledTexts.from_table(tmp_path / "t.csv")


def test_a_table_that_is_not_there(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read as a table of labelled texts"):
        LabelledTexts.from_table(tmp_path / "none.csv")
