"""Importances against permutations, refits and coalitions that are really carried out."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import lru_cache
from math import factorial

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import nnls
from scipy.spatial.distance import pdist
from scipy.stats import rankdata

from thinkalike.encoding import importance as module
from thinkalike.encoding.importance import IMPORTANCES, make_feature_sets
from thinkalike.encoding.mlem import MLEM
from thinkalike.errors import InvalidInput, UnknownName

Table = Callable[..., pd.DataFrame]
Pairs = Callable[..., np.ndarray]
TRUE = {"case": 5.0, "number": 3.0, "rank": 1.0}


def rho(predictions: np.ndarray, y: np.ndarray) -> float:
    """Spearman's ρ as Pearson's r of scipy's ranks."""
    return float(np.corrcoef(rankdata(np.round(predictions, 10)), ranks_of(y.tobytes()))[0, 1])


@lru_cache(maxsize=4)
def ranks_of(y: bytes) -> np.ndarray:
    return rankdata(np.frombuffer(y))


@pytest.fixture(scope="module")
def data(
    make_features: Table, make_activations: Pairs, squared_differences: Pairs
) -> tuple[pd.DataFrame, ...]:
    """205 items, 20,910 pairs; `length` says nothing about X."""
    features = make_features(205, seed=5, missing=0.15, numeric=False)
    X = make_activations(features, TRUE, 40, 0.15, 5)
    return features, X, squared_differences(features), pdist(X, "sqeuclidean")  # type: ignore[return-value]


def permuted(Z: np.ndarray, w: np.ndarray, y: np.ndarray, columns: list[int], n: int) -> np.ndarray:
    """ρ less ρ with some columns shuffled over pairs, n times."""
    rng = np.random.default_rng(0)
    predictions, part = Z @ w, Z[:, columns] @ w[columns]
    shuffled = (rho(predictions - part + rng.permutation(part), y) for _ in range(n))
    return rho(predictions, y) - np.fromiter(shuffled, float)


def test_expected_importance_is_the_mean_of_random_permutations(data: tuple) -> None:
    features, X, Z, y = data
    assert len(y) >= 20_000
    mlem = MLEM().fit(features, X)
    found = mlem.importance(features, X)
    for k, name in enumerate(features):
        losses = permuted(Z, mlem.weights_.to_numpy(), y, [k], 200)
        error = losses.std(ddof=1) / np.sqrt(len(losses))
        assert abs(found[name] - losses.mean()) < 4 * error + 1e-12, name
    assert found["case"] > found["number"] > found["rank"] > 0.001
    assert abs(found["length"]) < 5e-3


def test_a_group_is_permuted_as_one(data: tuple) -> None:
    features, X, Z, y = data
    mlem = MLEM().fit(features, X)
    found = mlem.importance(features, X, groups={"agreement": ["number", "rank"]})
    assert list(found.index) == ["agreement", "case", "length"]
    losses = permuted(Z, mlem.weights_.to_numpy(), y, [1, 2], 60)
    assert abs(found["agreement"] - losses.mean()) < 4 * losses.std(ddof=1) / np.sqrt(60)
    assert found["case"] == mlem.importance(features, X)["case"]


def test_seeded_permutations_agree_with_the_expectation(data: tuple) -> None:
    features, X, _, _ = data
    mlem = MLEM(seed=3).fit(features, X)
    expected = mlem.importance(features, X)
    found = mlem.importance(features, X, method="permutation", n_permutations=40)
    np.testing.assert_allclose(found, expected, atol=3e-3)
    assert found.equals(mlem.importance(features, X, method="permutation", n_permutations=40))
    assert not found.equals(
        MLEM(seed=4).fit(features, X).importance(features, X, method="permutation", n_permutations=40)
    )


def test_permuted_stimuli_have_their_differences_computed_anew(
    data: tuple, squared_differences: Pairs
) -> None:
    features, X, Z, y = data
    mlem = MLEM().fit(features, X)
    w = mlem.weights_.to_numpy()
    found = mlem.importance(features, X, method="stimuli", n_permutations=60)
    rng, losses = np.random.default_rng(0), []
    for _ in range(12):
        order = rng.permutation(len(features))
        column = squared_differences(features[["number"]].iloc[order].reset_index(drop=True))[:, 0]
        losses.append(rho(Z @ w, y) - rho(Z @ w + w[1] * (column - Z[:, 1]), y))
    error = np.std(losses, ddof=1) * np.sqrt(1 / 12 + 1 / 60)
    assert abs(found["number"] - np.mean(losses)) < 4 * error


def refit(Z: np.ndarray, y: np.ndarray, columns: list[int], alpha: float) -> float:
    """ρ of non-negative ridge with an intercept on some of the columns."""
    if not columns:
        return 0.0
    A = Z[:, columns] - Z[:, columns].mean(axis=0)
    rows = np.vstack([A, np.sqrt(alpha) * np.eye(len(columns))])
    w, _ = nnls(rows, np.concatenate([y - y.mean(), np.zeros(len(columns))]))
    return rho(Z[:, columns] @ w, y)


