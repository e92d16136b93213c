"""Stimuli: what they hold, that they do not change, and that files give back what was written."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from thinkalike.errors import InvalidInput
from thinkalike.stimuli import Stimuli


def words() -> Stimuli:
    """Two sentences, a feature of each kind, missing values, and words that look like missing values."""
    table = pd.DataFrame(
        {
            "sentence": [7, 7, 8, 8],
            "word": ["the", "woman", "NA", "null"],
            "gender": [None, "female", "male", None],
            "length": [3, 5, 2.5, None],
            "size": ["small", "large", None, "medium"],
        }
    )
    return Stimuli.from_table(table, kinds={"size": ["small", "medium", "large", "huge"]})


def test_the_dtype_is_the_kind() -> None:
    stimuli = words()
    assert stimuli.kinds == {"gender": "nominal", "length": "numeric", "size": "ordinal"}
    assert stimuli.features["length"].dtype == np.float64
    assert list(stimuli.features["gender"].cat.categories) == ["female", "male"]
    assert not stimuli.features["gender"].cat.ordered
    assert list(stimuli.features["size"].cat.categories) == ["small", "medium", "large", "huge"]
    assert stimuli.features["size"].cat.ordered


def test_items_are_spans_of_their_sentences() -> None:
    stimuli = words()
    assert stimuli.sentences.to_dict() == {"7": "the woman", "8": "NA null"}
    for item in stimuli.items.itertuples():
        assert stimuli.sentences[item.sentence][item.start : item.end] == item.word
    assert list(stimuli.items.index) == ["7.0", "7.1", "8.0", "8.1"]
    assert len(stimuli) == 4


def test_what_is_handed_out_is_a_copy() -> None:
    stimuli = words()
    digest = stimuli.digest
    features, items, sentences = stimuli.features, stimuli.items, stimuli.sentences
    features.loc["7.0", "length"] = 99
    items.loc["7.0", "word"] = "a"
    sentences.loc["7"] = "a woman"
    features["new"] = 1.0
    again = Stimuli(stimuli.features, items=stimuli.items, sentences=stimuli.sentences)
    assert again.digest == digest
    assert list(stimuli.features) == ["gender", "length", "size"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_files_give_back_the_same_content(tmp_path: Path, suffix: str) -> None:
    stimuli = words()
    path = stimuli.save(tmp_path / "deep" / f"words{suffix}")
    back = Stimuli.from_table(path)
    assert back == stimuli
    pd.testing.assert_frame_equal(back.features, stimuli.features)
    pd.testing.assert_frame_equal(back.items, stimuli.items)
    pd.testing.assert_series_equal(back.sentences, stimuli.sentences)
    assert [p.name for p in path.parent.iterdir()] == [path.name]  # nothing half written is left


def test_a_csv_says_its_kinds_in_the_first_line(tmp_path: Path) -> None:
    first, header, *rows = words().save(tmp_path / "w.csv").read_text("utf-8").splitlines()
    assert first.startswith('# kinds: {"gender": "nominal", "length": "numeric", "size": ["small",')
    assert header == "item,sentence,text,word,start,end,gender,length,size"
    assert rows[2] == "8.0,8,NA null,NA,0,2,male,2.5,"


# Spaces, quotes and line breaks included.
LEVEL = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=5)
COLUMNS = st.integers(1, 12).flatmap(
    lambda n: st.fixed_dictionaries(
        {
            "nominal one": st.lists(st.none() | LEVEL, min_size=n, max_size=n),
            "number": st.lists(
                st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=n, max_size=n
            ),
            "flag": st.lists(st.none() | st.booleans(), min_size=n, max_size=n),
            "grade": st.lists(st.none() | st.sampled_from(["low", "NA", "high"]), min_size=n, max_size=n),
        }
    )
)


@settings(max_examples=40)
@example(
    columns={
        "nominal one": ["a\rb", "\n", " "],
        "number": [1, 2, 3],
        "flag": [None] * 3,
        "grade": ["NA"] * 3,
    },
    suffix=".csv",
)
@given(columns=COLUMNS, suffix=st.sampled_from([".csv", ".tsv", ".parquet"]))
def test_any_table_survives_a_file(
    columns: dict[str, list[object]], suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    frame = pd.DataFrame(columns, dtype=object)
    kinds = {"nominal one": "nominal", "number": "numeric", "flag": "nominal", "grade": ["low", "NA", "high"]}
    stimuli = Stimuli.from_table(frame, kinds=kinds)
    back = Stimuli.from_table(stimuli.save(tmp_path_factory.mktemp("files") / f"t{suffix}"))
    assert back.digest == stimuli.digest
    pd.testing.assert_frame_equal(back.features, stimuli.features)


def test_the_digest_sees_every_part_and_nothing_else() -> None:
    stimuli = words()
    features, items, sentences = stimuli.features, stimuli.items, stimuli.sentences
    same = Stimuli(features.copy(), items=items.copy(), sentences=sentences.copy())
    assert same.digest == stimuli.digest
    assert hash(same) == hash(stimuli)
    # The order in which nominal levels were declared is no content; that of ordinal ones is.
    turned = features.assign(gender=features["gender"].cat.reorder_categories(["male", "female"]))
    assert Stimuli(turned, items=items, sentences=sentences) == stimuli
    others = [
        features.assign(size=features["size"].cat.reorder_categories(["medium", "small", "large", "huge"])),
        features.assign(length=features["length"].fillna(0)),
        features.rename(columns={"gender": "sex"}),
    ]
    for other in others:
        assert Stimuli(other, items=items, sentences=sentences).digest != stimuli.digest
    shouted = Stimuli(features, items=items, sentences=sentences + "!")
    assert shouted.digest != stimuli.digest
    assert stimuli != "something else"


def test_minus_zero_is_zero() -> None:
    one, other = (Stimuli(pd.DataFrame({"x": [value, 1.0]})) for value in (0.0, -0.0))
    assert one.digest == other.digest


def test_the_same_seed_gives_the_same_bytes_in_two_processes(tmp_path: Path) -> None:
    code = (
        "import sys; from thinkalike.stimuli import Stimuli\n"
        "s = Stimuli.from_grammar(60, 3, balance=True)\n"
        "s.save(sys.argv[1]); print(s.digest)"
    )
    results = []
    for seed in ("1", "2"):  # of Python's own hashing of strings
        path = tmp_path / f"{seed}.csv"
        run = subprocess.run(
            [sys.executable, "-c", code, str(path)],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        results.append((run.stdout, path.read_bytes()))
    assert results[0] == results[1]
    other = Stimuli.from_grammar(60, 4, balance=True)
    assert other.digest != results[0][0].strip()


def test_subset_by_mask_and_by_position() -> None:
    stimuli = words()
    masked = stimuli.subset([False, False, True, True])
    assert list(masked.items["word"]) == ["NA", "null"]
    assert list(masked.sentences.index) == ["8"]
    assert list(masked.features["gender"].cat.categories) == ["male"]  # only levels that occur
    assert list(masked.features["size"].cat.categories) == ["small", "medium", "large", "huge"]
    assert stimuli.subset(np.array([3, 2])).items["word"].to_list() == ["null", "NA"]
    with pytest.raises(InvalidInput, match=r"shape \(3,\); \(4,\) was expected"):
        stimuli.subset([True, False, True])


def test_items_that_are_not_words(tmp_path: Path) -> None:
    table = pd.DataFrame({"item": ["cat.png", "dog.png"], "hue": ["red", "blue"], "path": ["a", None]})
    stimuli = Stimuli.from_table(table, features=["hue"])
    assert list(stimuli.features) == ["hue"]
    assert list(stimuli.items) == ["path"]
    assert stimuli.sentences.empty
    assert "2 items; features: hue" in repr(stimuli)
    for name in ("images.csv", "images.parquet"):
        back = Stimuli.from_table(stimuli.save(tmp_path / name))
        assert back == stimuli
        assert list(back.items) == ["path"]


def test_items_that_are_whole_sentences() -> None:
    stimuli = Stimuli.from_table(pd.DataFrame({"text": ["I fell", "he sang"], "tense": "past"}))
    assert list(stimuli.items["word"]) == ["I fell", "he sang"]
    assert list(stimuli.items["end"]) == [6, 7]
    assert "2 items in 2 sentences" in repr(stimuli)


SPAN = {"sentence": ["s"], "word": ["hi"], "start": [0], "end": [2]}


@pytest.mark.parametrize(
    ("features", "items", "sentences", "message"),
    [
        (pd.DataFrame({"x": [1, 2]}, index=["a", "a"]), None, None, "item id 'a' stands there twice"),
        (pd.DataFrame({"x": []}), None, None, "There are no items"),
        (pd.DataFrame({"word": [1]}), None, None, "cannot be called 'word'"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), None, None, "feature 'x' stands there twice"),
        (pd.DataFrame({"x": [1]}, index=["a"]), pd.DataFrame(index=["b"]), None, "different ids"),
        (pd.DataFrame({"x": [1]}), pd.DataFrame({"word": ["hi"]}), None, "'word' but none called 'sentence'"),
        (pd.DataFrame({"x": [1]}), pd.DataFrame(SPAN), None, "sentence 's', which has no text"),
        (
            pd.DataFrame({"x": [1]}),
            pd.DataFrame(SPAN),
            pd.Series({"s": "ho"}),
            "0 to 2 of its sentence 'ho' are 'ho'",
        ),
        (pd.DataFrame({"x": [np.inf]}), None, None, "feature 'x' is numeric but the value is 'inf'"),
    ],
)
def test_what_cannot_be_stimuli(
    features: pd.DataFrame, items: pd.DataFrame | None, sentences: pd.Series | None, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        Stimuli(features, items=items, sentences=sentences)


def pickled(made: Stimuli) -> Stimuli:
    return pickle.loads(pickle.dumps(made))  # noqa: S301


@pytest.mark.parametrize("remake", [pickled, copy.copy, copy.deepcopy])
def test_stimuli_pickle_and_copy(remake: Callable[[Stimuli], Stimuli]) -> None:
    made = Stimuli.from_grammar(5)
    again = remake(made)
    assert again == made
    pd.testing.assert_frame_equal(again.to_frame(), made.to_frame())
    assert again.kinds == made.kinds
    assert repr(again) == repr(made)


def test_stimuli_plot_their_correlations() -> None:
    chart = Stimuli.from_grammar(20, grammar="salle2024").plot().to_dict()
    assert "question" in str(chart)
