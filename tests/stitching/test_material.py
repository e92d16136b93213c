"""Dividing what was given: no document in two parts, each part near its share."""

from __future__ import annotations

import numpy as np
import pytest

from thinkalike.errors import InvalidInput
from thinkalike.stitching import LabelledTexts
from thinkalike.stitching.examples import NOT_ASKED
from thinkalike.stitching.material import read_material
from thinkalike.systems.system import open_system

EVERY = ("fit", "validation", "test")


@pytest.fixture
def top(make, tokenizer):
    return open_system(make("gpt2"), name="top", head="own", tokenizer=tokenizer)


def read(text, top, *, test=None, parts=EVERY, length=16, split=None, max_tokens=100_000, seed=0):
    return read_material(
        text, test, top, parts=parts, length=length, split=split, max_tokens=max_tokens, seed=seed
    )


def texts_of(examples, tokenizer):
    """What the tokens of some examples say, document by document."""
    joined = examples.tokens.ids[examples.tokens.mask].tolist()
    return [one for one in tokenizer.decode(joined).split("<eos>") if one]


def test_every_document_is_in_one_part(top, tokenizer, documents):
    found = read(documents, top)
    parts = [texts_of(getattr(found, part), tokenizer) for part in EVERY]
    assert sorted(text for part in parts for text in part) == sorted(documents)
    assert found.unit == "documents"
    assert not found.cautions


def test_parts_have_their_shares_of_the_text(top, documents):
    found = read(documents, top)
    n = {part: getattr(found, part).n_tokens for part in EVERY}
    longest = max(map(len, documents)) + 1
    assert n["test"] == pytest.approx(0.2 * sum(n.values()), abs=longest)
    assert n["validation"] == pytest.approx(0.1 * sum(n.values()), abs=longest)


def test_the_seed_divides(top, tokenizer, documents):
    first, again, other = (texts_of(read(documents, top, seed=s).test, tokenizer) for s in (0, 0, 1))
    assert first == again
    assert first != other


def test_with_a_text_to_judge_by_all_of_the_other_is_for_fitting(top, tokenizer, documents):
    found = read(documents[:40], top, test=documents[40:], parts=("fit", "test"))
    assert texts_of(found.fit, tokenizer) == documents[:40]
    assert texts_of(found.test, tokenizer) == documents[40:]


def test_nothing_to_fit(top, tokenizer, documents):
    found = read(documents, top, parts=("test",))
    assert (found.fit, found.validation) == (None, None)
    assert texts_of(found.test, tokenizer) == documents


def test_no_more_tokens_than_asked_for(top, documents):
    found = read(documents, top, parts=("test",), max_tokens=320)
    assert found.test.n_tokens == 320


def test_one_document_is_cut_into_passages_in_its_order(top, tokenizer, documents):
    found = read([" ".join(documents)], top)
    parts = [found.fit, found.validation, found.test]
    joined = "".join("".join(texts_of(part, tokenizer)) for part in parts)
    assert joined == " ".join(documents)
    assert found.unit == "passages"
    assert any("was cut into parts" in caution for caution in found.cautions)
    assert any("too few to resample" in caution for caution in found.cautions)
    rows = np.flatnonzero((found.test.targets != NOT_ASKED).any(axis=1))
    assert found.test.n_units == len(rows)


def test_too_short_a_text(top):
    with pytest.raises(InvalidInput, match=r"has 1 passages of 16 tokens, too few to fit φ on some"):
        read(["short"], top)


def test_files_and_paragraphs(top, tokenizer, documents, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join(documents), encoding="utf-8")
    whole = read(path, top, parts=("test",))
    assert texts_of(whole.test, tokenizer) == documents  # a file: its paragraphs
    folder = read(tmp_path, top, parts=("test",))
    assert len(texts_of(folder.test, tokenizer)) == 1  # a folder: its files
    lines = read(path, top, parts=("test",), split="lines")
    assert texts_of(lines.test, tokenizer) == documents


def test_labelled_texts_are_divided_too(make, tokenizer):
    top = open_system(make("classifier"), name="top", head="own", tokenizer=tokenizer)
    data = LabelledTexts([f"text {k:02}" for k in range(50)], [k % 3 for k in range(50)])
    found = read(data, top)
    assert [len(getattr(found, part)) for part in EVERY] == [35, 5, 10]
    shown = [
        tokenizer.decode(row).strip("<pad>") for part in EVERY for row in getattr(found, part).tokens.ids
    ]
    assert sorted(shown) == sorted(data.texts)
    for part in EVERY:
        one = getattr(found, part)
        numbers = [int(tokenizer.decode(row)[5:7]) for row in one.tokens.ids]
        assert one.targets.tolist() == [number % 3 for number in numbers]
    assert found.unit == "examples"


def test_labelled_texts_for_a_language_model(top):
    with pytest.raises(InvalidInput, match="are for sequence classifiers, and top is a causal"):
        read(LabelledTexts(["a"], [0]), top)
