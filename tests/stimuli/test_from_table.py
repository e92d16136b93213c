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
        (["text,word,start,end,x", "the king,king,4,80,1"], 2, "characters 4 to 80"),
        (["item;x", "a;1", "b;2"], 1, "there is one column, 'item;x': its cells seem to be separated by ';'"),
        (["item\tx", "a\t1"], 1, r"its cells seem to be separated by '\\t', and ',' was expected"),
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
    for name in ("", " ", None, float("nan")):
        with pytest.raises(InvalidInput, match="The table: column 2 has no name: give it one"):
            Stimuli.from_table(pd.DataFrame([[1, 2]], columns=["x", name]))


def test_spaces_around_the_names_of_a_text_file(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "sentence, word , size", "1, king, 3", "1,sleeps,4")
    assert Stimuli.from_table(path).kinds == {"size": "numeric"}
    with pytest.raises(InvalidInput, match="line 1: the column 'x' stands there twice"):
        Stimuli.from_table(write(tmp_path / "t.csv", "x, x", "1,2"))
    with pytest.raises(InvalidInput, match="line 1: column 2 has no name"):
        Stimuli.from_table(write(tmp_path / "t.csv", "x, ", "1,2"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"There is no file .* or of a dataset's folder"):
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


@pytest.mark.parametrize("stored", ["frame", "csv", "parquet"])
def test_equal_sentences_are_items_of_their_own(tmp_path: Path, stored: str) -> None:
    table = pd.DataFrame({"text": ["a b c", "d e f", "a b c"], "x": ["p", "q", "r"]})
    path = tmp_path / f"t.{stored}"
    if stored != "frame":
        table.to_csv(path, index=False) if stored == "csv" else table.to_parquet(path)
    stimuli = Stimuli.from_table(table if stored == "frame" else path)
    assert len(stimuli) == 3
    assert stimuli.items["word"].to_list() == ["a b c", "d e f", "a b c"]
    assert stimuli.features["x"].to_list() == ["p", "q", "r"]
    # The same text is one sentence: what resamples sentences takes both items or none.
    assert stimuli.items["sentence"].to_list() == ["s0", "s1", "s0"]
    assert stimuli.sentences.to_dict() == {"s0": "a b c", "s1": "d e f"}
    assert Stimuli.load(stimuli.save(tmp_path / "again.csv")) == stimuli


def test_sentences_that_come_again_word_by_word() -> None:
    words = ["Don", "'t", "go", "so", "so", "Don", "'t", "go", "go", "Don"]
    texts = ["Don't go"] * 3 + ["so so"] * 2 + ["Don't go"] * 5
    stimuli = Stimuli.from_table(pd.DataFrame({"text": texts, "word": words, "x": range(10)}))
    assert stimuli.items["sentence"].to_list() == ["s0"] * 3 + ["s1"] * 2 + ["s2"] * 3 + ["s3", "s4"]
    assert stimuli.items["start"].to_list() == [0, 3, 6, 0, 3, 0, 3, 6, 6, 0]
    ids = ["s0.0", "s0.1", "s0.2", "s1.0", "s1.1", "s2.0", "s2.1", "s2.2", "s3.0", "s4.0"]
    assert list(stimuli.items.index) == ids


NUMBERS = [*"123456", "7.5", ".5", "-1e3"]


@pytest.mark.parametrize(
    "strange", ["inf", "-Infinity", "1e400", "1,5", "n/a", "seven", "1_000", "٠", "0x10"]
)
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_what_is_no_number_among_numbers_is_named(tmp_path: Path, strange: str, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    frame = pd.DataFrame({"item": range(10), "size": [*NUMBERS, strange], "y": 1})
    frame.to_csv(path, index=False, sep="," if suffix == "csv" else "\t")
    with pytest.raises(InvalidInput) as caught:
        Stimuli.from_table(path)
    assert str(caught.value).startswith(
        f"{path}, line 11: {strange!r} is no finite number, as most of 'size'"
    )
    assert "(--kind size=nominal)" in str(caught.value)
    labels = Stimuli.from_table(path, kinds={"size": "nominal"})
    assert labels.features["size"].to_list()[-1] == strange
    with pytest.raises(InvalidInput, match=r"line 11: feature 'size' is numeric but the value is"):
        Stimuli.from_table(path, kinds={"size": "numeric"})
    assert list(Stimuli.from_table(path, drop=["size"]).features) == ["y"]


def test_the_first_is_placed_and_the_others_are_listed(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "x", *NUMBERS, "a", "b", "b", "c", "d", "e")
    with pytest.raises(
        InvalidInput, match=r"line 11: 'a' is no .* \(nor are 'b', 'c', 'd', … \(4 in all\)\)"
    ):
        Stimuli.from_table(path)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2", "", "NA", "nan", "3.0"], "numeric"),
        (["1", "2", "a", "b"], "nominal"),  # half are words
        (["1st", "2nd", "3"], "nominal"),
        (["١", "٢"], "nominal"),
        (["True", "False"], "nominal"),
        (["", "NA"], "nominal"),
    ],
)
def test_columns_of_a_file_without_types(tmp_path: Path, cells: list[str], kind: str) -> None:
    path = write(tmp_path / "t.tsv", "item\tx", *(f"{number}\t{cell}" for number, cell in enumerate(cells)))
    assert Stimuli.from_table(path).kinds == {"x": kind}


