"""A full W by ranks: what it must never do, and the world in which it must help."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime
from scipy.spatial.distance import pdist, squareform
from scipy.stats import rankdata, spearmanr

import thinkalike as ta
from thinkalike.encoding import compare_interactions, cross_validate
from thinkalike.encoding.crossval import fold_targets, make_plan
from thinkalike.encoding.rank_fit import _soft_correlation, rank_tables
from thinkalike.errors import InvalidInput, UnknownName

NAMES = ("number", "tense", "gender", "person", "case", "voice")


def world(n: int = 90, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Six features whose strengths fall off, two of which act together."""
    rng = np.random.default_rng(seed)
    features = pd.DataFrame({name: pd.Categorical(rng.choice(["a", "b"], n)) for name in NAMES})
    X = rng.normal(scale=0.5, size=(n, 14))
    for k, name in enumerate(NAMES):
        X[:, k] += 3 * 0.7**k * (features[name] == "b")
    X[:, 6] += 2.0 * ((features["number"] == "b") ^ (features["gender"] == "b"))
    return features, X


def distorted(X: np.ndarray, power: float) -> np.ndarray:
    """Distances in the same order, of which the largest are far larger."""
    return np.asarray(squareform(pdist(X) ** power))


def test_soft_ranks_become_ranks_and_their_slope_is_right() -> None:
    rng = np.random.default_rng(0)
    p, counts = rng.normal(size=30), rng.integers(1, 9, 30).astype(float)
    y = p + rng.normal(size=30)
    of_pairs = np.repeat(np.arange(30), counts.astype(int))
    observed = rankdata(y[of_pairs]) - (len(of_pairs) + 1) / 2
    ranks = np.bincount(of_pairs, weights=observed)
    rho, _ = _soft_correlation(p, counts, ranks, float(observed @ observed), 1e-9)
    assert rho == pytest.approx(spearmanr(p[of_pairs], y[of_pairs]).statistic, abs=1e-9)

    def value(at: np.ndarray) -> float:
        return _soft_correlation(at, counts, ranks, float(observed @ observed), 0.4)[0]

    slope = _soft_correlation(p, counts, ranks, float(observed @ observed), 0.4)[1]
    np.testing.assert_allclose(slope, approx_fprime(p, value, 1e-7), atol=1e-5)


def test_tables_of_training_pairs_are_those_of_scipy() -> None:
    features, X = world(40)
    plan = make_plan(features, interactions=True, fit="spearman", n_folds=3)
    target = fold_targets(plan, X)[0]
    assert plan.everyone is not None
    within = np.stack([plan.fold != 0, plan.fold == 1])
    for table, inside in zip(rank_tables(plan.everyone, target, within), within, strict=True):
        chosen = np.flatnonzero(inside[plan.everyone.i] & inside[plan.everyone.j])
        y = pdist(X)[chosen]
        ranks = rankdata(y) - (len(y) + 1) / 2
        expected = np.bincount(plan.everyone.ids[chosen], weights=ranks, minlength=len(table.ranks))
        np.testing.assert_allclose(table.ranks, expected, atol=1e-6)
        assert table.spread == pytest.approx(ranks @ ranks)


