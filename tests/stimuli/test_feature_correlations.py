"""Correlations without pairs against `numpy.corrcoef` on pairs; variance inflation; rare levels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinkalike.errors import InvalidInput, StoreError, UnknownName
from thinkalike.stimuli import Stimuli
from thinkalike.stimuli.feature_correlations import (
    FeatureCorrelations,
    feature_correlations,
    variance_inflation,
)


def differences(column: pd.Series, ordered: str, missing: str) -> np.ndarray:
    """The squared differences of all pairs of values, by definition."""
    i, j = np.triu_indices(len(column), 1)
    absent = column.isna().to_numpy()
    numeric = column.dtype == float
    if absent.all():
        return np.zeros(len(i))
    values = column.to_numpy() if numeric else column.cat.codes.to_numpy(float)
    if ordered == "minmax" and (numeric or column.cat.ordered):
        span = np.nanmax(values) - np.nanmin(values) if numeric else len(column.cat.categories) - 1
        different = ((values[i] - values[j]) / (span or 1)) ** 2
    else:
        different = (values[i] != values[j]).astype(float)
    both = ~absent[i] & ~absent[j]
    return np.where(both, different, (absent[i] != absent[j]) if missing == "level" else 0.0)


def pair_table(features: pd.DataFrame, ordered: str, missing: str) -> np.ndarray:
    """All pairs, materialised: (n_pairs, n_features)."""
    return np.column_stack([differences(features[name], ordered, missing) for name in features])


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    n = draw(st.integers(6, 25))

    def column(values: st.SearchStrategy[object]) -> list[object]:
        return draw(st.lists(st.none() | values, min_size=n, max_size=n))

    frame = pd.DataFrame(
        {
            "letter": column(st.sampled_from("abc")),
            "flag": column(st.booleans()),
            "grade": column(st.sampled_from(["low", "mid", "high"])),
            "number": column(st.integers(-3, 3).map(float)),
        },
        dtype=object,
    )
    kinds = {
        "letter": "nominal",
        "flag": "nominal",
        "grade": ["low", "mid", "high", "top"],
        "number": "numeric",
    }
    return Stimuli.from_table(frame, kinds=kinds).features


@pytest.mark.parametrize("ordered", ["indicator", "minmax"])
@pytest.mark.parametrize("missing", ["ignore", "level"])
@settings(max_examples=25)
@given(features=tables())
def test_correlations_equal_those_over_pairs(features: pd.DataFrame, ordered: str, missing: str) -> None:
    found = feature_correlations(features, ordered=ordered, missing=missing).values
    pairs = pair_table(features, ordered, missing)
    varying = pairs.std(axis=0) > 1e-9
    assert np.isnan(found[~varying]).all()
    assert np.isnan(found[:, ~varying]).all()
    expected = np.corrcoef(pairs[:, varying], rowvar=False)
    np.testing.assert_allclose(found[np.ix_(varying, varying)], expected, atol=1e-9, rtol=0)


def test_correlations_of_generated_words_equal_those_over_pairs() -> None:
    stimuli = Stimuli.from_grammar(60, 0, controls=["zipf"])  # missing values, numeric and ordinal features
    for ordered in ("indicator", "minmax"):
        found = stimuli.correlations(ordered=ordered)
        expected = np.corrcoef(pair_table(stimuli.features, ordered, "ignore"), rowvar=False)
        np.testing.assert_allclose(found.values, expected, atol=1e-9, rtol=0)
        assert found.n_pairs == len(stimuli) * (len(stimuli) - 1) // 2


def test_variance_inflation_equals_that_of_regressions_over_pairs() -> None:
    stimuli = Stimuli.from_grammar(40, 1)
    pairs = pair_table(stimuli.features, "indicator", "ignore")
    expected = []
    for f in range(pairs.shape[1]):
        others = np.column_stack([np.ones(len(pairs)), np.delete(pairs, f, axis=1)])
        residual = pairs[:, f] - others @ np.linalg.lstsq(others, pairs[:, f], rcond=None)[0]
        expected.append(pairs[:, f].var() / residual.var())
    np.testing.assert_allclose(stimuli.correlations().variance_inflation, expected, rtol=1e-8)


def test_a_feature_that_others_determine_has_infinite_inflation() -> None:
    twice = pd.DataFrame(
        {"x": list("aabbc"), "same": list("aabbc"), "other": list("abcab"), "one": ["z"] * 5}
    )
    found = Stimuli.from_table(twice).correlations()
    assert np.isinf(found.variance_inflation[:2]).all()
    assert np.isfinite(found.variance_inflation[2])
    assert np.isnan(found.variance_inflation[3])
    assert variance_inflation(np.eye(3)).tolist() == [1, 1, 1]


def test_constant_and_rare_levels_are_named() -> None:
    table = pd.DataFrame(
        {
            "letter": ["a"] * 150 + ["b"] * 49 + ["c"],
            "one": ["z"] * 199 + [None],
            "none": [None] * 200,
            "number": np.arange(200.0),
            "grade": ["low"] * 199 + ["high"],
        }
    )
    found = Stimuli.from_table(table, kinds={"grade": ["low", "mid", "high"]}).correlations()
    assert found.constant == ("one", "none")
    # An ordinal level that never occurs is not rare, and numbers have no levels.
    assert found.rare == (("letter", "c", 1), ("grade", "high", 1))
    assert Stimuli.from_table(table).correlations(rare=0.3).rare[:2] == (
        ("letter", "b", 49),
        ("letter", "c", 1),
    )
    assert Stimuli.from_table(table).correlations(missing="level").constant == ("none",)


def test_summary_and_frame() -> None:
    found = Stimuli.from_grammar(50, 0).correlations()
    frame = found.to_frame()
    assert len(frame) == 64
    one = frame.set_index(["feature", "other"])["correlation"]
    f, g = found.names.index("tense"), found.names.index("part_of_speech")
    assert one["tense", "part_of_speech"] == found.values[f, g]
    summary = found.summary()
    assert summary.loc["tense", "with"] == "part_of_speech"
    strongest = np.abs(found.values - np.eye(8)).max(axis=1)
    np.testing.assert_allclose(summary["strongest_correlation"].abs(), strongest)


def test_the_summary_of_a_lonely_feature() -> None:
    found = Stimuli.from_table(pd.DataFrame({"x": ["a", "b", "b"]})).correlations().summary()
    assert found.loc["x", "with"] == ""
    assert np.isnan(found.loc["x", "strongest_correlation"])


def test_it_can_be_saved(tmp_path: Path) -> None:
    found = Stimuli.from_grammar(20, 0).correlations()
    path = found.save(tmp_path / "deep" / "correlations")
    pd.testing.assert_frame_equal(pd.read_parquet(path), found.to_frame(), check_dtype=False)
    rest = json.loads(path.with_suffix(".json").read_text("utf-8"))
    assert rest["settings"] == {"ordered": "indicator", "missing": "ignore", "rare": 0.01}
    assert rest["n_items"] == found.n_items
    assert sorted(p.name for p in path.parent.iterdir()) == ["correlations.json", "correlations.parquet"]


def test_errors() -> None:
    with pytest.raises(InvalidInput, match="there is 1 item: give two or more"):
        Stimuli(pd.DataFrame({"x": [1.0]})).correlations()
    with pytest.raises(UnknownName, match="'minmix'"):
        Stimuli(pd.DataFrame({"x": [1.0, 2.0]})).correlations(ordered="minmix")
    with pytest.raises(InvalidInput, match=r"2 features need \(2, 2\) correlations, not \(3, 3\)"):
        FeatureCorrelations(("a", "b"), np.eye(3), np.ones(2), (), (), 5)


def test_it_can_be_read_again(tmp_path: Path) -> None:
    features = pd.DataFrame(
        {"b": ["x", "y", "x"] * 50, "a": [1.0, 2.0, 3.0] * 50, "one": "same", "z": ["p"] * 149 + ["q"]}
    )
    found = Stimuli(features).correlations(ordered="minmax")
    again = FeatureCorrelations.load(found.save(tmp_path / "correlations"))
    assert again.names == found.names == ("b", "a", "one", "z")
    np.testing.assert_array_equal(again.values, found.values)
    np.testing.assert_array_equal(again.variance_inflation, found.variance_inflation)
    assert (again.constant, again.rare, again.n_items) == (("one",), (("z", "q", 1),), 150)
    assert again.settings == found.settings
    assert repr(again) == repr(found)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"none\.json is missing: make it anew with stimuli\.correlations"):
        FeatureCorrelations.load(tmp_path / "none")
    path = Stimuli(pd.DataFrame({"a": [1, 2, 1], "b": [1, 1, 2]})).correlations().save(tmp_path / "c")
    for damaged, content in (
        (path, b"PAR1"),
        (path.with_suffix(".json"), b"{}"),
    ):
        whole = damaged.read_bytes()
        damaged.write_bytes(content)
        with pytest.raises(StoreError, match=r"is damaged, or was changed .* make it anew"):
            FeatureCorrelations.load(path)
        damaged.write_bytes(whole)


def test_it_prints_what_it_found() -> None:
    features = pd.DataFrame({"gender": ["f", "m"] * 100, "size": [1.0] * 150 + [2.0] * 50, "one": "same"})
    found = Stimuli(features).correlations()
    lines = repr(found).split("\n")
    assert lines[0] == "Correlations of 3 features over 19,900 pairs of 200 items"
    assert lines[1].split() == ["variance", "inflation", "strongest", "correlation"]
    assert lines[2].split() == ["gender", "1.00", f"{found.values[0, 1]:+.2f}", "with", "size"]
    assert lines[4].split() == ["one", "–", "–"]
    assert lines[5] == "One level only: one."
    assert "<td>1.00</td>" in found._repr_html_() or "<td>1.0</td>" in found._repr_html_()
