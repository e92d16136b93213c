"""Packing running text, against chunks worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.stimuli.text import pack, read_documents, same_tokenizer, tokenizer_fingerprint

WORDS = ["<eos>", "<bos>", "<unk>", "a", "b", "c", "d", "e"]


def words_tokenizer(words: list[str] = WORDS, **special: str) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", **special)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return words_tokenizer(eos_token="<eos>", bos_token="<bos>")


def test_documents_are_joined_by_the_end_token_and_cut(tokenizer: Any) -> None:
    packed = pack(["a b c", "d e"], tokenizer, length=3)
    # a b c <eos> d e <eos>: two chunks of three, one token left
    np.testing.assert_array_equal(packed.ids, [[3, 4, 5], [0, 6, 7]])
    np.testing.assert_array_equal(packed.documents, [[0, 0, 0], [0, 1, 1]])
    assert packed.names == ("0", "1")
    assert packed.n_left_out == 1
    assert len(packed) == 2
    assert "2 chunks of 3 tokens from 2 documents" in repr(packed)
    np.testing.assert_array_equal(packed.main_documents(), [0, 1])


def test_a_first_token_counts_towards_the_length(tokenizer: Any) -> None:
    packed = pack(["a b c", "d e"], tokenizer, length=3, bos=True)
    np.testing.assert_array_equal(packed.ids, [[1, 3, 4], [1, 5, 0], [1, 6, 7]])
    np.testing.assert_array_equal(packed.documents, [[0, 0, 0], [0, 0, 0], [1, 1, 1]])


def test_the_rest_is_kept_with_padding_if_asked_for(tokenizer: Any) -> None:
    packed = pack(["a b c", "d e"], tokenizer, length=3, partial=True)
    np.testing.assert_array_equal(packed.ids, [[3, 4, 5], [0, 6, 7], [0, 0, 0]])  # padded with <eos>
    np.testing.assert_array_equal(packed.documents, [[0, 0, 0], [0, 1, 1], [1, -1, -1]])
    np.testing.assert_array_equal(packed.mask[2], [True, False, False])
    assert packed.mask[:2].all()
    assert packed.n_left_out == 0
    np.testing.assert_array_equal(packed.main_documents(), [0, 1, 1])
    padded = words_tokenizer(eos_token="<eos>", pad_token="<unk>")
    np.testing.assert_array_equal(pack(["a"], padded, length=4, partial=True).ids, [[3, 0, 2, 2]])


def test_whole_chunks_need_no_padding(tokenizer: Any) -> None:
    kept = pack(["a b c d e"], tokenizer, length=3, partial=True)
    np.testing.assert_array_equal(kept.ids, pack(["a b c d e"], tokenizer, length=3).ids)
    assert pack(["a b c d e"], tokenizer, length=4, partial=True, max_chunks=1).ids.shape == (1, 4)


def test_chunks_know_their_place_in_the_stream(tokenizer: Any) -> None:
    np.testing.assert_array_equal(pack(["a b c", "d e"], tokenizer, length=3).starts, [0, 3])
    np.testing.assert_array_equal(pack(["a b c", "d e"], tokenizer, length=3, bos=True).starts, [0, 2, 4])


def test_a_long_file_is_read_in_pieces(tokenizer: Any, tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "long.txt"
    path.write_text("a b c\nd e\n" * 50, encoding="utf-8")
    whole = pack(path, tokenizer, length=7)
    monkeypatch.setattr("thinkalike.stimuli.text.PIECE", 8)
    read = []

    class Reading:
        def __call__(self, piece: str, **options: Any) -> Any:
            read.append(piece)
            return tokenizer(piece, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(tokenizer, name)

    reading = Reading()
    pieces = pack(path, reading, length=7)
    assert pieces.digest == whole.digest
    assert len(whole.names) == 1
    assert read[0] == "a b c\nd e\n"
    read.clear()
    assert len(pack(path, reading, length=7, max_chunks=2)) == 2
    assert len(read) == 4  # three pieces of five tokens, and the probe of the fingerprint


def test_reading_stops_after_the_chunks_asked_for(tokenizer: Any) -> None:
    def endless() -> Any:
        yield "a b c"
        yield "d e"
        raise AssertionError("read further than needed")

    assert pack(endless(), tokenizer, length=3, max_chunks=2).ids.shape == (2, 3)


def test_bert_has_no_end_token_but_a_separator() -> None:
    packed = pack(["a b"], words_tokenizer(sep_token="<eos>"), length=3)
    np.testing.assert_array_equal(packed.ids, [[3, 4, 0]])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "two.txt").write_text("d\n\n\ne d\n", encoding="utf-8")
    (tmp_path / "one.txt").write_text("a b\nc\n\ne\n", encoding="utf-8")
    (tmp_path / "notes.md").write_text("not text", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ("files", [("one", "a b\nc\n\ne\n"), ("two", "d\n\n\ne d\n")]),
        ("paragraphs", [("one:1", "a b\nc"), ("one:4", "e"), ("two:1", "d"), ("two:4", "e d")]),
        ("lines", [("one:1", "a b"), ("one:2", "c"), ("one:4", "e"), ("two:1", "d"), ("two:4", "e d")]),
    ],
)
def test_what_a_document_is(folder: Path, split: Any, expected: list[tuple[str, str]]) -> None:
    assert list(read_documents(folder, split=split)) == expected


def test_one_file_by_its_path(folder: Path, tokenizer: Any) -> None:
    assert pack(str(folder / "one.txt"), tokenizer, length=2).names == ("one",)


def test_the_digest_follows_the_content(tokenizer: Any) -> None:
    one, same, other = (pack([text], tokenizer, length=2) for text in ("a b c", "a b c", "a b d"))
    assert one.digest == same.digest
    assert one.digest != other.digest


def test_fingerprints_tell_vocabularies_apart_but_not_what_is_added_around(tokenizer: Any) -> None:
    assert same_tokenizer(tokenizer, words_tokenizer(eos_token="<eos>", bos_token="<bos>"))
    assert not same_tokenizer(tokenizer, words_tokenizer([*WORDS, "f"], eos_token="<eos>"))
    assert len(tokenizer_fingerprint(tokenizer)) == 64


def test_fingerprints_tell_rules_apart(tokenizer: Any) -> None:
    from tokenizers import pre_tokenizers

    other = words_tokenizer(eos_token="<eos>", bos_token="<bos>")
    other.backend_tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    assert not same_tokenizer(tokenizer, other)


def test_bad_input(tokenizer: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"has 4 tokens, fewer than one chunk of 256: .*partial=True"):
        pack(["a b c"], tokenizer)
    with pytest.raises(InvalidInput, match="hold no text: choose a length of at least 2"):
        pack(["a b c"], tokenizer, length=1, bos=True)
    with pytest.raises(InvalidInput, match="The documents have no text"):
        pack(["", " \n"], tokenizer)
    with pytest.raises(InvalidInput, match=r"There is no text at .*missing"):
        pack(tmp_path / "missing", tokenizer)
    with pytest.raises(InvalidInput, match=r"has no text: give a file, a folder of \.txt files"):
        pack(tmp_path, tokenizer)
    with pytest.raises(
        InvalidInput, match=r"no text at It was the best of times.*\[\.\.\.\]: give .* list of texts"
    ):
        pack("It was the best of times. " * 400, tokenizer)
    (tmp_path / "words.csv").write_text("text,number\nthe king,1\n")
    with pytest.raises(InvalidInput, match=r"words\.csv is a table, and what is wanted is running text"):
        pack(tmp_path / "words.csv", tokenizer)
    (tmp_path / "latin.txt").write_bytes("café\n".encode("latin-1"))
    for split in ("files", "lines"):
        with pytest.raises(InvalidInput, match=r"latin\.txt is not text in UTF-8"):
            pack(tmp_path / "latin.txt", tokenizer, split=split)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="Did you mean 'lines'"):
        pack(["a"], tokenizer, split="line")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"neither an end-of-text nor a separator token"):
        pack(["a b"], words_tokenizer(), length=2)
    with pytest.raises(InvalidInput, match="no beginning-of-sequence token"):
        pack(["a b"], words_tokenizer(sep_token="<eos>"), length=2, bos=True)
