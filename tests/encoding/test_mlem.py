"""The estimator: scikit-learn's manners, what it finds, and what it says when it cannot."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from thinkalike.encoding import MLEM
from thinkalike.errors import InvalidInput, UnknownName

Table = Callable[..., pd.DataFrame]
Pairs = Callable[..., np.ndarray]
TRUE = {"case": 5.0, "number": 3.0, "rank": 1.5}


@pytest.fixture
def data(make_features: Table, make_activations: Pairs) -> tuple[pd.DataFrame, np.ndarray]:
    features = make_features(80, seed=6, missing=0.1, numeric=False)
    return features, make_activations(features, TRUE, 30, 0.1, 6)


X_FIRST = "the second argument of fit and score is called X, as activations are in this field, not y"
PAIRS = "predict gives a value per pair of items, not per item: (n(n − 1)/2,)"
DOES_NOT_APPLY = {
    "check_methods_subset_invariance": PAIRS,
    "check_methods_sample_order_invariance": PAIRS,
    "check_fit_score_takes_y": X_FIRST,
    "check_n_features_in_after_fitting": X_FIRST,  # see test_the_number_of_features_is_checked
    "check_dtype_object": "activations are no labels, and the message for objects says so",
}


def not_applicable(estimator: Any) -> dict[str, str]:
    return DOES_NOT_APPLY


@parametrize_with_checks([MLEM(), MLEM(alpha="cv")], expected_failed_checks=not_applicable)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_the_number_of_features_is_checked(data: tuple) -> None:
    features, X = data
    mlem = MLEM().fit(features[["number", "rank"]].to_numpy(), X)
    one = features[["number"]].to_numpy()
    for call in (lambda: mlem.predict(one), lambda: mlem.score(one, X), lambda: mlem.importance(one, X)):
        with pytest.raises(ValueError, match="X has 1 features, but MLEM is expecting 2 features"):
            call()


def test_the_constructor_only_stores() -> None:
    mlem = MLEM(alpha="nonsense", preset="unknown")
    assert mlem.get_params()["alpha"] == "nonsense"
    assert clone(mlem).preset == "unknown"
    with pytest.raises(UnknownName, match="no preset 'unknown'"):
        mlem.fit(None, None)


def test_fitting_twice_gives_the_same(data: tuple) -> None:
    features, X = data
    mlem = MLEM(alpha="cv", seed=3).fit(features, X)
    first = mlem.weights_.copy(), mlem.alpha_curve_.copy()
    mlem.fit(features, X)
    pd.testing.assert_series_equal(mlem.weights_, first[0])
    pd.testing.assert_series_equal(mlem.alpha_curve_, first[1])
    copy = pickle.loads(pickle.dumps(mlem))  # noqa: S301 our own bytes
    np.testing.assert_array_equal(copy.predict(features), mlem.predict(features))


def test_every_fitted_object_says_how_it_was_made(data: tuple) -> None:
    features, X = data
    for preset in ("default", "salle2024"):
        mlem = MLEM(alpha="cv", preset=preset).fit(features, X)
        assert mlem.preset_ == mlem.settings_.preset == preset
        assert mlem.settings_.as_dict()["alpha"] == "cv"
        assert mlem.alpha_ in mlem.settings_.alphas
        assert list(mlem.alpha_curve_.index) == list(mlem.settings_.alphas)
    assert mlem.n_items_ == 80
    assert mlem.n_pairs_ == 3160
    assert len(MLEM().fit(features, X).alpha_curve_) == 0


def test_salle2024_fits_the_scaled_distances(data: tuple) -> None:
    """Least squares on distances that are min-max scaled, then squared: the scale of the weights shows it."""
    features, X = data
    X = X + np.random.default_rng(0).normal(size=X.shape)
    d = pdist(X)
    y = ((d - d.min()) / (d.max() - d.min())) ** 2
    mlem = MLEM(alpha=0.0, preset="salle2024").fit(features, X)
    residual = y - mlem.predict(features)
    assert residual.mean() == pytest.approx(0.0, abs=1e-12)
    assert mlem.importance(features, X).notna().all()
    raw = MLEM(alpha=0.0).fit(features, X)
    assert not np.allclose(raw.weights_ / raw.weights_.sum(), mlem.weights_ / mlem.weights_.sum(), atol=1e-3)


def test_alpha_by_cross_validation_takes_groups(data: tuple) -> None:
    features, X = data
    free = MLEM(alpha="cv").fit(features, X)
    grouped = MLEM(alpha="cv").fit(features, X, together=np.arange(80) // 8)
    assert not np.allclose(free.alpha_curve_, grouped.alpha_curve_)


def test_predictions_are_condensed_squared_distances(data: tuple, squared_differences: Pairs) -> None:
    features, X = data
    mlem = MLEM().fit(features, X)
    expected = mlem.intercept_ + squared_differences(features) @ mlem.weights_.to_numpy()
    np.testing.assert_allclose(mlem.predict(features), expected)
    assert mlem.weights_.index.tolist() == list(features.columns)
    full = MLEM(interactions=True).fit(features, X)
    delta = np.sqrt(squared_differences(features))
    expected = full.intercept_ + np.einsum("pf,fg,pg->p", delta, full.weights_.to_numpy(), delta)
    np.testing.assert_allclose(full.predict(features), expected)
    assert np.linalg.eigvalsh(full.weights_.to_numpy()).min() > -1e-10


def test_new_items_are_placed_on_the_scale_of_the_fitted() -> None:
    rng = np.random.default_rng(0)
    features = pd.DataFrame({"x": rng.random(40) * 10})
    mlem = MLEM(ordered="minmax").fit(features, features.to_numpy() @ np.ones((1, 3)))
    span = features["x"].max() - features["x"].min()
    new = pd.DataFrame({"x": [0.0, 2.0]})
    assert mlem.predict(new)[0] - mlem.intercept_ == pytest.approx(mlem.weights_["x"] * (2 / span) ** 2)


def test_torch_and_numpy_give_the_same(data: tuple) -> None:
    features, X = data
    a, b = MLEM().fit(features, X), MLEM().fit(features, torch.tensor(X))
    np.testing.assert_array_equal(a.weights_, b.weights_)
    assert a.score(features, X) == b.score(features, torch.tensor(X))


def test_a_column_may_have_any_name(data: tuple) -> None:
    features, X = data
    renamed = features.rename(columns={"case": "features", "rank": "items"})
    found = MLEM(alpha="cv").fit(renamed, X)
    np.testing.assert_array_equal(found.weights_, MLEM(alpha="cv").fit(features, X).weights_)


def test_stimuli_are_taken_for_their_features(data: tuple) -> None:
    features, X = data

    class Stimuli:
        def __init__(self) -> None:
            self.features, self.items = features, pd.DataFrame(index=features.index)
            self.sentences = pd.Series(dtype=str)

    a, b = MLEM(alpha="cv").fit(Stimuli(), X), MLEM(alpha="cv").fit(features, X)
    np.testing.assert_array_equal(a.weights_, b.weights_)


def test_planted_weights_come_back_in_order_in_100_of_100(
    make_features: Table, make_activations: Pairs
) -> None:
    """Moderate noise: items alike in every feature are apart by a tenth of what the first feature adds."""
    weights = {"case": 6.0, "number": 4.0, "rank": 2.5, "length": 1.0}
    right = 0
    for seed in range(100):
        features = make_features(300, seed=seed, numeric=False)
        X = make_activations(features, weights, 300, np.sqrt(0.6 / 300), seed)
        found = MLEM().fit(features, X).weights_
        right += list(found.sort_values(ascending=False).index) == list(weights)
    assert right == 100


def test_a_planted_metric_is_recovered_exactly(make_features: Table) -> None:
    """One-hot features, scaled: ‖x_i − x_j‖² is Σ w_f Δ_f to the last digit, and so are the weights."""
    features = make_features(60, seed=0, numeric=False)
    weights = {"case": 3.0, "number": 0.5, "rank": 1.25, "length": 2.0}
    X = np.hstack(
        [np.sqrt(w / 2) * pd.get_dummies(features[name]).to_numpy(float) for name, w in weights.items()]
    )
    mlem = MLEM(alpha=0.0).fit(features, X)
    np.testing.assert_allclose(mlem.weights_, list(weights.values()), atol=1e-10)
    assert mlem.intercept_ == pytest.approx(0.0, abs=1e-10)
    assert mlem.score(features, X) == pytest.approx(1.0)


def best_rank_correlation(Z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Positive weights that maximise ρ itself, by direct search from equal ones."""
    ranks = rankdata(y)

    def loss(logarithms: np.ndarray) -> float:
        return -float(np.corrcoef(rankdata(np.round(Z @ np.exp(logarithms), 9)), ranks)[0, 1])

    found = minimize(loss, np.zeros(Z.shape[1]), method="Powell", options={"xtol": 1e-3, "ftol": 1e-9})
    return np.exp(found.x), -found.fun


