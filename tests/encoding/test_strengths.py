"""Strengths against least squares on the pairs themselves."""

import numpy as np
import pandas as pd
import pytest

from thinkalike.encoding.crossval import cross_validate, layer_target, make_plan
from thinkalike.encoding.importance import make_feature_sets
from thinkalike.encoding.settings import make_settings
from thinkalike.encoding.strengths import plan_strengths, strengths
from thinkalike.errors import InvalidInput
from thinkalike.stimuli.feature_coding import code_features


@pytest.fixture
def table():
    rng = np.random.default_rng(3)
    length = rng.integers(1, 9, 60).astype(float)
    length[rng.random(60) < 0.2] = np.nan
    gender = pd.Series(rng.choice(["f", "m", None], 60), dtype="category")
    return pd.DataFrame({"gender": gender, "kind": rng.choice(list("abcd"), 60), "length": length})


def on_pairs(table, X, items, *, ordered, item_effects=False):
    """The same coefficients from a matrix of pairs, by least squares; also with a column for every item."""
    i, j = (items[k] for k in np.triu_indices(len(items), k=1))
    y = ((X[i] - X[j]) ** 2).sum(axis=1)
    columns, steps = [], []
    for name in table:
        values = table[name].to_numpy(dtype=object)
        has = ~pd.isna(values)
        both = has[i] & has[j]
        if ordered == "minmax" and name == "length":
            span = np.nanmax(table[name]) - np.nanmin(table[name])
            delta = np.where(both, (table[name].to_numpy()[i] - table[name].to_numpy()[j]) / span, 0.0) ** 2
            all_i, all_j = np.triu_indices(len(table), k=1)
            every = ((table[name].to_numpy()[all_i] - table[name].to_numpy()[all_j]) / span) ** 2
            steps.append(every[every > 0].mean())
        else:
            delta = (both & (values[i] != values[j])).astype(float)
            steps.append(1.0)
        columns.append(delta)
    presences = [
        (table[name].isna().to_numpy()[i] != table[name].isna().to_numpy()[j]).astype(float)
        for name in table
        if table[name].isna().any()
    ]
    own = [(i == item) * 1.0 + (j == item) for item in items] if item_effects else [np.ones(len(y))]
    design = np.stack([*columns, *presences, *own], axis=1)
    found = np.linalg.lstsq(design, y, rcond=None)[0]
    shared = len(columns) + len(presences)
    noise = (y - design[:, :shared] @ found[:shared]).mean()
    return found[: len(columns)] * np.array(steps) / noise


@pytest.mark.parametrize("item_effects", [False, True])
@pytest.mark.parametrize("ordered", ["indicator", "minmax"])
def test_strengths_are_least_squares_over_pairs_with_presence_set_apart(table, ordered, item_effects):
    X = np.random.default_rng(0).normal(size=(60, 7)) + 3 * (table["kind"] == "a").to_numpy()[:, None]
    fold = np.arange(60) % 3
    differences = code_features(table, ordered=ordered)
    sets = make_feature_sets(differences.names)
    plan = plan_strengths(differences, sets, fold, own_effects=item_effects)
    found = strengths(plan, layer_target(X, make_settings(ordered=ordered), 60))
    expected = [
        on_pairs(table, X, np.flatnonzero(fold != k), ordered=ordered, item_effects=item_effects)
        for k in range(3)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_with_item_effects_the_lengths_of_vectors_move_no_feature():
    """Vectors of a rare level are longer, along an axis of their own: its levels lie no further apart."""
    rng = np.random.default_rng(6)
    rare = rng.random(600) < 0.2
    X = rng.normal(size=(600, 20)) * np.where(rare, 1.5, 1.0)[:, None]
    differences = code_features(pd.DataFrame({"rare": rare}))
    sets, target = make_feature_sets(differences.names), layer_target(X, make_settings(), 600)
    assert strengths(plan_strengths(differences, sets), target)[0, 0] > 0.2
    assert abs(strengths(plan_strengths(differences, sets, own_effects=True), target)[0, 0]) < 0.01


def test_item_effects_need_a_transform_of_the_vectors():
    X = np.random.default_rng(0).normal(size=(20, 3))
    differences = code_features(pd.DataFrame({"a": np.arange(20) % 2}))
    plan = plan_strengths(differences, make_feature_sets(differences.names), own_effects=True)
    with pytest.raises(InvalidInput, match="Item effects need a distance that is a transform of X"):
        strengths(plan, layer_target(X, make_settings(distance="manhattan"), 20))


def test_a_strength_does_not_know_how_often_a_feature_differs():
    """Two features of equal strength, one of them rare: importances differ, strengths do not."""
    rng = np.random.default_rng(1)
    rare, common = rng.random(4000) < 0.02, rng.random(4000) < 0.5
    directions = np.linalg.qr(rng.normal(size=(40, 2)))[0].T
    X = rng.normal(size=(4000, 40)) + 6 * (rare[:, None] * directions[0] + common[:, None] * directions[1])
    found = cross_validate(pd.DataFrame({"rare": rare, "common": common}), X)
    importance, strength = found.importance[0].mean(axis=0), found.strengths[0].mean(axis=0)
    assert importance[1] > 3 * importance[0]
    assert strength == pytest.approx([36 / 80, 36 / 80], rel=0.1)  # 6² over 2 · 40 units of noise


def test_what_missing_values_do_goes_to_no_other_feature():
    """Words that have a gender lie apart from those that have none; the part of speech says which those are.

    Ten kinds, of which half have a gender, and nothing else tells the kinds apart: their strength is 0.
    """
    rng = np.random.default_rng(2)
    kind = rng.integers(0, 10, 3000)
    gendered = kind < 5
    X = rng.normal(size=(3000, 20)) + 2.0 * gendered[:, None]
    gender = np.where(gendered, rng.choice(["f", "m"], 3000), None)
    features = pd.DataFrame({"kind": kind.astype(str), "gender": pd.Series(gender, dtype="category")})
    found = cross_validate(features, X)
    assert np.abs(found.strengths).max() < 0.05
    assert found.weights[0, :, 0].min() > 10  # the encoding model gives it to the part of speech


def test_a_feature_that_the_others_make_up_has_no_strength():
    rng = np.random.default_rng(4)
    a = rng.choice(["x", "y"], 80)
    features = pd.DataFrame({"a": a, "copy": a, "b": rng.choice(["x", "y"], 80)})
    found = cross_validate(features, rng.normal(size=(80, 5)))
    assert np.isnan(found.strengths[0, :, :2]).all()
    assert np.isfinite(found.strengths[0, :, 2]).all()


def test_a_group_has_the_mean_strength_of_its_features(table):
    X = np.random.default_rng(0).normal(size=(60, 7))
    single = cross_validate(table, X)
    grouped = cross_validate(table, X, groups={"both": ["gender", "length"]})
    np.testing.assert_allclose(grouped.strengths[..., 0], single.strengths[..., [0, 2]].mean(axis=-1))
    np.testing.assert_allclose(grouped.strengths[..., 1], single.strengths[..., 1])


def test_with_folds_over_pairs_all_items_count(table):
    X = np.random.default_rng(0).normal(size=(60, 7))
    found = cross_validate(table, X, plan=make_plan(table, preset="salle2024"))
    expected = on_pairs(table, X, np.arange(60), ordered="indicator")
    np.testing.assert_allclose(found.strengths[0], np.stack([expected] * 2), rtol=1e-9, atol=1e-12)
