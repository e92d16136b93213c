"""Resamples by weights against resamples whose pairs are really formed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import nnls
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr

from thinkalike.encoding import (
    cross_validate,
    leave_out,
    make_plan,
    plan_resamples,
    resample,
    resampling,
    split_halves,
)
from thinkalike.encoding.plan import plan_encoding
from thinkalike.encoding.resampled_sums import runs_cut_alike
from thinkalike.errors import InvalidInput

Table = Callable[..., pd.DataFrame]
Pairs = Callable[..., np.ndarray]
N = 45


@pytest.fixture
def data(make_features: Table, make_activations: Pairs) -> tuple[pd.DataFrame, np.ndarray]:
    features = make_features(N, seed=4, missing=0.1, numeric=False)
    return features, make_activations(features, {"case": 4.0, "number": 2.0, "rank": 1.0}, 20, 0.1, 4)


def draw_multiplicities(clusters: object, *, n_resamples: int, seed: int) -> np.ndarray:
    """Clusters drawn with replacement: weights above 1 put the arithmetic to the test."""
    _, cluster = np.unique(np.asarray(clusters), return_inverse=True)
    n = cluster.max() + 1
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=n_resamples)
    return drawn[:, cluster]


def copies(w: np.ndarray, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of the resampled items, less the pairs of two copies of one."""
    drawn = np.repeat(items, w[items])
    i, j = (drawn[k] for k in np.triu_indices(len(drawn), 1))
    different = i != j
    return i[different], j[different]