@pytest.mark.parametrize("seed", [0, 1])
def test_least_squares_needs_its_intercept(seed: int) -> None:
    """A noise floor: two items alike in every feature are further apart than any feature takes them.

    The authors' later package maximises Spearman's ρ on sampled pairs by gradient descent. It is not run
    here: ρ is maximised on all pairs by direct search instead. Least squares with an intercept reaches the
    same ρ with the same weights; through the origin it does not, for the weights must then stand in for the
    floor.
    """
    rng = np.random.default_rng(seed)
    n, weights, levels = 130, np.array([2.0, 1.6, 0.9, 0.5]), (4, 3, 5, 9)
    features = pd.DataFrame({f"f{k}": rng.integers(0, m, n).astype(float) for k, m in enumerate(levels)})
    features["f0"] *= rng.random(n) < 0.3
    places = (features / features.max()).to_numpy()
    X = np.hstack([places * np.sqrt(weights), 0.03 * rng.normal(size=(n, 1500))])
    i, j = np.triu_indices(n, 1)
    best, rho = best_rank_correlation((places[i] - places[j]) ** 2, pdist(X, "sqeuclidean"))
    with_floor, without = (MLEM(0.0, intercept=c, ordered="minmax").fit(features, X) for c in (True, False))
    assert with_floor.score(features, X) == pytest.approx(rho, abs=5e-4)
    found = with_floor.weights_.to_numpy()
    assert best @ found / (np.linalg.norm(best) * np.linalg.norm(found)) > 0.9998
    assert without.score(features, X) < rho - 0.03
    assert with_floor.intercept_ == pytest.approx(2 * 1500 * 0.03**2, rel=0.05)