@pytest.mark.parametrize("seed", range(2))
def test_it_helps_where_distances_are_bent(seed: int) -> None:
    """Distances to the eighth power: least squares looks at the largest, ranks do not know that any is."""
    features, X = world(200, seed)
    options = {"distance": "precomputed", "interactions": True}
    squares = cross_validate(features, distorted(X, 8.0), **options)
    by_ranks = cross_validate(features, distorted(X, 8.0), fit="spearman", **options)
    assert (by_ranks.rank_gains > 0).all()
    assert (by_ranks.scores > squares.scores + 0.02).all()
    straight = cross_validate(features, distorted(X, 1.0), **options)
    assert by_ranks.scores.mean() == pytest.approx(straight.scores.mean(), abs=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_kept_only_where_inner_folds_say_so(seed: int) -> None:
    """Where nothing is gained W is that of least squares, to the bit; W is never indefinite."""
    features, X = world(60, seed)
    X[:, :7] *= 0.2  # mostly noise
    squares = cross_validate(features, X, interactions=True)
    found = cross_validate(features, X, interactions=True, fit="spearman")
    again = cross_validate(features, X, interactions=True, fit="spearman")
    np.testing.assert_array_equal(found.weights, again.weights)
    np.testing.assert_array_equal(found.alphas, squares.alphas)
    left = ~(found.rank_gains > 0)
    np.testing.assert_array_equal(found.weights[left], squares.weights[left])
    np.testing.assert_array_equal(found.scores[left], squares.scores[left])
    for mine, theirs in zip(found.weights[~left], squares.weights[~left], strict=True):
        assert not np.allclose(mine, theirs)
    assert np.linalg.eigvalsh(found.weights).min() > -1e-9 * np.abs(found.weights).max()
    assert np.isnan(squares.rank_gains).all()


def test_inner_gains_are_those_of_fits_without_the_outer_fold() -> None:
    """Fold 0 is judged by fits that never saw it: cross-validation of the other items alone."""
    features, X = world(80)
    D, fold = distorted(X, 3.0), np.arange(80) % 4
    options = {"distance": "precomputed", "interactions": True, "alpha": 1.0}
    found = cross_validate(features, D, folds=fold, fit="spearman", **options)
    others = np.flatnonzero(fold != 0)
    inner = D[np.ix_(others, others)]
    parts = fold[others]
    squares = cross_validate(features.iloc[others], inner, folds=parts, **options)
    every = cross_validate(features.iloc[others], inner, folds=parts, fit="spearman", **options)
    refined = every.scores[0, every.rank_gains[0] > 0]
    assert len(refined) == 3  # all are kept, so that the scores are by ranks
    np.testing.assert_allclose(found.rank_gains[0, 0], (every.scores - squares.scores).mean(), atol=1e-6)


def test_predictions_keep_the_units_of_the_distances() -> None:
    features, X = world()
    squares = cross_validate(features, X, interactions=True)
    by_ranks = cross_validate(features, X, interactions=True, fit="spearman")
    sums = [found.weights.sum(axis=(2, 3)) for found in (squares, by_ranks)]
    np.testing.assert_allclose(sums[1], sums[0], rtol=0.5)
    np.testing.assert_allclose(by_ranks.intercepts, squares.intercepts, atol=squares.intercepts.max())


def test_two_folds_choose_on_halves_of_the_other() -> None:
    features, X = world(80)
    found = cross_validate(features, X, interactions=True, fit="spearman", n_folds=2, alpha=1.0)
    assert np.isfinite(found.rank_gains).all()


def test_interactions_may_be_judged_by_ranks() -> None:
    features, X = world()
    found = compare_interactions(features, X, fit="spearman")
    expected = cross_validate(features, X, interactions=True, fit="spearman").scores[0]
    np.testing.assert_allclose(found.full, expected)
    np.testing.assert_allclose(found.diagonal, cross_validate(features, X).scores[0])


def test_what_is_refused() -> None:
    features, _ = world(40)
    with pytest.raises(InvalidInput, match="refines a full W on folds over items: give interactions=True"):
        make_plan(features, fit="spearman")
    with pytest.raises(InvalidInput, match="and the default preset"):
        make_plan(features, fit="spearman", interactions=True, preset="salle2024")
    with pytest.raises(InvalidInput, match="importance='drop' fits W again without a feature"):
        make_plan(features, fit="spearman", interactions=True, importance="drop")
    with pytest.raises(UnknownName, match=r"There is no way to fit W 'spearmen'.* Did you mean 'spearman'"):
        make_plan(features, fit="spearmen", interactions=True)
    numbers = world(120)[0].assign(length=np.random.default_rng(0).normal(size=120))
    with pytest.raises(InvalidInput, match="bin numeric features"), pytest.warns(match="too many patterns"):
        make_plan(numbers, fit="spearman", interactions=True, ordered="minmax")
    with pytest.raises(InvalidInput, match="ranks all pairs"), pytest.warns(match="seeded sample"):
        make_plan(features, fit="spearman", interactions=True, max_pairs=100)


class TestEstimator:
    def test_it_is_the_refined_fit_where_inner_folds_gain(self) -> None:
        features, X = world(200)
        D = distorted(X, 8.0)
        options = {"alpha": 1.0, "distance": "precomputed", "interactions": True}
        squares = ta.MLEM(**options).fit(features, D)
        found = ta.MLEM(fit_by="spearman", **options).fit(features, D)
        again = ta.MLEM(fit_by="spearman", **options).fit(features, D)
        pd.testing.assert_frame_equal(found.weights_, again.weights_)
        assert found.rank_gain_ > 0
        assert np.isnan(squares.rank_gain_)
        assert np.linalg.eigvalsh(found.weights_).min() > -1e-9
        assert found.score(features, D) > squares.score(features, D) + 0.02
        folds = cross_validate(features, D, fit="spearman", **options)
        assert found.rank_gain_ > folds.rank_gains.min() / 2  # the same question, asked with more items

    def test_it_is_least_squares_to_the_bit_where_they_do_not(self) -> None:
        found = []
        for seed in range(12):
            features, X = world(60, seed)
            X[:, :7] *= 0.2
            model = ta.MLEM(alpha="cv", interactions=True, fit_by="spearman").fit(features, X)
            squares = ta.MLEM(alpha="cv", interactions=True).fit(features, X)
            assert model.alpha_ == squares.alpha_
            equal = (model.weights_.to_numpy() == squares.weights_.to_numpy()).all()
            assert equal == (model.rank_gain_ <= 0)
            found.append(equal)
        assert 0 < sum(found) < 12

    def test_gains_are_those_of_cross_validation_by_hand(self) -> None:
        """One inner fold: refine without it, judge on it."""
        features, X = world(200)
        D = distorted(X, 8.0)
        model = ta.MLEM(
            alpha=1.0, distance="precomputed", interactions=True, fit_by="spearman", n_folds=4
        ).fit(features, D, together=np.arange(200))
        from thinkalike.encoding.folds import balanced_folds
        from thinkalike.stimuli.feature_coding import code_features

        fold = balanced_folds(code_features(features), n_folds=4, groups=np.arange(200), seed=0)
        options = {"distance": "precomputed", "interactions": True, "alpha": 1.0, "folds": fold}
        squares = cross_validate(features, D, **options)
        by_ranks = cross_validate(features, D, fit="spearman", **options)
        assert (by_ranks.rank_gains > 0).all()  # so that the scores are by ranks
        assert model.rank_gain_ == pytest.approx((by_ranks.scores - squares.scores).mean(), abs=1e-9)

    def test_what_is_refused(self) -> None:
        features, X = world(40)
        with pytest.raises(InvalidInput, match="give interactions=True and the default preset"):
            ta.MLEM(fit_by="spearman").fit(features, X)
        with pytest.raises(InvalidInput, match="Got fit=: the option is called fit_by"):
            ta.MLEM(fit="spearman")
        with pytest.raises(InvalidInput, match="Got fit_by=: the option is called fit"):
            ta.profile(X, features, interactions=True, fit_by="spearman")
