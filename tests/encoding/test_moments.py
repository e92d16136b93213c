"""Weights from moments against weights from pairs that are really formed."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from scipy.spatial.distance import pdist, squareform
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from thinkalike.encoding.cells import pass_moments
from thinkalike.encoding.designs import make_design
from thinkalike.encoding.mlem import MLEM
from thinkalike.encoding.moments import Moments, diagonal_moments, feature_side, fit_moments, nested_sets
from thinkalike.pairs.distances import make_target
from thinkalike.stimuli.feature_coding import code_features

Table = Callable[..., pd.DataFrame]
Pairs = Callable[..., np.ndarray]


def ridge(Z: np.ndarray, y: np.ndarray, alpha: float, intercept: bool) -> tuple[np.ndarray, float]:
    model = Ridge(alpha=alpha, positive=True, fit_intercept=intercept, tol=1e-15, max_iter=100_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it stops where it can get no better in float64
        model.fit(Z, y)
    return model.coef_, float(model.intercept_)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("ordered", ["indicator", "minmax"])
@pytest.mark.parametrize("missing", ["ignore", "level"])
@pytest.mark.parametrize(("alpha", "intercept"), [(1e-3, True), (1.0, True), (1.0, False), (300.0, True)])
def test_weights_equal_ridge_on_pairs(
    make_features: Table,
    squared_differences: Pairs,
    seed: int,
    ordered: str,
    missing: str,
    alpha: float,
    intercept: bool,
) -> None:
    features = make_features(35, seed=seed, missing=0.2)
    X = np.random.default_rng(seed).normal(size=(35, 12)) / 5
    X += 0.3 * pd.get_dummies(features["case"]).to_numpy(float)[:, [0, 1, 2] * 4]
    Z, y = squared_differences(features, ordered, missing), pdist(X, "sqeuclidean")
    mlem = MLEM(alpha=alpha, ordered=ordered, missing=missing, intercept=intercept).fit(features, X)
    weights, constant = ridge(Z, y, alpha, intercept)
    np.testing.assert_allclose(mlem.weights_, weights, atol=1e-6)
    assert mlem.intercept_ == pytest.approx(constant, abs=1e-6)


def brute_moments(Z: np.ndarray, y: np.ndarray) -> Moments:
    return Moments(len(y), Z.sum(axis=0), Z.T @ Z, Z.T @ y, y.sum())


def same(a: Moments, b: Moments) -> None:
    assert a.n_pairs == b.n_pairs
    np.testing.assert_allclose(a.gram, b.gram, atol=1e-9)
    np.testing.assert_allclose(a.sums, b.sums, atol=1e-9)
    np.testing.assert_allclose(a.cross, b.cross, rtol=1e-9, atol=1e-9)
    assert a.target_sum == pytest.approx(b.target_sum, rel=1e-10)


@pytest.mark.parametrize("ordered", ["indicator", "minmax"])
@pytest.mark.parametrize("numeric", [True, False])
@pytest.mark.parametrize("distance", ["euclidean", "cityblock"])
@pytest.mark.parametrize("design", ["diagonal", "full"])
def test_moments_of_sets_equal_those_of_their_pairs(
    make_features: Table, squared_differences: Pairs, ordered: str, numeric: bool, distance: str, design: str
) -> None:
    """Both ways to the moments, closed and by cells, for the pairs within unions of blocks."""
    n, rng = 30, np.random.default_rng(3)
    features = make_features(n, seed=3, missing=0.2, numeric=numeric)
    X, block = rng.normal(size=(n, 7)), rng.integers(0, 3, n)
    D = squareform(pdist(X, distance)) ** 2
    columns = make_design(design, features.shape[1])
    differences = code_features(features, ordered=ordered)
    target = make_target(X, {"cityblock": "manhattan"}.get(distance, distance))
    membership = nested_sets(3, [frozenset(), frozenset({1}), frozenset({0, 2})])
    found = [pass_moments(differences, target, columns, block, membership)]
    if design == "diagonal" and distance == "euclidean":
        found.append(diagonal_moments(feature_side(differences, block, membership), target))
    every = squared_differences(features, ordered)
    i, j = np.triu_indices(n, 1)
    for moments in found:
        for inside, of_set in zip(membership, moments, strict=True):
            pairs = inside[block[i]] & inside[block[j]]
            squared = every[pairs]
            delta = np.sqrt(squared)
            f, g = np.triu_indices(delta.shape[1])
            Z = (
                squared
                if design == "diagonal"
                else delta[:, f] * delta[:, g] * np.where(f == g, 1, np.sqrt(2))
            )
            same(of_set, brute_moments(Z, D[i, j][pairs]))


def test_equal_items_form_cells() -> None:
    """Few cells, many items: the sums within and between cells, each against its pairs."""
    rng = np.random.default_rng(0)
    features = pd.DataFrame({"a": rng.choice(["x", "y"], 60), "b": rng.choice(["u", "v"], 60)})
    X = rng.normal(size=(60, 5)) + 7
    moments = pass_moments(
        code_features(features), make_target(X, "euclidean"), make_design("full", 2), np.zeros(60, int),
        np.ones((1, 1), bool),
    )[0]  # fmt: skip
    i, j = np.triu_indices(60, 1)
    a, b = (features[c].to_numpy()[i] != features[c].to_numpy()[j] for c in "ab")
    Z = np.stack([a, np.sqrt(2) * (a & b), b], axis=1).astype(float)
    same(moments, brute_moments(Z, pdist(X, "sqeuclidean")))


def test_many_levels_and_wide_activations_go_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thinkalike.encoding.moments.CHUNK_BYTES", 1)
    rng = np.random.default_rng(0)
    features = pd.DataFrame({"word": rng.integers(0, 80, 100).astype(str), "x": rng.choice(["a", "b"], 100)})
    X = rng.normal(size=(100, 21))
    weights = MLEM().fit(features, X).weights_
    i, j = np.triu_indices(100, 1)
    Z = np.stack([(features[c].to_numpy()[i] != features[c].to_numpy()[j]) for c in features], axis=1)
    np.testing.assert_allclose(
        weights, ridge(Z.astype(float), pdist(X, "sqeuclidean"), 1.0, True)[0], atol=1e-5
    )


def test_a_large_common_offset_moves_no_weight(make_features: Table, make_activations: Pairs) -> None:
    """Language models have units with a huge mean; in float32 an offset of 1e4 costs X three digits."""
    features = make_features(300, numeric=False)
    X = make_activations(features, {"case": 4.0, "number": 2.0, "rank": 1.0}, 64, 0.1, 0).astype(np.float32)
    plain = MLEM().fit(features, X).weights_
    offset = MLEM().fit(features, X + np.float32(1e4)).weights_
    np.testing.assert_allclose(offset, plain, atol=1e-3)
    in_float64 = MLEM().fit(features, X.astype(float) + 1e4).weights_
    np.testing.assert_allclose(in_float64, plain, atol=1e-6)


def test_without_intercept_the_fit_goes_through_the_origin(
    squared_differences: Pairs, make_features: Table
) -> None:
    features = make_features(30, numeric=False)
    X = np.random.default_rng(0).normal(size=(30, 4))
    Z, y = squared_differences(features), pdist(X, "sqeuclidean")
    mlem = MLEM(alpha=0.0, intercept=False).fit(features, X)
    np.testing.assert_allclose(mlem.weights_, nnls(Z, y)[0], atol=1e-9)
    assert mlem.intercept_ == 0


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), scale=st.floats(0.01, 100), shift=st.floats(-50, 50))
def test_invariances(make_features: Table, seed: int, scale: float, shift: float) -> None:
    """Permuting items, relabelling levels, rotating and translating X change nothing; scaling X scales W."""
    rng = np.random.default_rng(seed)
    features = make_features(25, seed=seed, missing=0.2)
    X = rng.normal(size=(25, 6)) + 0.5 * pd.get_dummies(features["case"]).to_numpy(float)[:, [0, 1, 2] * 2]
    base = MLEM().fit(features, X)
    order, (Q, _) = rng.permutation(25), np.linalg.qr(rng.normal(size=(6, 6)))
    renamed = features.assign(
        case=features["case"].cat.rename_categories({"nom": "z", "acc": "y", "dat": "x"})
    )
    changed = {
        "permuted": MLEM().fit(features.iloc[order], X[order]),
        "relabelled": MLEM().fit(renamed, X),
        "rotated": MLEM().fit(features, X @ Q),
        "translated": MLEM().fit(features, X + shift),
    }
    for what, other in changed.items():
        np.testing.assert_allclose(other.weights_, base.weights_, atol=1e-7, err_msg=what)
        assert other.intercept_ == pytest.approx(base.intercept_, abs=1e-7)
    scaled = MLEM().fit(features, scale * X)
    np.testing.assert_allclose(scaled.weights_, scale**2 * base.weights_, rtol=1e-6, atol=1e-9 * scale**2)
    assert scaled.score(features, scale * X) == pytest.approx(base.score(features, X), abs=1e-9)
    assert changed["rotated"].score(features, X @ Q) == pytest.approx(base.score(features, X), abs=1e-9)


def test_moments_add_up_over_disjoint_pairs() -> None:
    rng = np.random.default_rng(0)
    Z, y = rng.random((50, 3)), rng.random(50)
    same(brute_moments(Z[:20], y[:20]) + brute_moments(Z[20:], y[20:]), brute_moments(Z, y))
    design = make_design("diagonal", 2)
    fit = fit_moments(brute_moments(Z, y).restrict(np.array([0, 2])), design, alpha=0.5)
    np.testing.assert_allclose(fit.weights, ridge(Z[:, [0, 2]], y, 0.5, True)[0], atol=1e-7)
