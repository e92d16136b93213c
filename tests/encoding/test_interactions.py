"""Full W: when it is needed, what pairs of features add, and when it is no metric."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from thinkalike.encoding import MLEM, compare_interactions, interaction_importance
from thinkalike.encoding.designs import is_metric, make_design, triangles
from thinkalike.encoding.interactions import corrected_interval
from thinkalike.errors import UnknownName
from thinkalike.stimuli.feature_coding import code_features

Pairs = Callable[..., np.ndarray]


def two_features(n: int = 160, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"a": rng.choice(["x", "y", "z"], n), "b": rng.choice(["u", "v"], n), "c": rng.choice(["s", "t"], n)}
    )


def conjunction(features: pd.DataFrame, seed: int = 0) -> np.ndarray:
    """A direction for each combination of a and b: items that differ in both are as far apart as in one.

    The squared distance is Δ_a + Δ_b − Δ_a Δ_b, which is ΔᵀWΔ for W = [[1, −½], [−½, 1]].
    """
    rng = np.random.default_rng(seed)
    cells = pd.get_dummies(features["a"] + features["b"]).to_numpy(float)
    c = pd.get_dummies(features["c"]).to_numpy(float)
    return np.hstack([2 * cells, 0.5 * c, 0.15 * rng.normal(size=(len(features), 30))])


def test_interactions_are_needed_where_there_are_some() -> None:
    features = two_features()
    found = compare_interactions(features, conjunction(features))
    assert found.needed
    assert (found.full > found.diagonal).all()
    np.testing.assert_array_equal(found.difference, found.full - found.diagonal)
    assert str(found).startswith("Interactions are needed: held-out ρ")
    assert list(found.to_frame().columns) == ["fold", "diagonal", "full", "difference"]
    assert found.settings.interactions


def test_interactions_are_not_needed_where_there_are_none(make_activations: Pairs) -> None:
    features = two_features()
    X = make_activations(features, {"a": 3.0, "b": 2.0, "c": 1.0}, 400, 0.3, 1)
    found = compare_interactions(features, X)
    assert not found.needed
    assert abs(found.difference).max() < 0.01
    assert "not shown to be needed" in str(found)


def test_the_interval_is_the_corrected_one() -> None:
    """Nadeau & Bengio: the mean has variance s²(1/K + n_test/n_train), and n_test/n_train is 1/(K − 1)."""
    d = np.array([0.01, 0.03, 0.02, 0.0, 0.04])
    low, high = corrected_interval(d, confidence=0.9)
    half = stats.t.ppf(0.95, 4) * np.sqrt(d.var(ddof=1) * (1 / 5 + 1 / 4))
    assert (low, high) == pytest.approx((d.mean() - half, d.mean() + half))


def test_pairs_of_features_that_act_together_stand_out() -> None:
    features = two_features()
    found = interaction_importance(features, conjunction(features))
    frame = found.to_frame().set_index(["feature", "with"])["interaction"]
    assert abs(frame["a", "b"]) > 3 * max(abs(frame["a", "c"]), abs(frame["b", "c"]))
    np.testing.assert_array_equal(found.values, found.values.transpose(0, 2, 1))


@pytest.mark.parametrize("method", ["expected", "drop"])
def test_interaction_is_what_two_features_lose_together(method: str) -> None:
    """From importances of groups, one by one."""
    features = two_features(80)
    X = conjunction(features)
    folds = np.repeat([0, 1], 40)
    found = interaction_importance(features, X, folds=folds, alpha=1.0, method=method)
    for k in range(2):
        train, test = folds != k, folds == k
        part = MLEM(interactions=True).fit(features[train], X[train])
        one = part.importance(features[test], X[test], method=method)
        two = part.importance(features[test], X[test], method=method, groups={"ab": ["a", "b"]})["ab"]
        assert found.values[k, 0, 1] == pytest.approx(two - one["a"] - one["b"], abs=1e-9)
        assert found.values[k, 0, 0] == pytest.approx(one["a"], abs=1e-9)


def test_unknown_method() -> None:
    features = two_features(40)
    with pytest.raises(UnknownName, match=r"no interaction importance 'dropp'\. Did you mean 'drop'"):
        interaction_importance(features, conjunction(features), method="dropp")


def svec(W: list[list[float]]) -> np.ndarray:
    matrix = np.array(W)
    f, g = np.triu_indices(len(matrix))
    return matrix[f, g] * np.where(f == g, 1.0, np.sqrt(2.0))


def test_a_positive_semidefinite_W_need_not_be_a_metric() -> None:
    features = code_features(pd.DataFrame({"a": ["x", "y", "z", "x"], "b": ["u", "v", "w", "w"]}))
    full = make_design("full", 2)
    W = [[1.0, -1.0], [-1.0, 1.0]]
    assert np.linalg.eigvalsh(W).min() >= -1e-12
    assert not is_metric(triangles(features), full, svec(W))
    assert is_metric(triangles(features), full, svec([[1.0, 0.0], [0.0, 2.0]]))
    assert is_metric(triangles(features), make_design("diagonal", 2), np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    ("levels", "expected"), [("xyz,uvw", {True, False}), ("xy,uv", {True}), ("xy,uv,st", {True, False})]
)
def test_is_metric_agrees_with_all_triples_of_a_grid(levels: str, expected: set[bool]) -> None:
    """Brute force over every triple of items. Three levels, or three features of two, can break it."""
    rng = np.random.default_rng(0)
    grid = pd.DataFrame(itertools.product(*levels.split(",")))
    grid.columns = [f"f{k}" for k in grid]
    F = grid.shape[1]
    differences, full, verdicts = code_features(grid), make_design("full", F), set()
    for _ in range(60):
        root = rng.normal(size=(F, rng.integers(1, F + 1)))
        W = root @ root.T
        delta = (grid.to_numpy()[:, None] != grid.to_numpy()[None]).astype(float)
        D = np.sqrt(np.maximum(np.einsum("ijf,fg,ijg->ij", delta, W, delta), 0))
        holds = bool((D[:, None, :] <= D[:, :, None] + D[None, :, :] + 1e-9 * D.max()).all())
        assert is_metric(triangles(differences), full, svec(W.tolist())) == holds
        verdicts.add(holds)
    assert verdicts == expected


def test_ignored_missing_values_make_it_no_metric() -> None:
    table = pd.DataFrame({"a": ["x", "y", None, "x"], "b": ["u", "v", "u", "v"]})
    X = np.random.default_rng(0).normal(size=(4, 3)) + 9 * (table[["a"]] == "x").to_numpy()
    assert not MLEM(alpha=0.0).fit(table, X).is_metric_
    assert MLEM(alpha=0.0, missing="level").fit(table, X).is_metric_


def test_minmax_differences_are_a_metric() -> None:
    table = pd.DataFrame({"x": np.arange(30.0), "y": np.arange(30) % 3})
    X = np.random.default_rng(0).normal(size=(30, 3)) + np.arange(30)[:, None]
    assert MLEM(ordered="minmax").fit(table, X).is_metric_


def test_many_features_are_looked_at_by_sample() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"f{k}": rng.choice(["x", "y", "z"], 60) for k in range(12)})
    coded, full = code_features(table), make_design("full", 12)
    assert is_metric(triangles(coded), full, svec(np.eye(12).tolist()))
    v = np.ones(12) * np.where(np.arange(12) % 2, 1, -1)
    assert not is_metric(triangles(coded), full, svec(np.outer(v, v).tolist()))
