"""Which features to work with, of what kind, and of how many sentences."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.stimuli import Stimuli
from thinkalike.stimuli.kinds import parse_kinds

TABLE = pd.DataFrame(
    {
        "sentence": [1, 1, 2, 2, 3, 3],
        "word": ["the", "king", "a", "queen", "some", "kings"],
        "colour": ["red", "blue", "red", "blue", "red", "red"],
        "size": ["small", "large", "large", "small", "small", "large"],
        "rank": [1, 2, 3, 1, 2, 3],
    }
)
TREEBANK = """\
# text = the kings sleep
1\tthe\tthe\tDET\t_\tDefinite=Def\t2\tdet\t_\t_
2\tkings\tking\tNOUN\t_\tNumber=Plur\t3\tnsubj\t_\t_
3\tsleep\tsleep\tVERB\t_\tNumber=Plur\t0\troot\t_\t_

# text = a king sleeps
1\ta\ta\tDET\t_\tDefinite=Ind\t2\tdet\t_\t_
2\tking\tking\tNOUN\t_\tNumber=Sing\t3\tnsubj\t_\t_
3\tsleeps\tsleep\tVERB\t_\tNumber=Sing\t0\troot\t_\t_

"""


@pytest.fixture(params=["frame", "csv", "parquet", "own parquet"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> pd.DataFrame | Path:
    if request.param == "frame":
        return TABLE
    path = tmp_path / f"t.{request.param.split()[-1]}"
    if request.param == "own parquet":
        return Stimuli.from_table(TABLE).save(path)
    TABLE.to_csv(path, index=False) if request.param == "csv" else TABLE.to_parquet(path)
    return path


def test_features_and_drop_of_a_table(table: pd.DataFrame | Path) -> None:
    chosen = Stimuli.from_table(table, features=["rank", "colour"])
    assert list(chosen.features) == ["rank", "colour"]
    assert "size" in chosen.items  # a column that is no feature stays with the items
    without = Stimuli.from_table(table, drop=["size"])
    assert list(without.features) == ["colour", "rank"]
    assert "size" not in without.to_frame()
    both = Stimuli.from_table(table, features=["rank", "colour"], drop=["rank"], kinds={"rank": "nominal"})
    assert list(both.features) == ["colour"]


def test_choose_gives_the_same_as_reading_so(table: pd.DataFrame | Path) -> None:
    kinds = {"rank": "nominal", "size": ["small", "large"]}
    read = Stimuli.from_table(table, drop=["colour"], kinds=kinds)
    assert read.kinds == {"size": "ordinal", "rank": "nominal"}
    assert Stimuli.from_table(table).choose(drop=["colour"], kinds=kinds) == read
    assert list(Stimuli.from_table(table).choose(["size", "colour"]).features) == ["size", "colour"]
    assert read.choose() is read


def test_names_that_are_none(table: pd.DataFrame | Path) -> None:
    for option in ({"features": ["colur"]}, {"drop": ["colur"]}, {"kinds": {"colur": "nominal"}}):
        with pytest.raises(UnknownName, match=r"There is no feature 'colur'\. Did you mean 'colour'?"):
            Stimuli.from_table(table, **option)  # type: ignore[arg-type]
        with pytest.raises(UnknownName, match=r"There is no feature 'colur'\. Did you mean 'colour'?"):
            Stimuli.from_table(table).choose(**option)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"no feature is left of colour, size, rank: keep at least one"):
        Stimuli.from_table(table, drop=["colour", "size", "rank"])
    with pytest.raises(InvalidInput, match=r"no feature is left of colour, size, rank: keep at least one"):
        Stimuli.from_table(table, features=[])
    with pytest.raises(InvalidInput, match=r"drop='size' is one name: give a list of names, drop=\['size'\]"):
        Stimuli.from_table(table, drop="size")
    for option in ({"features": ["size", "rank", "size"]}, {"drop": ["size", "size"]}):
        with pytest.raises(InvalidInput, match="names 'size' twice: name each feature once"):
            Stimuli.from_table(table, **option)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="names 'size' twice: name each feature once"):
            Stimuli.from_table(table).choose(**option)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="'colour' is numeric but the value is 'red'"):
        Stimuli.from_table(table).choose(kinds={"colour": "numeric"})


def test_a_treebank(tmp_path: Path) -> None:
    path = tmp_path / "t.conllu"
    path.write_text(TREEBANK, encoding="utf-8")
    chosen = Stimuli.from_conllu(path, features=["Number", "depth"], kinds={"depth": "ordinal"})
    assert chosen.kinds == {"Number": "nominal", "depth": "ordinal"}
    assert "Number" not in Stimuli.from_conllu(path, drop=["Number"]).features
    assert Stimuli.from_conllu(path, n_sentences=1).sentences.to_list() == ["the kings sleep"]
    with pytest.raises(InvalidInput, match="The first 3 sentences were asked for, but there are 2"):
        Stimuli.from_conllu(path, n_sentences=3)
    with pytest.raises(UnknownName, match=r"There is no feature 'number'\. Did you mean 'Number'?"):
        Stimuli.from_conllu(path, features=["number"])


def test_load_reads_by_the_suffix(tmp_path: Path) -> None:
    (tmp_path / "t.conllu").write_text(TREEBANK, encoding="utf-8")
    saved = Stimuli.from_table(TABLE).save(tmp_path / "t.csv")
    assert Stimuli.load(saved) == Stimuli.from_table(TABLE)
    assert Stimuli.load(saved, n_sentences=2, drop=["size"]).sentences.to_list() == ["the king", "a queen"]
    treebank = Stimuli.load(tmp_path / "t.conllu", n_sentences=1, features=["Number"])
    assert (len(treebank), list(treebank.features)) == (3, ["Number"])
    for n, message in ((4, "there are 3: ask for fewer"), (0, "0 sentences were asked for: ask for at")):
        with pytest.raises(InvalidInput, match=message):
            Stimuli.load(saved, n_sentences=n)
    images = Stimuli(pd.DataFrame({"hue": ["red", "blue"]})).save(tmp_path / "images.csv")
    with pytest.raises(InvalidInput, match="these items are not words in sentences"):
        Stimuli.load(images, n_sentences=1)


def test_kinds_as_one_writes_them_on_a_command_line() -> None:
    assert parse_kinds(["a=nominal", "b=numeric", "size = small, large", "x=y=ordinal"]) == {
        "a": "nominal",
        "b": "numeric",
        "size": ["small", "large"],
        "x=y": "ordinal",
    }
    assert parse_kinds(["a=nominal", "a=nominal"]) == {"a": "nominal"}
    for text, message in {
        "a": "'a' declares no kind: write NAME=nominal",
        "=nominal": "declares no kind",
        "a=": "declares no kind",
        "a=nomnal": "There is no kind of feature 'nomnal'. Did you mean 'nominal'?",
    }.items():
        with pytest.raises(InvalidInput, match=message):
            parse_kinds([text])
    with pytest.raises(InvalidInput, match="'a' is declared twice, as 'nominal' and as 'numeric'"):
        parse_kinds(["a=nominal", "a=numeric"])
