"""JSON lines and datasets of Hugging Face are tables too."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from thinkalike.errors import InvalidInput, MissingExtra
from thinkalike.stimuli import Stimuli

ROWS = [
    {"premise": "the king sleeps", "tense": "present", "length": 3},
    {"premise": "the queens slept", "tense": "past", "length": 3},
    {"premise": "no one sang loudly", "tense": "past", "length": 4},
]


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_json_lines_with_named_columns(tmp_path):
    path = written(tmp_path / "mine.jsonl", *(json.dumps(row) for row in ROWS), "")
    stimuli = Stimuli.load(path, columns={"text": "premise"})
    assert stimuli.sentences.to_list() == [row["premise"] for row in ROWS]
    assert stimuli.kinds == {"tense": "nominal", "length": "numeric"}
    same = Stimuli.from_table(pd.DataFrame(ROWS), columns={"text": "premise"})
    assert same.digest == stimuli.digest


def test_what_an_object_lacks_is_missing(tmp_path):
    path = written(tmp_path / "mine.jsonl", '{"text": "a b", "tense": "past"}', '{"text": "c d"}')
    assert Stimuli.load(path).features["tense"].isna().to_list() == [False, True]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"text": "a"}', "{"], "line 2: this is not JSON"),
        (["[1, 2]"], "line 1: one object per line was expected"),
        (['{"text": "a", "tags": ["x"]}'], "line 1: 'tags' holds several values"),
        ([" "], "holds no rows"),
        (['{"text": ' + "[" * 100_000], "line 1: this has brackets within brackets, too deep to read"),
        (['{"text": "a", "x": ' + "9" * 5000 + "}"], r"line 1: this is not JSON \(Exceeds the limit"),
        (['{"text": "a", "x": 1, "x": 2}'], r"line 1: this is not JSON \('x' stands there twice\)"),
        (['{"text": "\\ud800"}'], r"line 1: this is not JSON \(.*surrogates not allowed\)"),
    ],
)
def test_lines_that_are_no_rows(tmp_path, lines, message):
    with pytest.raises(InvalidInput, match=message):
        Stimuli.load(written(tmp_path / "bad.jsonl", *lines))


def test_other_bytes(tmp_path):
    (tmp_path / "bad.jsonl").write_bytes(b'{"text": "\xff\xfe"}')
    with pytest.raises(InvalidInput, match="is not UTF-8 text"):
        Stimuli.load(tmp_path / "bad.jsonl")


def test_a_column_that_is_missing(tmp_path):
    path = written(tmp_path / "mine.jsonl", *(json.dumps(row) for row in ROWS))
    with pytest.raises(InvalidInput, match="'hypothesis'"):
        Stimuli.load(path, columns={"text": "hypothesis"})


def test_a_treebank_has_no_columns(tmp_path):
    with pytest.raises(InvalidInput, match="leave out columns"):
        Stimuli.load(tmp_path / "mine.conllu", columns={"text": "premise"})


def test_datasets_in_memory_and_in_folders(tmp_path):
    datasets = pytest.importorskip("datasets")
    expected = Stimuli.from_table(pd.DataFrame(ROWS), columns={"text": "premise"})
    made = datasets.Dataset.from_list(ROWS)
    assert Stimuli.from_table(made, columns={"text": "premise"}).digest == expected.digest
    made.save_to_disk(tmp_path / "one")
    assert Stimuli.load(tmp_path / "one", columns={"text": "premise"}).digest == expected.digest
    with pytest.raises(InvalidInput, match="'hypothesis'"):
        Stimuli.load(tmp_path / "one", columns={"text": "hypothesis"})
    several = datasets.DatasetDict({"train": made, "test": made.select([0, 1])})
    with pytest.raises(InvalidInput, match="has the splits train, test"):
        Stimuli.from_table(several)
    several.save_to_disk(tmp_path / "several")
    with pytest.raises(InvalidInput, match=r"several splits: give one of them, .*train"):
        Stimuli.load(tmp_path / "several")
    assert len(Stimuli.load(tmp_path / "several" / "test", columns={"text": "premise"})) == 2


def test_datasets_in_the_cache_of_the_library(tmp_path):
    """What `load_dataset` leaves in its cache: one .arrow file per split."""
    datasets = pytest.importorskip("datasets")
    path = written(tmp_path / "mine.jsonl", *(json.dumps(row) for row in ROWS))
    datasets.load_dataset("json", data_files={"test": str(path)}, cache_dir=str(tmp_path / "cache"))
    (cached,) = (tmp_path / "cache").rglob("*-test.arrow")
    expected = Stimuli.load(path, columns={"text": "premise"})
    assert Stimuli.load(cached, columns={"text": "premise"}).digest == expected.digest
    with pytest.raises(InvalidInput, match="'hypothesis'"):
        Stimuli.load(cached, columns={"text": "hypothesis"})
    cached.write_bytes(b"no arrow")
    with pytest.raises(InvalidInput, match=r"arrow is not a readable dataset"):
        Stimuli.load(cached)


def test_a_damaged_dataset(tmp_path):
    pytest.importorskip("datasets")
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(InvalidInput, match="is not a readable dataset"):
        Stimuli.load(tmp_path)


def test_without_the_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(MissingExtra, match=r"pip install 'thinkalike\[datasets\]'"):
        Stimuli.load(tmp_path)


def test_columns_on_the_command_line(tmp_path):
    from thinkalike.cli.shown import read_stimuli

    path = written(tmp_path / "mine.jsonl", *(json.dumps(row) for row in ROWS))
    assert np.array_equal(read_stimuli(path, column=["text=premise"]).features["length"], [3, 3, 4])
    with pytest.raises(InvalidInput, match="write ROLE=NAME"):
        read_stimuli(path, column=["premise"])
    with pytest.raises(InvalidInput, match="give --stimuli FILE"):
        read_stimuli(None, column=["text=premise"])
