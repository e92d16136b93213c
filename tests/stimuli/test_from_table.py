"""Reading users' own tables: roles of columns, kinds, and errors that name the file and the line."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from thinkalike.errors import InvalidInput
from thinkalike.stimuli import Stimuli


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_foreign_csv(tmp_path: Path) -> None:
    path = write(
        tmp_path / "mine.csv",
        "sent,token,pos,length,person",
        "1,the,Det,3,NaN",
        "1,king,Noun,4,3",
        "",
        "2,I,Pronoun,1,1",
        "2,fell,Verb,4,",
    )
    stimuli = Stimuli.from_table(
        path, columns={"sentence": "sent", "word": "token"}, kinds={"person": "nominal"}
    )
    assert stimuli.kinds == {"pos": "nominal", "length": "numeric", "person": "nominal"}
    assert stimuli.sentences.to_list() == ["the king", "I fell"]
    assert stimuli.features["person"].to_list()[1:3] == ["3", "1"]
    assert stimuli.features["person"].isna().to_list() == [True, False, False, True]


def test_a_csv_from_a_spreadsheet(tmp_path: Path) -> None:
    path = tmp_path / "bom.csv"
    path.write_bytes('﻿item,colour,note\r\n1.10,red,"a ""b""\nc"\r\n1.1,blue,\r\n'.encode())
    stimuli = Stimuli.from_table(path, features=["colour"])
    assert list(stimuli.items.index) == ["1.10", "1.1"]  # ids are not numbers
    assert stimuli.items["note"].to_list() == ['a "b"\nc', ""]


def test_words_are_found_in_the_text_when_it_is_given(tmp_path: Path) -> None:
    path = write(
        tmp_path / "w.csv",
        "text,word,x",
        '"Don\'t, she said.",Don,1',
        '"Don\'t, she said.",she,2',
        "He ran.,He,3",
    )
    stimuli = Stimuli.from_table(path)
    assert stimuli.items["start"].to_list() == [0, 7, 0]
    assert stimuli.items["sentence"].to_list() == ["s0", "s0", "s1"]


def test_given_offsets_are_taken() -> None:
    table = pd.DataFrame(
        {"text": ["so so", "so so"], "word": "so", "start": [3, 0], "end": [5, 2], "x": [1, 2]}
    )
    assert Stimuli.from_table(table).items["start"].to_list() == [3, 0]


def test_a_table_with_its_own_index_keeps_the_ids() -> None:
    table = pd.DataFrame({"hue": ["red", "blue"]}, index=["cat", "dog"])
    assert list(Stimuli.from_table(table).items.index) == ["cat", "dog"]


KINDS_LINE = '# kinds: {"x": "nominal"}'


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ([], 1, "the file is empty"),
        (["word,sentence,x"], 1, "there is a header but no row below it"),
        ([KINDS_LINE, "item,x"], 2, "there is a header but no row below it"),
        ([KINDS_LINE], 2, "there is no header"),
        (["word,sentence,x", "a,1,p", "b,1"], 3, "2 cells, but the header names 3 columns"),
        (["word,x,x", "a,1,2"], 1, "column 'x' stands there twice"),
        (["word,,x", "a,1,2"], 1, "column 2 has no name"),
        (["word,x", "a,1"], 1, "a column 'word' but no 'sentence' or 'text'"),
        (["sentence,x", "a,1"], 1, "a column 'sentence' but none called 'word' or 'text'"),
        (["text,word,start,x", "a b,a,0,1"], 1, "a column 'start' but none called 'end'"),
        (["sentence,word,start,end,x", "1,a,0,1,1"], 1, "'start' and 'end' need a column 'text'"),
        (["item,x", "a,1", "b,2", "a,3"], 4, "item id 'a' stands there a second time"),
        (["sentence,text,word,x", "1,the king,the,1", "1,the king,queen,2"], 2, "'queen' does not stand in"),
        (["sentence,text,word,x", "1,so so,so,1"], 2, "'so' can stand in several places of 'so so'"),
        (
            ["sentence,text,word,x", "1,a b,a,1", "1,a c,b,2"],
            3,
            "sentence '1' has another text here, 'a c', than before",
        ),
        (["text,word,start,end,x", "the king,the,0,3,1", "the king,king,3,7,2"], 3, "characters 3 to 7"),
        (
            ["text,word,start,end,x", "the king,the,0.5,3,1"],
            2,
            "'start' is '0.5'; a whole number was expected",
        ),
        (["sentence,word,x", "1,a,1", "1,,2"], 3, "the 'word' is missing"),
        (['# kinds: {"x": "nominal"', "item,x", "a,1"], 1, "declaration of kinds is not JSON"),
        (['# kinds: ["x"]', "item,x", "a,1"], 1, "kinds are declared as"),
        (['# kinds: {"x": "numeric"}', "item,x", "a,1", "b,one"], 4, "'x' is numeric but the value is 'one'"),
        (['# kinds: {"x": ["lo", "hi"]}', "item,x", "a,lo", "b,mid"], 4, "'mid' is no level of the ordinal"),
        (['# kinds: {"x": "nomnal"}', "item,x", "a,1"], 1, "no kind of feature 'nomnal'"),
        (["item,x", 'a,"1', "b,2"], 3, "not a well-formed table"),
    ],
)
def test_an_error_names_the_file_and_the_line(
    tmp_path: Path, lines: list[str], line: int, message: str
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    with pytest.raises(InvalidInput, match=message) as caught:
        Stimuli.from_table(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": ["y"]}, "line 1: There is no feature 'y'. Known: x"),
        ({"kinds": {"xx": "nominal"}}, "line 1: There is no feature 'xx'. Did you mean 'x'?"),
        (
            {"kinds": {"x": "norminal"}},
            "line 1: There is no kind of feature 'norminal'. Did you mean 'nominal'?",
        ),
        (
            {"kinds": {"x": "ordinal"}},
            r"line 1: feature 'x' is ordinal, but its levels \(hi, lo\) have no order",
        ),
        ({"kinds": {"x": ["lo", "lo", "hi"]}}, "line 1: the levels of feature 'x' repeat"),
        ({"kinds": {"x": ["lo", "", "hi"]}}, "line 1: feature 'x' has a level with an empty name"),
        ({"columns": {"word": "token"}}, "line 1: There is no column 'token'"),
        ({"columns": {"wort": "x"}}, "There is no role of a column 'wort'. Did you mean 'word'?"),
        ({"columns": {"item": "x"}}, "'x' is to be the 'item', but another column has that name"),
    ],
)
def test_wrong_options(tmp_path: Path, options: dict[str, object], message: str) -> None:
    path = write(tmp_path / "t.csv", "item,x", "a,lo", "b,hi")
    with pytest.raises(InvalidInput, match=message):
        Stimuli.from_table(path, **options)  # type: ignore[arg-type]


def test_rows_of_a_data_frame_are_named_by_their_number() -> None:
    table = pd.DataFrame({"x": ["1", "one"]})
    with pytest.raises(InvalidInput, match=r"^row 1: feature 'x' is numeric"):
        Stimuli.from_table(table, kinds={"x": "numeric"})
    with pytest.raises(InvalidInput, match="The table has no rows"):
        Stimuli.from_table(table.iloc[:0])
    with pytest.raises(InvalidInput, match=r"^The table: There is no feature 'z'"):
        Stimuli.from_table(table, features=["z"])


def test_names_of_columns() -> None:
    numbered = Stimuli.from_table(pd.DataFrame([["a", 1], ["b", 2]]))
    assert numbered.kinds == {"0": "nominal", "1": "numeric"}
    with pytest.raises(InvalidInput, match="The table: the column 'x' stands there twice"):
        Stimuli.from_table(pd.DataFrame([[1, 2]], columns=["x", "x"]))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is no file"):
        Stimuli.from_table(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match=r"ends in '\.xlsx': tables are read and written as \.csv"):
        Stimuli.from_table(write(tmp_path / "t.xlsx", "a"))
    with pytest.raises(InvalidInput, match="ends in 'nothing'"):
        Stimuli(pd.DataFrame({"x": [1]})).save(tmp_path / "words")
    (tmp_path / "latin.csv").write_bytes("item,x\na,é\n".encode("latin-1"))
    with pytest.raises(InvalidInput, match="not UTF-8 text"):
        Stimuli.from_table(tmp_path / "latin.csv")
    with pytest.raises(InvalidInput, match="not a readable Parquet file"):
        Stimuli.from_table(write(tmp_path / "t.parquet", "this is no parquet"))


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stimuli = Stimuli(pd.DataFrame({"x": [1.0, 2.0]}))
    path = stimuli.save(tmp_path / "t.csv")
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    with pytest.raises(OSError, match="No space left"):
        Stimuli(pd.DataFrame({"x": [3.0]})).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_kinds_are_inferred() -> None:
    table = pd.DataFrame(
        {
            "number": [1, 2],
            "text number": ["1", "2.5"],
            "flag": [True, None],
            "text": ["a", "b"],
            "graded": pd.Categorical(["b", "a"], categories=["b", "a"], ordered=True),
            "nothing": [None, None],
        }
    ).rename(columns={"text": "letters"})
    assert Stimuli.from_table(table).kinds == {
        "number": "numeric",
        "text number": "numeric",
        "flag": "nominal",
        "letters": "nominal",
        "graded": "ordinal",
        "nothing": "nominal",
    }


def test_ordinal_numbers_have_their_natural_order() -> None:
    stimuli = Stimuli.from_table(pd.DataFrame({"x": [10, 9.0, 1.5]}), kinds={"x": "ordinal"})
    assert list(stimuli.features["x"].cat.categories) == ["1.5", "9", "10"]