def within_others(Z: np.ndarray, w: np.ndarray, y: np.ndarray, columns: list[int], n: int) -> np.ndarray:
    """ρ less ρ with some columns shuffled among the pairs that are alike in all other columns, n times."""
    rng = np.random.default_rng(0)
    others = np.delete(Z, columns, axis=1)
    _, alike = np.unique(others, axis=0, return_inverse=True)
    order = np.argsort(alike, kind="stable")
    drops = []
    for _ in range(n):
        source = np.empty(len(Z), dtype=int)
        source[order] = np.lexsort((rng.random(len(Z)), alike))
        shuffled = Z.copy()
        shuffled[:, columns] = Z[source][:, columns]
        drops.append(rho(Z @ w, y) - rho(shuffled @ w, y))
    return np.array(drops)


def test_conditional_importance_is_the_mean_of_permutations_given_the_others(data: tuple) -> None:
    features, X, Z, y = data
    mlem = MLEM().fit(features, X)
    found = mlem.importance(features, X, method="conditional")
    for k, name in enumerate(features):
        drops = within_others(Z, mlem.weights_.to_numpy(), y, [k], 30)
        assert abs(found[name] - drops.mean()) < 4 * drops.std() / np.sqrt(len(drops)) + 1e-9
    assert found["case"] > found["number"] > found["length"]


def test_conditional_importance_of_a_group(data: tuple) -> None:
    features, X, Z, y = data
    mlem = MLEM().fit(features, X)
    found = mlem.importance(features, X, method="conditional", groups={"both": ["case", "number"]})
    drops = within_others(Z, mlem.weights_.to_numpy(), y, [0, 1], 30)
    assert abs(found["both"] - drops.mean()) < 4 * drops.std() / np.sqrt(len(drops)) + 1e-9


def test_what_the_others_determine_has_no_conditional_importance() -> None:
    """A copy of a feature adds nothing to it, though each alone matters."""
    rng = np.random.default_rng(0)
    case = rng.choice(["nom", "acc"], 80)
    features = pd.DataFrame({"case": case, "copy": case, "noise": rng.choice(["a", "b"], 80)})
    X = 3.0 * (case == "nom")[:, None] + rng.normal(size=(80, 4))
    mlem = MLEM().fit(features, X)
    given_others = mlem.importance(features, X, method="conditional")
    assert given_others[["case", "copy"]].tolist() == [0.0, 0.0]
    assert mlem.importance(features, X, method="expected").max() > 0.05


def test_conditional_importance_needs_patterns(make_features: Table, make_activations: Pairs) -> None:
    features = make_features(60, seed=1)
    mlem = MLEM(ordered="minmax").fit(features, make_activations(features, TRUE, 10, 0.1, 1))
    with pytest.raises(InvalidInput, match="differ by too many amounts for that: bin numeric features"):
        mlem.importance(features, make_activations(features, TRUE, 10, 0.1, 1), method="conditional")


def test_drop_refits_without_the_feature(data: tuple) -> None:
    features, X, Z, y = data
    found = MLEM(alpha=2.0).fit(features, X).importance(features, X, method="drop")
    whole = refit(Z, y, [0, 1, 2, 3], 2.0)
    for k, name in enumerate(features):
        others = [c for c in range(4) if c != k]
        assert found[name] == pytest.approx(whole - refit(Z, y, others, 2.0), abs=1e-8)


def test_shapley_values_are_those_of_all_coalitions(data: tuple) -> None:
    features, X, Z, y = data
    mlem = MLEM(alpha=2.0).fit(features, X)
    found = mlem.importance(features, X, method="shapley")
    value = {
        frozenset(c): refit(Z, y, sorted(c), 2.0)
        for size in range(5)
        for c in itertools.combinations(range(4), size)
    }
    for k, name in enumerate(features):
        expected = 0.0
        for coalition, without in value.items():
            if k not in coalition:
                share = factorial(len(coalition)) * factorial(3 - len(coalition)) / factorial(4)
                expected += share * (value[coalition | {k}] - without)
        assert found[name] == pytest.approx(expected, abs=1e-8)
    assert found.sum() == pytest.approx(mlem.score(features, X), abs=1e-10)
    grouped = mlem.importance(features, X, method="shapley", groups={"both": ["case", "number"]})
    assert grouped.sum() == pytest.approx(mlem.score(features, X), abs=1e-10)