@pytest.mark.parametrize("method", ["predict", "score", "importance", "is_metric_"])
def test_unfitted(data: tuple, method: str) -> None:
    features, X = data
    arguments = {"predict": (features,), "score": (features, X), "importance": (features, X)}
    with pytest.raises(NotFittedError):
        getattr(MLEM(), method)(*arguments.get(method, ()))


def test_bad_input(data: tuple) -> None:
    features, X = data
    mlem = MLEM().fit(features, X)
    with pytest.raises(InvalidInput, match="Got 79 rows of activations for 80 items"):
        MLEM().fit(features, X[:79])
    with pytest.raises(InvalidInput, match="Got 79 rows of activations for 80 items"):
        mlem.score(features, X[:79])
    with pytest.raises(InvalidInput, match="requires y to be passed"):
        MLEM().fit(features, None)
    with pytest.raises(InvalidInput, match="Got 1 sample"):
        MLEM().fit(features.iloc[:1], X[:1])
    with pytest.raises(InvalidInput, match="'number' has one level"):
        MLEM().fit(features.assign(number="sg"), X)
    with pytest.raises(InvalidInput, match="All activations are equal"):
        MLEM().fit(features, np.full((80, 4), 1.7, dtype=np.float32))
    with pytest.raises(InvalidInput, match="Got 80 items for 90 folds"):
        MLEM(alpha="cv", n_folds=90).fit(features, X)
    with pytest.raises(InvalidInput, match=r"A fold would have 1 item\(s\)"):
        MLEM(alpha="cv", n_folds=79).fit(features, X)
    with pytest.raises(UnknownName, match=r"no distance 'manhatan'\. Did you mean 'manhattan'"):
        MLEM(distance="manhatan").fit(features, X)
    with pytest.raises(ValueError, match="feature names should match"):
        mlem.predict(features.rename(columns={"case": "kasus"}))
    with pytest.raises(UnknownName, match=r"no column of runs 'run'"):
        MLEM(distance="crossnobis", run="run").fit(features, X)


def test_copies_of_a_mahalanobis_fit_score_on_its_own_scale(data: tuple) -> None:
    features, X = data
    mlem = MLEM(distance="mahalanobis").fit(features, X)
    half = slice(0, 40)
    direct = MLEM(distance="mahalanobis").fit(features, X)
    assert mlem.score(features[half], X[half]) == direct.score(features[half], X[half])
    assert mlem.score(features[half], 3 * X[half]) == pytest.approx(mlem.score(features[half], X[half]))