@pytest.mark.parametrize(("ties", "many"), [(False, False), (True, False), (False, True)])
def test_equals_scipy_on_the_resampled_pairs(
    data: tuple, squared_differences: Pairs, ties: bool, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn with replacement; or, where items are so many that pairs have no room, left out."""
    features, X = data
    if ties:
        X = np.round(2 * X[:, :3])
    plan = plan_encoding(features, n_folds=3)
    alphas = [0.5, 3.0, 20.0]
    multiplicities = draw_multiplicities(np.arange(N) // 3, n_resamples=6, seed=1)
    if many:
        monkeypatch.setattr(resampling, "MAX_PAIRS", 100)
        with pytest.raises(InvalidInput, match="drawn more than once, and the pairs of 45 items"):
            plan_resamples(plan, multiplicities)
        clusters = np.arange(N) // 3
        multiplicities = np.concatenate([leave_out(clusters, n_resamples=13)[0], split_halves(clusters)])
    found = resample(plan_resamples(plan, multiplicities), X, alphas)
    D = squareform(pdist(X, "sqeuclidean"))
    M = np.stack([squareform(column) for column in squared_differences(features).T], axis=2)
    for b, w in enumerate(multiplicities):
        for k in range(3):
            i, j = copies(w, np.flatnonzero(plan.fold != k))
            A, y = M[i, j] - M[i, j].mean(axis=0), D[i, j] - D[i, j].mean()
            rows = np.vstack([A, np.sqrt(alphas[k]) * np.eye(4)])
            weights, _ = nnls(rows, np.concatenate([y, np.zeros(4)]))
            i, j = copies(w, np.flatnonzero(plan.fold == k))
            expected = spearmanr(np.round(M[i, j] @ weights, 9), np.round(D[i, j], 9)).statistic
            assert found.scores[b, k] == pytest.approx(expected, abs=1e-9)


def test_importances_equal_those_of_a_cross_validation_on_the_same_weights(data: tuple) -> None:
    """Every item once is the data themselves."""
    features, X = data
    for options in (
        {},
        {"groups": {"g": ["case", "length"]}},
        {"ordered": "minmax"},
        {"distance": "manhattan"},
    ):
        plan = make_plan(features, n_folds=3, **options)
        straight = cross_validate(features, X, plan=plan)
        once = resample(plan_resamples(plan, np.ones((1, N), dtype=int)), X, straight.alphas[0])
        np.testing.assert_allclose(once.scores[0], straight.scores[0], atol=1e-10)
        np.testing.assert_allclose(once.importance[0], straight.importance[0], atol=1e-10)
        assert once.names == straight.names


def test_expected_importance_of_a_resample_is_the_mean_of_permutations(
    data: tuple, squared_differences: Pairs
) -> None:
    features, X = data
    plan = plan_encoding(features, n_folds=2, alpha=1.0)
    w = draw_multiplicities(np.arange(N), n_resamples=1, seed=3)
    found = resample(plan_resamples(plan, w), X, [1.0, 1.0])
    D = squareform(pdist(X, "sqeuclidean"))
    M = np.stack([squareform(column) for column in squared_differences(features).T], axis=2)
    i, j = copies(w[0], np.flatnonzero(plan.fold == 1))
    A, y = M[i, j], D[i, j]
    weights, _ = nnls(np.vstack([A - A.mean(axis=0), np.eye(4)]), np.concatenate([y - y.mean(), np.zeros(4)]))
    i, j = copies(w[0], np.flatnonzero(plan.fold == 0))
    Z, y, rng, losses = M[i, j], D[i, j], np.random.default_rng(0), []
    for _ in range(300):
        shuffled = Z.copy()
        shuffled[:, 0] = rng.permutation(Z[:, 0])
        losses.append(found.scores[0, 0] - spearmanr(np.round(shuffled @ weights, 9), y).statistic)
    # The expectation is exact up to O(1/n_pairs), and these are few hundred.
    assert found.importance[0, 0, 0] == pytest.approx(
        np.mean(losses), abs=5 / len(y) + 4 * np.std(losses) / 300**0.5
    )


def test_copies_would_bias_the_score(data: tuple) -> None:
    """Why pairs of copies are left out: they add pairs at distance 0 that any model predicts."""
    features, X = data
    plan = plan_encoding(features, n_folds=3, alpha=1.0)
    w = draw_multiplicities(np.arange(N), n_resamples=40, seed=0)
    found = resample(plan_resamples(plan, w), X, [1.0] * 3)
    straight = cross_validate(features, X, plan=plan).scores.mean()
    assert found.scores.mean() == pytest.approx(straight, abs=0.03)
    with_copies = []
    for row in w[:10]:
        drawn = np.repeat(np.arange(N), row)
        folds = plan.fold[drawn]
        with_copies.append(
            cross_validate(
                features.iloc[drawn].reset_index(drop=True), X[drawn], folds=folds, alpha=1.0
            ).scores.mean()
        )
    assert np.mean(with_copies) > found.scores[:10].mean() + 0.01


def test_what_a_resample_cannot_tell_is_nan(data: tuple) -> None:
    features, X = data
    plan = plan_encoding(features, n_folds=3, alpha=1.0)
    w = np.ones((3, N), dtype=int)
    w[0, plan.fold == 0] = 0  # no test pairs in fold 0
    w[1, (plan.fold == 1) & (features["number"] != "sg")] = 0  # one level in fold 1
    w[2, plan.fold != 2] = 0  # no training pairs for fold 2
    found = resample(plan_resamples(plan, w), X, [1.0] * 3)
    number = found.names.index("number")
    assert np.isnan(found.scores[0, 0])
    assert np.isnan(found.importance[0, 0]).all()
    assert np.isfinite(found.scores[0, 1:]).all()
    assert np.isnan(found.importance[1, 1, number])
    assert np.isfinite(np.delete(found.importance[1, 1], number)).all()
    assert np.isnan(found.scores[2, 2])
    assert np.isnan(found.importance[2, 2]).all()


def test_parts_of_the_clusters_are_left_out_in_turn() -> None:
    clusters = np.repeat(np.arange(23), 3)
    w, parts = leave_out(clusters, n_resamples=20, seed=2)
    assert (w.shape, parts) == ((20, 69), 10)
    assert (w[:, ::3] == w[:, 1::3]).all()
    for deal in (w[:10], w[10:]):
        np.testing.assert_array_equal((1 - deal).sum(axis=0), 1)  # each is left out once
        assert set((1 - deal[:, ::3]).sum(axis=1)) == {2, 3}
    assert (w[:10] != w[10:]).any()
    np.testing.assert_array_equal(w, leave_out(clusters, n_resamples=20, seed=2)[0])
    assert leave_out(clusters, n_resamples=3)[1] == 3
    assert leave_out(["a", "b", "a"], n_resamples=20)[1] == 2


def test_halves_are_halves_of_the_clusters() -> None:
    w = split_halves(np.repeat(np.arange(8), 2), n_splits=3, seed=1)
    assert w.shape == (6, 16)
    np.testing.assert_array_equal(w[::2] + w[1::2], 1)
    np.testing.assert_array_equal(w.sum(axis=1), 8)
    assert (w[:, ::2] == w[:, 1::2]).all()


def test_collapsed_items_keep_their_multiplicities(data: tuple) -> None:
    features, X = data
    label = np.arange(N) // 3
    plan = make_plan(features, together=label, duplicates="collapse", n_folds=2, alpha=1.0)
    w = draw_multiplicities(label, n_resamples=4, seed=0)
    found = resample(plan_resamples(plan, w), X, [1.0, 1.0])
    first = np.arange(0, N, 3)
    alone = make_plan(features.iloc[first], n_folds=2, alpha=1.0)
    expected = resample(plan_resamples(alone, w[:, first]), X[first], [1.0, 1.0])
    np.testing.assert_allclose(found.scores, expected.scores)


def test_resamples_that_cannot_be(data: tuple, make_features: Table) -> None:
    features, X = data
    plan = plan_encoding(features, n_folds=3)
    ones = np.ones((2, N), dtype=int)
    with pytest.raises(InvalidInput, match=r"multiplicities of shape \(2, 7\): give \(n_resamples, 45\)"):
        plan_resamples(plan, ones[:, :7])
    with pytest.raises(InvalidInput, match="give whole numbers, none negative"):
        plan_resamples(plan, ones * 0.5)
    with pytest.raises(InvalidInput, match="give whole numbers, none negative"):
        plan_resamples(plan, -ones)
    with pytest.raises(InvalidInput, match="Resampling is for a diagonal W"):
        plan_resamples(plan_encoding(features, interactions=True), ones)
    with pytest.raises(InvalidInput, match="needs few enough patterns"):
        plan_resamples(plan_encoding(features, n_folds=3, importance="drop"), ones)
    with pytest.raises(InvalidInput, match="Got 2 alphas for 3 folds"):
        resample(plan_resamples(plan, ones), X, [1.0, 1.0])


def test_resamples_of_one_deal_are_cut_together() -> None:
    clusters = np.arange(900) // 3
    kept, _ = leave_out(clusters, n_resamples=20)
    resamples = np.concatenate([kept, split_halves(clusters, n_splits=3)]) > 0
    assert [len(run) for run in runs_cut_alike(resamples)] == [10, 10, 4, 2]


def test_scores_on_a_sample_of_the_pairs_are_resampled_too(data: tuple) -> None:
    """Every item once is the data themselves, on the same sample."""
    features, X = data
    with pytest.warns(UserWarning, match="seeded sample of 60 of the"):
        plan = make_plan(features, n_folds=3, max_pairs=60)
    straight = cross_validate(features, X, plan=plan)
    once = resample(plan_resamples(plan, np.ones((1, N), dtype=int)), X, straight.alphas[0])
    np.testing.assert_allclose(once.scores[0], straight.scores[0], atol=1e-10)
    np.testing.assert_allclose(once.importance[0], straight.importance[0], atol=1e-10)


def test_many_items_need_a_distance_between_vectors(data: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    features, X = data
    monkeypatch.setattr(resampling, "MAX_PAIRS", 100)
    plan = make_plan(features, n_folds=3, distance="manhattan")
    resamples = plan_resamples(plan, leave_out(np.arange(N), n_resamples=5)[0])
    with pytest.raises(InvalidInput, match=r"made pair by pair.* use resamples=0"):
        resample(resamples, X, [1.0] * 3)