def test_shapley_is_sampled_above_the_limit(data: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    features, X, _, _ = data
    mlem = MLEM().fit(features, X)
    exact = mlem.importance(features, X, method="shapley")
    monkeypatch.setattr(module, "MAX_EXACT_SHAPLEY", 3)
    sampled = mlem.importance(features, X, method="shapley")
    assert sampled.sum() == pytest.approx(mlem.score(features, X), abs=1e-10)
    np.testing.assert_allclose(sampled, exact, atol=0.02)
    assert not sampled.equals(exact)


@pytest.mark.parametrize("method", IMPORTANCES)
def test_noise_has_no_importance(data: tuple, method: str) -> None:
    features, X, _, _ = data
    found = MLEM().fit(features, X).importance(features, X, method=method, n_permutations=5)
    # A refit can lose a little by noise, which breaks ties in the predictions.
    assert abs(found["length"]) < (0.03 if method in ("drop", "shapley") else 5e-3)
    assert found["case"] > 0.1


@pytest.mark.parametrize("method", IMPORTANCES)
def test_one_level_has_no_importance_at_all(data: tuple, method: str) -> None:
    """Not 0, which would say that it does not matter."""
    features, X, _, _ = data
    mlem = MLEM().fit(features, X)
    one = (features["number"] == "sg").to_numpy()
    found = mlem.importance(features[one], X[one], method=method, n_permutations=2)
    assert np.isnan(found["number"])
    assert found.drop("number").notna().all()


def test_numeric_features_are_permuted_and_it_is_said(make_features: Table, make_activations: Pairs) -> None:
    features = make_features(60, seed=1)
    features["frequency"] = features["frequency"].where(features["case"] == "nom", features["frequency"] + 3)
    X = make_activations(features, TRUE, 20, 0.1, 1)
    mlem = MLEM(ordered="minmax").fit(features, X)
    with pytest.warns(UserWarning, match="too many patterns .* means over 20 seeded permutations"):
        found = mlem.importance(features, X)
    few = mlem.importance(features, X, method="permutation")
    pd.testing.assert_series_equal(found, few)
    for method in ("stimuli", "drop", "shapley"):
        other = mlem.importance(features, X, method=method, n_permutations=5)
        assert other["case"] > 0.05
        assert abs(other["length"]) < 0.05


def test_too_many_combinations_are_permuted_too(data: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    features, X, _, _ = data
    mlem = MLEM().fit(features, X)
    tables = {
        m: mlem.importance(features, X, method=m, n_permutations=30) for m in ("permutation", "stimuli")
    }
    monkeypatch.setattr(module, "MAX_COMBINATIONS", 10)
    for method, expected in tables.items():
        pairs = mlem.importance(features, X, method=method, n_permutations=30)
        np.testing.assert_allclose(pairs, expected, atol=0.02)


def test_groups_that_cannot_be() -> None:
    names = ("case", "number", "rank")
    with pytest.raises(UnknownName, match=r"no feature 'nmber'\. Did you mean 'number'"):
        make_feature_sets(names, {"g": ["nmber"]})
    with pytest.raises(InvalidInput, match="'case' is in two groups"):
        make_feature_sets(names, {"g": ["case"], "h": ["case", "rank"]})
    with pytest.raises(InvalidInput, match="group 'g' must be a list of features, got 'case'"):
        make_feature_sets(names, {"g": "case"})
    with pytest.raises(InvalidInput, match="must be a list of features"):
        make_feature_sets(names, {"g": []})
    with pytest.raises(InvalidInput, match="group 'rank' has the name of a feature outside it"):
        make_feature_sets(names, {"rank": ["case", "number"]})
    assert [p.name for p in make_feature_sets(names, {"rank": ["rank", "case"]})] == ["rank", "number"]


def test_unknown_importance(data: tuple) -> None:
    features, X, _, _ = data
    with pytest.raises(UnknownName, match=r"no importance 'shapely'\. Did you mean 'shapley'"):
        MLEM().fit(features, X).importance(features, X, method="shapely")


def test_permuted_stimuli_need_all_pairs(data: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    features, X, _, _ = data
    mlem = MLEM().fit(features, X)
    object.__setattr__(mlem.settings_, "max_pairs", 1000)
    with pytest.warns(UserWarning, match="seeded sample of 1,000 of the"):
        assert np.isfinite(mlem.importance(features, X)).all()
    with (
        pytest.warns(UserWarning, match="seeded sample"),
        pytest.raises(InvalidInput, match="needs all pairs, but these are a sample"),
    ):
        mlem.importance(features, X, method="stimuli")


@pytest.mark.parametrize("method", ["expected", "permutation", "stimuli", "drop"])
@pytest.mark.parametrize("seed", range(4))
def test_a_feature_of_weight_0_has_importance_0_and_no_rounding(method: str, seed: int) -> None:
    """τ_w ranks by the sign of differences: 1e-17 would put one feature of no weight above another."""
    rng = np.random.default_rng(seed)
    features = pd.DataFrame({name: rng.choice(list("xyz"), 60) for name in "abcd"})
    X = pd.get_dummies(features["a"]).to_numpy(float) @ rng.normal(size=(3, 10)) * 3 + rng.normal(
        size=(60, 10)
    )
    mlem = MLEM(alpha=100.0).fit(features, X)
    idle = mlem.weights_.index[mlem.weights_ == 0]
    assert len(idle)
    assert (mlem.importance(features, X, method=method)[idle] == 0).all()
