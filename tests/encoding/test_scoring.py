"""Spearman's ρ from tables of patterns against scipy on all pairs."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.stats import rankdata, spearmanr

from thinkalike.encoding.designs import make_design
from thinkalike.encoding.mlem import MLEM
from thinkalike.encoding.scoring import find_patterns, rank_pairs, rank_values, spearman
from thinkalike.pairs.distances import make_target
from thinkalike.stimuli.feature_coding import code_features

Table = Callable[..., pd.DataFrame]
Pairs = Callable[..., np.ndarray]


def oracle(Z: np.ndarray, w: np.ndarray, y: np.ndarray) -> float:
    predictions = sum(w[f] * Z[:, f] for f in range(len(w)))
    return float(spearmanr(np.round(predictions, 12), np.round(y, 12)).statistic)


def activations(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "continuous":
        return rng.normal(size=(n, 5))
    if kind == "integers":  # few distinct distances
        return rng.integers(0, 2, (n, 3)).astype(float)
    if kind == "decimals":  # ties that binary fractions would break
        return rng.choice([0.1, 0.3, 0.7], (n, 2))
    return (
        rng.normal(size=(8, 4))[rng.integers(0, 8, n)] + 1000.0
    )  # copies of eight vectors, far from the origin


@pytest.mark.parametrize("ordered", ["indicator", "minmax"])
@pytest.mark.parametrize("kind", ["continuous", "integers", "decimals", "copies"])
@pytest.mark.parametrize("seed", range(3))
def test_rho_equals_scipy_with_heavy_ties(
    make_features: Table, squared_differences: Pairs, ordered: str, kind: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    features = make_features(60, seed=seed, missing=0.2, numeric=seed == 0)
    X, w = (
        activations(kind, 60, rng),
        rng.random(features.shape[1]).round(1) * (rng.random(features.shape[1]) < 0.8),
    )
    w[0] = 0.3
    patterns = find_patterns(code_features(features, ordered=ordered))
    ranked = rank_pairs(patterns, make_target(X, "euclidean"), np.arange(60))
    rho = spearman(make_design("diagonal", len(w)).predict(patterns.values, w), ranked.table)
    y = pdist(X, "sqeuclidean")
    assert rho == pytest.approx(oracle(squared_differences(features, ordered), w, y), abs=1e-9)
    expected = rankdata(np.round(y, 9)) - (len(y) + 1) / 2
    np.testing.assert_allclose(ranked.of_pairs, expected, atol=1e-9)
    assert ranked.table.spread == pytest.approx((expected**2).sum())


def test_far_clusters_keep_the_order_of_what_is_near(
    make_features: Table, squared_differences: Pairs
) -> None:
    """Within a cluster y is 1e-7 of the squared norms: a pair or two may be tied, the order must stay."""
    rng = np.random.default_rng(0)
    features = make_features(60, numeric=False)
    X = rng.normal(size=(60, 300)) + 1e4 * (np.arange(60) % 2)[:, None]
    patterns = find_patterns(code_features(features))
    ranked = rank_pairs(patterns, make_target(X, "euclidean"), np.arange(60))
    expected = rankdata(pdist(X, "sqeuclidean")) - (60 * 59 / 2 + 1) / 2
    np.testing.assert_allclose(ranked.of_pairs, expected, atol=1.0)
    assert (ranked.of_pairs == expected).mean() > 0.99


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), n=st.integers(3, 25), levels=st.integers(1, 4))
def test_rho_equals_scipy_on_any_values(seed: int, n: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    features = pd.DataFrame({c: rng.integers(0, 3, n).astype(str) for c in "abc"})
    patterns = find_patterns(code_features(features))
    y = rng.integers(0, levels + 1, n * (n - 1) // 2).astype(float)
    predictions = rng.integers(0, 4, len(patterns.counts)).astype(float)
    rho = spearman(predictions, rank_values(y, patterns).table)
    if np.ptp(y) == 0:
        assert np.isnan(rho)
    elif np.ptp(predictions[patterns.ids]) == 0:
        assert rho == 0
    else:
        assert rho == pytest.approx(spearmanr(predictions[patterns.ids], y).statistic, abs=1e-9)


def test_patterns_are_those_of_the_pairs(make_features: Table, squared_differences: Pairs) -> None:
    features = make_features(40, seed=1, missing=0.2, numeric=False)
    for ordered in ("indicator", "minmax"):
        patterns = find_patterns(code_features(features, ordered=ordered))
        expected = squared_differences(features, ordered)
        np.testing.assert_allclose(patterns.values[patterns.ids], expected, atol=1e-12)
        assert patterns.counts.sum() == len(expected)
        assert len(np.unique(np.round(expected, 9), axis=0)) == len(patterns.counts)


def test_more_patterns_than_fit_a_table(make_features: Table) -> None:
    rng = np.random.default_rng(0)
    many = pd.DataFrame({f"f{k}": rng.integers(0, 2, 30).astype(str) for k in range(40)})
    patterns = find_patterns(code_features(many))
    i, j = patterns.i, patterns.j
    np.testing.assert_array_equal(patterns.values[patterns.ids], (many.to_numpy()[i] != many.to_numpy()[j]))
    more = pd.concat([many, many.add_prefix("g")], axis=1)
    assert find_patterns(code_features(more)).keys is None  # 2^80 cannot be numbered


def test_past_the_limit_a_seeded_sample_of_pairs_is_scored() -> None:
    rng = np.random.default_rng(0)
    features = pd.DataFrame(
        {"a": rng.integers(0, 2, 400).astype(str), "b": rng.integers(0, 3, 400).astype(str)}
    )
    X = rng.normal(size=(400, 6)) + 2 * (features[["a"]] == "0").to_numpy()
    differences, target = code_features(features), make_target(X, "euclidean")
    w = np.array([3.0, 1.0])

    def rho(max_pairs: int, seed: int) -> float:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            patterns = find_patterns(differences, max_pairs=max_pairs, seed=seed)
        assert bool(said) == (max_pairs < 79_800)
        assert all("seeded sample of 5,000 of the 79,800 pairs" in str(w.message) for w in said)
        assert patterns.n_pairs == min(max_pairs, 79_800)
        assert patterns.is_sample == (max_pairs < 79_800)
        ranked = rank_pairs(patterns, target, np.arange(400))
        return spearman(make_design("diagonal", 2).predict(patterns.values, w), ranked.table)

    assert rho(5000, 1) == rho(5000, 1)
    assert rho(5000, 1) != rho(5000, 2)
    assert rho(5000, 1) == pytest.approx(rho(10**6, 0), abs=0.05)


def test_score_of_the_estimator_equals_scipy(make_features: Table) -> None:
    features = make_features(70, seed=2, missing=0.1, numeric=False)
    X = np.random.default_rng(2).normal(size=(70, 9)) + features[["length"]].fillna(0).to_numpy()
    mlem = MLEM().fit(features, X)
    expected = spearmanr(np.round(mlem.predict(features), 9), pdist(X, "sqeuclidean")).statistic
    assert mlem.score(features, X) == pytest.approx(expected, abs=1e-9)
