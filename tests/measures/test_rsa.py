"""RSA against scipy's pdist and spearmanr; the explained part against a regression on materialised pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import rankdata, spearmanr
from sklearn.linear_model import LinearRegression

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.measures import rsa as engine
from thinkalike.measures.rsa import rsa, rsa_matrix, worst_explained
from thinkalike.pairs.distances import make_target
from thinkalike.pairs.pairset import Pairs
from thinkalike.pairs.ranks import standardised_ranks
from thinkalike.stimuli.feature_coding import code_features

NAMES = tuple("abcd")


def layers(n_items: int = 60, dtype: type = np.float64) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    base = rng.normal(size=(n_items, 6))
    return [
        (base @ rng.normal(size=(6, d)) + rng.normal(size=(n_items, d))).astype(dtype) for d in (5, 9, 3, 20)
    ]


def scipy_rsa(stack: list[np.ndarray], metric: str = "euclidean") -> np.ndarray:
    return np.asarray(spearmanr(np.stack([pdist(X, metric) for X in stack], axis=1)).statistic)


def features(n_items: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "kind": pd.Categorical(rng.choice(["noun", "verb", None], n_items)),
            "size": pd.Categorical(rng.integers(0, 4, n_items), ordered=True),
            "loudness": rng.normal(size=n_items),
        }
    )


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation"])
def test_the_matrix_is_scipys(metric: str) -> None:
    got = rsa_matrix(layers(), names=NAMES, distance=metric)
    np.testing.assert_allclose(got.values, scipy_rsa(layers(), metric), atol=1e-8)
    assert (got.n_pairs, got.sampled) == (60 * 59 // 2, False)


def test_float32_layers_agree_too() -> None:
    got = rsa_matrix(layers(dtype=np.float32), names=NAMES)
    np.testing.assert_allclose(got.values, scipy_rsa(layers()), atol=1e-5)


def test_a_common_offset_of_float32_layers_costs_little() -> None:
    X, Y = layers(dtype=np.float32)[:2]
    assert rsa(X + np.float32(100), Y) == pytest.approx(scipy_rsa(layers())[0, 1], abs=1e-3)


def test_duplicated_items_are_ties() -> None:
    stack = [np.concatenate([X, X[:20], X[:20]]) for X in layers()]
    np.testing.assert_allclose(rsa_matrix(stack, names=NAMES).values, scipy_rsa(stack), atol=1e-8)


def test_one_pair_of_layers() -> None:
    X, Y = layers()[:2]
    assert rsa(X, Y) == pytest.approx(spearmanr(pdist(X), pdist(Y)).statistic, abs=1e-8)


def test_blocks_of_rows_and_pairs_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thinkalike.pairs.distances.BLOCK_ROWS", 7)
    monkeypatch.setattr("thinkalike.pairs.pairset.BLOCK_PAIRS", 100)
    got = rsa_matrix(layers(), names=NAMES)
    np.testing.assert_allclose(got.values, scipy_rsa(layers()), atol=1e-8)


def test_ranks_beyond_the_budget_lie_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MEMORY", 1000)
    monkeypatch.setattr("thinkalike.pairs.pairset.BLOCK_PAIRS", 100)
    with engine.RankedLayers(4, Pairs.of(60)) as ranked:
        assert ranked._file is not None
        for k in (2, 0, 3, 1):  # in any order
            ranked.put(k, standardised_ranks(Pairs.of(60), make_target(layers()[k], "euclidean")))
        got = ranked.correlate()
    np.testing.assert_allclose(got.values, scipy_rsa(layers()), atol=1e-8)


def test_too_many_pairs_are_sampled_with_a_seed() -> None:
    stack = layers(200)
    got = rsa_matrix(stack, names=NAMES, max_pairs=5_000, seed=1)
    again = rsa_matrix(stack, names=NAMES, max_pairs=5_000, seed=1)
    other = rsa_matrix(stack, names=NAMES, max_pairs=5_000, seed=2)
    assert (got.n_pairs, got.sampled) == (5_000, True)
    np.testing.assert_array_equal(got.values, again.values)
    assert not np.array_equal(got.values, other.values)
    np.testing.assert_allclose(got.values, scipy_rsa(stack), atol=0.05)


def test_a_layer_with_equal_distances_has_no_correlation() -> None:
    simplex = np.eye(8)
    values = rsa_matrix([simplex, np.random.default_rng(0).normal(size=(8, 3))], names=("a", "b")).values
    assert np.isnan(values[0]).all()
    assert values[1, 1] == pytest.approx(1.0)


def test_explained_and_residual_parts_sum_to_rsa() -> None:
    """Against scikit-learn on materialised pairs: predictions · predictions / P."""
    coded = code_features(features(), ordered="minmax")
    stack = layers()
    i, j = np.triu_indices(60, k=1)
    columns = np.stack([f.squared_differences(i, j) for f in coded.features], axis=1)
    ranks = np.stack([rankdata(pdist(X)) for X in stack], axis=1)
    ranks = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    predicted = LinearRegression().fit(columns, ranks).predict(columns)
    residual = ranks - predicted
    got = rsa_matrix(stack, names=NAMES, differences=coded)
    assert got.explained is not None
    np.testing.assert_allclose(got.explained, predicted.T @ predicted / len(i), atol=1e-8)
    np.testing.assert_allclose(got.values - got.explained, residual.T @ residual / len(i), atol=1e-8)


def test_the_worst_explained_pairs_are_those_of_the_regression() -> None:
    coded = code_features(features())
    X, Y = layers()[:2]
    i, j = np.triu_indices(60, k=1)
    columns = np.stack([f.squared_differences(i, j) for f in coded.features], axis=1)
    ranks = np.stack([rankdata(pdist(M)) for M in (X, Y)], axis=1)
    ranks = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    residual = ranks - LinearRegression().fit(columns, ranks).predict(columns)
    worst = np.argsort(-(residual**2).sum(axis=1))[:5]
    got_i, got_j, got = worst_explained(X, Y, coded, n_worst=5)
    np.testing.assert_array_equal(got_i, i[worst])
    np.testing.assert_array_equal(got_j, j[worst])
    np.testing.assert_allclose(got, residual[worst].T, atol=1e-5)


def test_bad_input() -> None:
    X, Y = layers()[:2]
    with pytest.raises(
        InvalidInput, match="X has 60 items and Y has 59: all layers must answer the same items"
    ):
        rsa(X, Y[:-1])
    with pytest.raises(InvalidInput, match="X has 2 items: this measure needs at least 3"):
        rsa(X[:2], Y[:2])
    with pytest.raises(InvalidInput, match="NaN or infinite"):
        rsa(np.where(X > 1, np.nan, X), Y)
    with pytest.raises(UnknownName, match=r"There is no distance 'cosin'\. Did you mean 'cosine'"):
        rsa(X, Y, distance="cosin")
    with pytest.raises(InvalidInput, match="There are no layers to compare"):
        rsa_matrix([], names=[])
