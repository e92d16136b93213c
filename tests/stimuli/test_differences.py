"""Moments over pairs against pairs that are really formed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.stimuli import differences
from thinkalike.stimuli.differences import share_differing
from thinkalike.stimuli.feature_coding import code_features, kind_of, require_variation

RANKS = ["low", "mid", "high", "top"]


def table(n: int, seed: int, missing: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    features = pd.DataFrame(
        {
            "case": pd.Categorical(rng.choice(["nom", "acc", "dat"], n)),
            "animate": rng.random(n) < 0.4,
            "rank": pd.Categorical(rng.choice(RANKS[:3], n), categories=RANKS, ordered=True),
            "length": rng.integers(1, 9, n).astype(float),
            "frequency": rng.normal(size=n),
            "word": rng.choice(["a", "b", "c", "d", "e"], n),
        }
    )
    for name in features.columns:
        if missing and name != "animate":
            features.loc[rng.random(n) < missing, name] = np.nan
    return features


def brute(features: pd.DataFrame, ordered: str, missing: str) -> np.ndarray:
    """Squared differences of every pair, one by one, straight from the values: (n_pairs, n_features)."""
    columns = []
    for name in features:
        column = features[name]
        kind = kind_of(column)
        lowest, span = 0.0, 1.0
        if ordered == "minmax" and kind == "ordinal":
            column = pd.Series(column.cat.codes, dtype=float).where(column.cat.codes >= 0)
            span = len(features[name].cat.categories) - 1
        elif ordered == "minmax" and kind == "numeric":
            lowest, span = column.min(), column.max() - column.min()
        values = list(column)
        scaled = ordered == "minmax" and kind != "nominal"
        row = []
        for a, b in itertools.combinations(values, 2):
            if pd.isna(a) or pd.isna(b):
                row.append(float(missing == "level" and pd.isna(a) != pd.isna(b)))
            elif scaled:
                row.append((((a - lowest) - (b - lowest)) / span) ** 2)
            else:
                row.append(float(a != b))
        columns.append(row)
    return np.array(columns).T


WAYS = {"at once": {}, "two by two": {"MAX_LEVELS_AT_ONCE": 0}, "in chunks": {"_ONE_HOT_CELLS": 300}}
"""The two ways to the moments, and the first of them a few items at a time"""


@contextmanager
def made(way: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WAYS[way].items():
            patch.setattr(differences, name, value)
        yield


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ordered", ["indicator", "minmax"])
@pytest.mark.parametrize("missing", ["ignore", "level"])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_moments_equal_those_of_formed_pairs(way: str, ordered: str, missing: str, share: float) -> None:
    features = table(40, seed=1, missing=share)
    pairs = brute(features, ordered, missing)
    with made(way):
        moments = code_features(features, ordered=ordered, missing=missing).pair_moments()
    assert moments.n_pairs == len(pairs)
    np.testing.assert_allclose(moments.means, pairs.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(moments.products, pairs.T @ pairs / len(pairs), atol=1e-12)
    np.testing.assert_allclose(moments.covariance(), np.cov(pairs.T, bias=True), atol=1e-12)


@pytest.mark.parametrize("ordered", ["indicator", "minmax"])
@pytest.mark.parametrize("missing", ["ignore", "level"])
def test_tables_and_item_differences_equal_formed_pairs(ordered: str, missing: str) -> None:
    features = table(25, seed=2, missing=0.2)
    pairs = brute(features, ordered, missing)
    coded = code_features(features, ordered=ordered, missing=missing)
    i, j = np.triu_indices(25, 1)
    for f, expected in zip(coded.features, pairs.T, strict=True):
        np.testing.assert_allclose(f.squared_differences(i, j), expected, atol=1e-12)
        np.testing.assert_allclose(f.table()[f.codes[i], f.codes[j]], expected, atol=1e-12)


@settings(max_examples=30)
@given(
    n=st.integers(2, 20),
    seed=st.integers(0, 10_000),
    ordered=st.sampled_from(["indicator", "minmax"]),
    missing=st.sampled_from(["ignore", "level"]),
    way=st.sampled_from(list(WAYS)),
)
def test_weights_count_copies_and_leave_out_pairs_of_copies(
    n: int, seed: int, ordered: str, missing: str, way: str
) -> None:
    features = table(n, seed, missing=0.3)
    weights = np.random.default_rng(seed).integers(0, 4, n)
    weights[:2] += 1
    coded = code_features(features, ordered=ordered, missing=missing)
    copies = np.repeat(np.arange(n), weights)
    i, j = (copies[k] for k in np.triu_indices(len(copies), 1))
    i, j = i[i != j], j[i != j]
    pairs = np.stack([f.squared_differences(i, j) for f in coded.features], axis=1)
    with made(way):
        moments = coded.pair_moments(weights=weights)
    assert moments.n_pairs == len(pairs)
    np.testing.assert_allclose(moments.means, pairs.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(moments.products, pairs.T @ pairs / len(pairs), atol=1e-12)


def test_many_levels_need_no_table() -> None:
    rng = np.random.default_rng(0)
    n = 3000
    features = pd.DataFrame(
        {"word": np.arange(n).astype(str), "x": rng.normal(size=n), "y": rng.normal(size=n)}
    )
    features.loc[5:9, "word"] = "five"
    coded = code_features(features, ordered="minmax")
    i, j = np.triu_indices(n, 1)
    moments = coded.pair_moments()
    M = np.stack([f.squared_differences(i, j) for f in coded.features], axis=1)
    np.testing.assert_allclose(moments.means, M.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(moments.products, M.T @ M / len(M), rtol=1e-10)
    with pytest.raises(InvalidInput, match=r"'word' has 2996 levels: a table .* not made above 1000"):
        coded["word"].table()


def test_kinds_follow_the_dtype() -> None:
    coded = code_features(table(10, seed=0))
    assert coded.names == ("case", "animate", "rank", "length", "frequency", "word")
    assert coded.kinds == ("nominal", "nominal", "ordinal", "numeric", "numeric", "nominal")
    assert coded.codes.shape == (10, 6)
    assert len(coded) == 10


def test_nullable_types_are_taken() -> None:
    features = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3, 1], dtype="Int64"),
            "flag": pd.array([True, None, False, True], dtype="boolean"),
            "text": pd.array(["a", None, "b", "a"], dtype="string"),
        }
    )
    coded = code_features(features)
    assert coded.kinds == ("numeric", "nominal", "nominal")
    for f in coded.features:
        np.testing.assert_array_equal(f.squared_differences(0, np.arange(4)), [0, 0, 1, 0])


def test_taking_items_keeps_the_scale() -> None:
    features = table(30, seed=3, missing=0.1)
    coded = code_features(features, ordered="minmax")
    items = np.array([3, 7, 20, 21])
    few = coded.take(items)
    assert len(few) == 4
    for whole, part in zip(coded.features, few.features, strict=True):
        expected = whole.squared_differences(items[:, None], items[None, :])
        got = part.squared_differences(np.arange(4)[:, None], np.arange(4)[None, :])
        np.testing.assert_array_equal(got, expected)


def test_new_items_can_be_coded_on_an_earlier_range() -> None:
    first = code_features(pd.DataFrame({"x": [0.0, 10.0]}), ordered="minmax")
    assert first.ranges == {"x": (0.0, 10.0)}
    second = code_features(pd.DataFrame({"x": [0.0, 5.0]}), ordered="minmax", ranges=first.ranges)
    assert second["x"].table()[0, 1] == pytest.approx(0.25)


def test_every_wrong_call_says_what_to_do() -> None:
    features = table(5, seed=0)
    with pytest.raises(UnknownName, match="Did you mean 'minmax'"):
        code_features(features, ordered="min-max")
    with pytest.raises(UnknownName, match="no treatment of missing values 'drop'"):
        code_features(features, missing="drop")
    with pytest.raises(InvalidInput, match="features as ndarray: give a DataFrame"):
        code_features(np.zeros((3, 2)))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"Got 0 feature\(s\)"):
        code_features(features[[]])
    with pytest.raises(InvalidInput, match="'case' comes more than once"):
        code_features(pd.concat([features, features[["case"]]], axis=1))
    with pytest.raises(InvalidInput, match="'x' is infinite at item 1"):
        code_features(pd.DataFrame({"x": [0.0, np.inf]}))
    with pytest.raises(InvalidInput, match="Complex data not supported: give real numbers in 'z'"):
        code_features(pd.DataFrame({"z": [1j, 2.0]}))
    with pytest.raises(InvalidInput, match="'when' is of type datetime64"):
        code_features(pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}))
    with pytest.raises(UnknownName, match=r"no feature 'cse'\. Did you mean 'case'"):
        code_features(features)["cse"]
    with pytest.raises(InvalidInput, match="make no pair"):
        code_features(features.iloc[:1]).pair_moments()
    with pytest.raises(InvalidInput, match=r"weights of shape \(3,\) for 5 items"):
        code_features(features).pair_moments(weights=np.ones(3))


def test_a_feature_with_one_level_is_named() -> None:
    same = pd.DataFrame({"a": ["x", "y", "x"], "b": ["z", "z", None]})
    with pytest.raises(InvalidInput, match="'b' has one level"):
        require_variation(code_features(same).features)
    require_variation(code_features(same, missing="level").features)


def test_a_feature_that_is_different_in_every_pair_is_named() -> None:
    """The difference is 1 for all pairs then, which no distance can go with."""
    table = pd.DataFrame({"rt": np.linspace(0.2, 0.4, 12), "a": list("xyx") * 4})
    with pytest.raises(InvalidInput, match=r"'rt' is different in every pair .* ordered='minmax'"):
        require_variation(code_features(table).features)
    require_variation(code_features(table, ordered="minmax").features)
    with pytest.raises(InvalidInput, match=r"'id' is different in every pair .* looks like an id"):
        require_variation(code_features(table.assign(id=list("abcdefghijkl"))[["a", "id"]]).features)
    require_variation(code_features(table.iloc[:3]).features)  # so few may differ by accident
    missing = table.assign(rt=table["rt"].mask(table.index == 2))
    require_variation(code_features(missing).features)  # a missing value makes pairs without a difference
    with pytest.raises(InvalidInput, match="'rt' is different in every pair"):
        require_variation(code_features(missing, missing="level").features)


@pytest.mark.parametrize("missing", ["ignore", "level"])
def test_the_share_of_pairs_that_differ(missing: str) -> None:
    values = pd.Series([1.0, 1.0, 2.0, 3.0, np.nan, np.nan])
    (feature,) = code_features(values.to_frame("f"), missing=missing).features
    pairs = [feature.squared_differences(i, j) for i, j in itertools.combinations(range(6), 2)]
    assert share_differing(feature) == pytest.approx(np.mean(pairs))
    (scaled,) = code_features(values.to_frame("f"), ordered="minmax").features
    assert np.isnan(share_differing(scaled))
