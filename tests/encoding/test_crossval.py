"""Nested cross-validation against the same thing done slowly on pairs that are really formed."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import nnls
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr

from thinkalike.encoding import cross_validate, make_plan
from thinkalike.encoding.fitting import smallest_best
from thinkalike.encoding.plan import EncodingPlan, plan_encoding
from thinkalike.errors import InvalidInput, UnknownName

Table = Callable[..., pd.DataFrame]
Pairs = Callable[..., np.ndarray]
ALPHAS = (1e-2, 10.0, 1e3)
WEIGHTS = {"case": 4.0, "number": 2.0, "rank": 1.0}


class Slow:
    """All pairs of one data set, and ridge on some of them."""

    def __init__(self, Z: np.ndarray, y: np.ndarray, n: int) -> None:
        self.Z, self.y = Z, y
        self.i, self.j = np.triu_indices(n, 1)

    def within(self, items: np.ndarray) -> np.ndarray:
        return np.isin(self.i, items) & np.isin(self.j, items)

    def fit(
        self, pairs: np.ndarray, alpha: float, columns: list[int] | None = None
    ) -> tuple[np.ndarray, float]:
        Z, y = self.Z[pairs], self.y[pairs]
        kept = list(range(Z.shape[1])) if columns is None else columns
        A = Z[:, kept] - Z[:, kept].mean(axis=0)
        rows = np.vstack([A, np.sqrt(alpha) * np.eye(len(kept))])
        w = np.zeros(Z.shape[1])
        w[kept] = nnls(rows, np.concatenate([y - y.mean(), np.zeros(len(kept))]))[0]
        return w, float(y.mean() - Z.mean(axis=0) @ w)

    def rho(self, pairs: np.ndarray, w: np.ndarray) -> float:
        return float(spearmanr(np.round(self.Z[pairs] @ w, 10), self.y[pairs]).statistic)


@pytest.fixture
def data(make_features: Table, make_activations: Pairs) -> tuple[pd.DataFrame, np.ndarray]:
    features = make_features(75, seed=2, missing=0.1, numeric=False)
    return features, make_activations(features, WEIGHTS, 20, 0.12, 2)


@pytest.mark.parametrize("n_folds", [2, 3, 5])
@pytest.mark.parametrize("ordered", ["indicator", "minmax"])
def test_equals_the_slow_way(data: tuple, squared_differences: Pairs, n_folds: int, ordered: str) -> None:
    features, X = data
    plan = plan_encoding(features, n_folds=n_folds, ordered=ordered, alphas=ALPHAS, importance="drop")
    found = cross_validate(features, {"only": X}, plan=plan)
    slow = Slow(squared_differences(features, ordered), pdist(X, "sqeuclidean"), 75)
    for k in range(n_folds):
        test, train = np.flatnonzero(plan.fold == k), plan.fold != k
        inner = []
        for b in np.unique(plan.block[train]):
            fitted = slow.within(np.flatnonzero(train & (plan.block != b)))
            judged = slow.within(np.flatnonzero(plan.block == b))
            inner.append([slow.rho(judged, slow.fit(fitted, a)[0]) for a in ALPHAS])
        curve = np.mean(inner, axis=0)
        np.testing.assert_allclose(found.alpha_curves[0, k], curve, atol=1e-9)
        alpha = found.alphas[0, k]
        assert alpha == ALPHAS[int(np.argmax(curve.round(11)))]
        training, testing = slow.within(np.flatnonzero(train)), slow.within(test)
        w, constant = slow.fit(training, alpha)
        np.testing.assert_allclose(found.weights[0, k], w, atol=1e-8)
        assert found.intercepts[0, k] == pytest.approx(constant, abs=1e-8)
        assert found.scores[0, k] == pytest.approx(slow.rho(testing, w), abs=1e-9)
        assert found.n_pairs[k] == testing.sum()
        for f in range(4):
            without, _ = slow.fit(training, alpha, [c for c in range(4) if c != f])
            expected = slow.rho(testing, w) - slow.rho(testing, without)
            assert found.importance[0, k, f] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("distance", ["manhattan", "precomputed", "cosine"])
def test_other_distances_go_the_same_way(data: tuple, squared_differences: Pairs, distance: str) -> None:
    features, X = data
    y = {"manhattan": pdist(X, "cityblock") ** 2, "precomputed": pdist(X, "chebyshev") ** 2,
         "cosine": 2 * pdist(X, "cosine")}[distance]  # fmt: skip
    given = np.sqrt(squareform(y)) if distance == "precomputed" else X
    plan = plan_encoding(features, n_folds=3, distance=distance, alpha=1.0)
    found = cross_validate(features, given, plan=plan)
    slow = Slow(squared_differences(features), y, 75)
    for k in range(3):
        w, _ = slow.fit(slow.within(np.flatnonzero(plan.fold != k)), 1.0)
        np.testing.assert_allclose(found.weights[0, k], w, atol=1e-8)
        assert found.scores[0, k] == pytest.approx(
            slow.rho(slow.within(np.flatnonzero(plan.fold == k)), w), abs=1e-9
        )


def test_salle2024_equals_the_slow_way(data: tuple, squared_differences: Pairs) -> None:
    """Pairs in two folds; distances min-max scaled, then squared; α by squared error on one inner split."""
    features, X = data
    plan: Any = make_plan(features, preset="salle2024", alphas=ALPHAS)
    found = cross_validate(features, X, plan=plan)
    d = pdist(X)
    slow = Slow(squared_differences(features), ((d - d.min()) / (d.max() - d.min())) ** 2, 75)
    assert sorted(np.bincount(plan.fold)) == [1387, 1388]
    assert plan.inner.mean() == pytest.approx(0.2, abs=0.03)
    for k in range(2):
        train = plan.fold != k
        errors = []
        for a in ALPHAS:
            w, c = slow.fit(train & ~plan.inner, a)
            judged = train & plan.inner
            errors.append(np.mean((slow.Z[judged] @ w + c - slow.y[judged]) ** 2))
        np.testing.assert_allclose(found.alpha_curves[0, k], -np.array(errors), atol=1e-10)
        assert found.alphas[0, k] == ALPHAS[int(np.argmin(errors))]
        w, c = slow.fit(train, found.alphas[0, k])
        np.testing.assert_allclose(found.weights[0, k], w, atol=1e-8)
        assert found.scores[0, k] == pytest.approx(slow.rho(plan.fold == k, w), abs=1e-9)
    expected = cross_validate(features, X, preset="salle2024", alphas=ALPHAS, importance="expected")
    np.testing.assert_allclose(found.importance, expected.importance, atol=0.02)
    assert found.preset == "salle2024"
    assert found.importance_used == "permutation"
    by_rho = cross_validate(features, X, preset="salle2024", alphas=ALPHAS, select="spearman")
    assert (by_rho.alpha_curves > 0.5).all()
    errors = -found.alpha_curves[0]
    assert found.alpha_spread[0] == pytest.approx(max(np.ptp(e) / e.min() for e in errors))
    fixed = cross_validate(features, X, preset="salle2024", alpha=2.0, groups={"g": ["case", "rank"]})
    assert fixed.names == ("g", "number", "length")
    assert (fixed.alphas == 2.0).all()


def test_salle2024_on_a_handful_of_pairs() -> None:
    """So few that the inner split may be empty: the smallest α, and no curve."""
    table = pd.DataFrame({"a": ["x", "y", "x", "y"]})
    X = np.random.default_rng(0).normal(size=(4, 3))
    found = [cross_validate(table, X, preset="salle2024", n_permutations=1, seed=s) for s in range(6)]
    undefined = [np.isnan(f.alpha_curves).all(axis=2).any() for f in found]
    assert any(undefined)
    for one in found:
        empty = np.isnan(one.alpha_curves[0]).all(axis=1)
        assert (one.alphas[0][empty] == 1e-4).all()


def test_many_layers_share_one_plan(data: tuple, make_activations: Pairs) -> None:
    features, X = data
    layers = {0: X, 1: make_activations(features, {"number": 3.0}, 8, 0.1, 9)}
    plan = plan_encoding(features)
    found = cross_validate(features, layers, plan=plan)
    assert found.layers == (0, 1)
    assert found.scores.shape == (2, 5)
    assert found.importance.shape == (2, 5, 4)
    for k, array in layers.items():
        alone = cross_validate(features, array)
        np.testing.assert_array_equal(alone.scores[0], found.scores[k])
        np.testing.assert_array_equal(alone.importance[0], found.importance[k])

    class Store(UserDict[str, int]):
        """A mapping whose layers are read when they are asked for, as activations on disk are."""

        def __getitem__(self, label: str) -> np.ndarray:
            return layers[self.data[label]]

    store = Store(a=0, b=1)
    np.testing.assert_array_equal(cross_validate(features, store, plan=plan).scores, found.scores)
    frame = found.to_frame()
    assert list(frame.columns) == ["layer", "feature", "importance", "sd", "n_folds"]
    row = frame[(frame.layer == 1) & (frame.feature == "number")].iloc[0]
    assert row.importance == pytest.approx(found.importance[1, :, 1].mean())
    assert row.sd == pytest.approx(found.importance[1, :, 1].std(ddof=1))
    assert len(found.scores_frame()) == 10
    assert found.settings.as_dict()["preset"] == found.preset == "default"


def test_alpha_is_reported_with_whether_it_matters(data: tuple) -> None:
    features, X = data
    found = cross_validate(features, X)
    assert found.alpha_curves.shape == (1, 5, 9)
    assert found.alpha_spread[0] == pytest.approx(np.ptp(found.alpha_curves[0], axis=1).max())
    assert found.alpha_matters.dtype == bool
    fixed = cross_validate(features, X, alpha=1.0)
    assert fixed.alpha_curves.shape == (1, 5, 0)
    assert np.isnan(fixed.alpha_spread).all()


def test_ties_between_alphas_go_to_the_smallest() -> None:
    assert smallest_best((1e4, 1.0, 0.1), np.array([0.5, 0.5 + 1e-13, 0.5])) == 0.1
    assert smallest_best((0.1, 1.0), np.array([0.5, 0.5 + 1e-9])) == 1.0
    assert smallest_best((0.1, 1.0), np.array([np.nan, np.nan])) == 0.1


def test_one_level_in_a_fold_is_nan_there(data: tuple) -> None:
    """Not 0: the fold cannot tell, nor can it when only the test fold has the other level."""
    features, X = data
    folds = np.arange(75) % 3
    rare = np.where(folds == 0, features["number"].astype(object), "sg")
    table = features.assign(number=pd.Categorical(rare))
    found = cross_validate(table, X, folds=folds, alpha=1.0)
    k = found.names.index("number")
    assert np.isnan(found.importance[0, :, k]).all()
    assert np.isfinite(np.delete(found.importance, k, axis=2)).all()
    frame = found.to_frame().set_index("feature")
    assert frame.loc["number", "n_folds"] == 0
    assert np.isnan(frame.loc["number", "importance"])


def test_what_stays_together_shares_a_fold(data: tuple) -> None:
    features, _ = data
    label = np.arange(75) // 3
    plan = plan_encoding(features, together=label)
    for k in range(25):
        assert len(np.unique(plan.fold[label == k])) == 1
    collapsed = plan_encoding(features, together=label, duplicates="collapse")
    np.testing.assert_array_equal(collapsed.kept, np.arange(0, 75, 3))
    assert plan_encoding(features, folds=["a", "b", "c"] * 25).settings.n_folds == 3


def test_collapsed_duplicates_are_left_out_of_the_activations(data: tuple) -> None:
    features, X = data
    label, first = np.arange(75) // 3, np.arange(0, 75, 3)
    found = cross_validate(features, X, together=label, duplicates="collapse", alpha=1.0, n_folds=2)
    alone = cross_validate(features.iloc[first], X[first], alpha=1.0, n_folds=2)
    np.testing.assert_allclose(found.scores, alone.scores)
    D = squareform(pdist(X))
    matrix = cross_validate(
        features, D, together=label, duplicates="collapse", alpha=1.0, n_folds=2, distance="precomputed"
    )
    np.testing.assert_allclose(matrix.scores, alone.scores, atol=1e-9)


class Words:
    """What a plan needs of Stimuli."""

    def __init__(self, features: pd.DataFrame) -> None:
        n = len(features)
        self.features = features
        self.items = pd.DataFrame(
            {
                "sentence": [f"s{k // 5}" for k in range(n)],
                "word": ["w"] * n,
                "start": [2 * (k % 5) for k in range(n)],
            }
        )
        self.sentences = pd.Series({f"s{k}": "w w w w w" for k in range(n // 5)})


def test_stimuli_bring_their_own_groups(data: tuple) -> None:
    features, X = data
    words = Words(features)
    plan = plan_encoding(words)
    position = words.items["start"].to_numpy()
    for p in np.unique(position):  # the same word after the same text, in every sentence
        assert len(np.unique(plan.fold[position == p])) == 1
    by_sentence = plan_encoding(words, together="sentence")
    for _, of_sentence in words.items.groupby("sentence"):
        assert len(np.unique(by_sentence.fold[of_sentence.index])) == 1
    free = cross_validate(words, X, together="none")
    np.testing.assert_array_equal(free.scores, cross_validate(features, X).scores)


def test_groups_of_features(data: tuple) -> None:
    features, X = data
    found = cross_validate(features, X, groups={"agreement": ["number", "rank"]})
    assert found.names == ("agreement", "case", "length")
    assert found.features == ("case", "number", "rank", "length")
    assert found.importance.shape == (1, 5, 3)


def test_full_design_gives_matrices(data: tuple) -> None:
    features, X = data
    found = cross_validate(features, X, interactions=True, n_folds=3, alpha=1.0)
    assert found.weights.shape == (1, 3, 4, 4)
    assert np.linalg.eigvalsh(found.weights[0]).min() > -1e-9


def test_too_many_patterns_say_that_importance_is_sampled(
    make_features: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thinkalike.encoding.importance.MAX_COMBINATIONS", 100)
    features = make_features(30, seed=1)
    X = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.warns(UserWarning, match="too many patterns"):
        found = cross_validate(features, X, ordered="minmax", n_folds=2, n_permutations=2, alpha=1.0)
    assert found.importance_used == "permutation"
    assert found.settings.importance == "expected"


def test_same_seed_same_bytes(data: tuple) -> None:
    features, X = data
    first, second = (cross_validate(features, X, seed=7, importance="permutation") for _ in range(2))
    assert first.importance.tobytes() == second.importance.tobytes()
    assert first.scores.tobytes() == second.scores.tobytes()
    other = cross_validate(features, X, seed=8, importance="permutation")
    assert first.scores.tobytes() != other.scores.tobytes()


def test_bad_layers_are_named(data: tuple) -> None:
    features, X = data
    broken = X.copy()
    broken[3, 0] = np.nan
    with pytest.raises(InvalidInput, match=r"Layer 'L2': NaN or infinity in 1 row\(s\) of X: 3"):
        cross_validate(features, {"L1": X, "L2": broken})
    with pytest.raises(InvalidInput, match="Layer 0: All activations are equal"):
        cross_validate(features, np.ones((75, 3)))
    with pytest.raises(InvalidInput, match="Layer 0: All activations are equal"):
        cross_validate(features, np.zeros((75, 75)), distance="precomputed")
    with pytest.raises(InvalidInput, match="Layer 0: Got 74 rows of activations for 75 items"):
        cross_validate(features, X[:74])
    runs = np.random.default_rng(0).normal(size=(2, 75, 3))
    with pytest.raises(InvalidInput, match="crossnobis distances are negative, which have no root"):
        cross_validate(features, runs, preset="salle2024", distance="crossnobis")


def test_plans_that_cannot_be(data: tuple) -> None:
    features, _ = data
    with pytest.raises(InvalidInput, match="'number' has one level"):
        plan_encoding(features.assign(number="sg"))
    with pytest.raises(InvalidInput, match="Got 3 items for 5 folds"):
        plan_encoding(features.iloc[:3])
    with pytest.raises(InvalidInput, match=r"A fold would have 1 item\(s\)"):
        plan_encoding(features.iloc[:6], n_folds=5)
    with pytest.raises(InvalidInput, match="together='sentence' with a bare table"):
        plan_encoding(features, together="sentence")
    with pytest.raises(UnknownName, match=r"no treatment of duplicates 'colapse'\. Did you mean 'collapse'"):
        plan_encoding(features, duplicates="colapse")
    with pytest.raises(InvalidInput, match="has folds over pairs: use cross_validate"):
        plan_encoding(features, preset="salle2024")
    with pytest.raises(InvalidInput, match="Got together= with folds over pairs"):
        make_plan(features, preset="salle2024", together=np.arange(75))
    with pytest.raises(
        InvalidInput, match="make 2775 pairs: folds over pairs need them all, and take at most 100"
    ):
        make_plan(features, preset="salle2024", max_pairs=100)
    with pytest.raises(InvalidInput, match="3 pairs, for 2 folds: give more stimuli"):
        make_plan(features.iloc[:3], preset="salle2024")
    with pytest.raises(InvalidInput, match="Got features as list: give a DataFrame or Stimuli"):
        make_plan([1, 2])
    with pytest.raises(InvalidInput, match=r"features of shape \(3,\): Reshape your data"):
        make_plan(np.zeros(3))
    with pytest.raises(InvalidInput, match="sparse array, which is not supported"):
        make_plan(csr_array(np.eye(3)))
    assert isinstance(make_plan(features), EncodingPlan)