def test_a_column_of_decimal_commas_is_no_set_of_labels(tmp_path: Path) -> None:
    path = write(tmp_path / "t.tsv", "item\tx", "a\t1,5", "b\t2,25", "c\t1.000,5")
    with pytest.raises(InvalidInput, match=r"line 2: '1,5' is no finite number.*Write 1.5 for 1,5"):
        Stimuli.from_table(path)


@pytest.mark.parametrize("dtype", [object, "string", "str", "category"])
def test_strings_of_digits_stay_labels(tmp_path: Path, dtype: str) -> None:
    frame = pd.DataFrame({"zip": pd.Series(["01", "1", "1.0", "7"], dtype=dtype), "x": [1, 2, 3, 4]})
    frame.to_parquet(tmp_path / "t.parquet")
    for table in (frame, tmp_path / "t.parquet"):
        stimuli = Stimuli.from_table(table)
        assert stimuli.kinds == {"zip": "nominal", "x": "numeric"}
        assert stimuli.features["zip"].to_list() == ["01", "1", "1.0", "7"]
    assert Stimuli.from_table(frame, kinds={"zip": "numeric"}).features["zip"].to_list() == [1, 1, 1, 7]


def test_numbers_and_strings_in_one_column() -> None:
    with pytest.raises(InvalidInput, match="row 2: 'n/a' is no finite number, as most of 'x' are"):
        Stimuli.from_table(pd.DataFrame({"x": [1.0, 2, "n/a", None]}, dtype=object))
    with pytest.raises(InvalidInput, match="row 1: feature 'x' is numeric but the value is 'inf'"):
        Stimuli.from_table(pd.DataFrame({"x": [1.0, float("inf")]}))


@pytest.mark.parametrize("dtype", ["int64", "Int64", "uint64", object, "csv"])
def test_whole_numbers_too_large_to_be_told_apart(tmp_path: Path, dtype: str) -> None:
    large = [2**62, 2**62 + 1, 2**62 + 2]
    frame = pd.DataFrame({"id": pd.Series(large, dtype="int64" if dtype == "csv" else dtype)})
    if dtype == "csv":
        frame.to_csv(tmp_path / "t.csv", index=False)
    table = tmp_path / "t.csv" if dtype == "csv" else frame
    with pytest.raises(InvalidInput, match=f"(line 3|row 1): {2**62 + 1} in 'id' has more digits than"):
        Stimuli.from_table(table)
    labels = Stimuli.from_table(table, kinds={"id": "nominal"}).features["id"]
    assert labels.to_list() == [str(number) for number in large]


@pytest.mark.parametrize(
    ("cell", "name"), [([1, 2], "ndarray|list"), ({"a": 1}, "dict"), (b"raw", "bytes"), ([], "ndarray|list")]
)
@pytest.mark.parametrize("column", ["x", "text", "item"])
def test_cells_that_hold_more_than_a_value(tmp_path: Path, cell: object, name: str, column: str) -> None:
    frame = pd.DataFrame({"y": [1, 2], column: [cell, cell]})
    frame.to_parquet(tmp_path / "t.parquet")
    for table in (frame, tmp_path / "t.parquet"):
        with pytest.raises(InvalidInput, match=f"row 0: '{column}' holds a value of type ({name}); a string"):
            Stimuli.from_table(table)
    if column == "x":
        assert list(Stimuli.from_table(frame, drop=["x"]).features) == ["y"]


def test_complex_numbers_are_refused() -> None:
    with pytest.raises(InvalidInput, match="The table: 'x' has complex numbers: give real ones"):
        Stimuli.from_table(pd.DataFrame({"x": [1j, 2]}))


def test_kinds_are_inferred() -> None:
    table = pd.DataFrame(
        {
            "number": [1, 2],
            "text number": ["1", "2.5"],
            "mixed number": [1, 2.5],
            "flag": [True, None],
            "text": ["a", "b"],
            "graded": pd.Categorical(["b", "a"], categories=["b", "a"], ordered=True),
            "nothing": [None, None],
        }
    )
    table["mixed number"] = table["mixed number"].astype(object)
    table = table.rename(columns={"text": "letters"})
    assert Stimuli.from_table(table).kinds == {
        "number": "numeric",
        "text number": "nominal",  # strings were meant as labels
        "mixed number": "numeric",
        "flag": "nominal",
        "letters": "nominal",
        "graded": "ordinal",
        "nothing": "nominal",
    }


def test_ordinal_numbers_have_their_natural_order() -> None:
    stimuli = Stimuli.from_table(pd.DataFrame({"x": [10, 9.0, 1.5]}), kinds={"x": "ordinal"})
    assert list(stimuli.features["x"].cat.categories) == ["1.5", "9", "10"]
