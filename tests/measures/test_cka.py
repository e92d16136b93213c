"""CKA against its published formulas, and the three ways in which common implementations go wrong."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinkalike.errors import InvalidInput
from thinkalike.measures import MEASURES, hsic
from thinkalike.measures.hsic import (
    feature_space_is_cheaper,
    feature_space_sums,
    hsic_matrix,
    stacked_gram_sums,
)

Layers = Callable[..., tuple[np.ndarray, np.ndarray]]


def song_hsic(K: np.ndarray, L: np.ndarray) -> float:
    """HSIC₁ as in Brown et al. 2023, appendix C: three terms over Grams with zero diagonals."""
    n, one = len(K), np.ones(len(K))
    K, L = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    first = np.trace(K @ L.T)
    second = (one @ K @ one) * (one @ L @ one) / ((n - 1) * (n - 2))
    third = 2 / (n - 2) * (one @ K @ L @ one)
    return (first + second - third) / (n * (n - 3))


def song_cka(K: np.ndarray, L: np.ndarray) -> float:
    return song_hsic(K, L) / np.sqrt(song_hsic(K, K) * song_hsic(L, L))


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), n=st.integers(4, 30), widths=st.tuples(*[st.integers(1, 40)] * 2))
def test_cka_is_the_published_formula(seed: int, n: int, widths: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    X, Y = (rng.normal(size=(n, d)) for d in widths)
    assert MEASURES["cka"](X, Y) == pytest.approx(song_cka(X @ X.T, Y @ Y.T), rel=1e-6, abs=1e-8)


def test_biased_cka_is_the_ratio_of_frobenius_norms(related_layers: Layers) -> None:
    X, Y = related_layers()
    A, B = X - X.mean(0), Y - Y.mean(0)
    expected = np.linalg.norm(A.T @ B) ** 2 / (np.linalg.norm(A.T @ A) * np.linalg.norm(B.T @ B))
    assert MEASURES["cka-biased"](X, Y) == pytest.approx(expected, rel=1e-12)
    assert MEASURES["cka-angular"](X, Y) == pytest.approx(np.arccos(expected), rel=1e-12)


def test_gaussian_cka_is_the_formula_with_explicit_kernels(related_layers: Layers) -> None:
    def gram(X: np.ndarray) -> np.ndarray:
        squared = np.array([[np.sum((x - y) ** 2) for y in X] for x in X])
        median = np.median([squared[i, j] for i, j in combinations(range(len(X)), 2)])
        return np.exp(-squared / (2 * 0.5**2 * median))

    X, Y = related_layers(n=20)
    assert MEASURES["cka-rbf"](X, Y) == pytest.approx(song_cka(gram(X), gram(Y)), rel=1e-10)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_grams_and_feature_space_lead_to_the_same_sums(
    library: str, biased: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    arrays = [X - X.mean(0) for X in (rng.normal(size=(23, d)) for d in (3, 7, 40))]
    layers = arrays
    if library == "torch":
        torch = pytest.importorskip("torch")
        layers = [torch.from_numpy(X) for X in arrays]
    expected = [[np.sum((A @ A.T) * (B @ B.T)) for B in arrays] for A in arrays]
    if not biased:
        n = 23
        expected = [[song_hsic(A @ A.T, B @ B.T) * n * (n - 3) for B in arrays] for A in arrays]
    monkeypatch.setattr(hsic, "BLOCK_BYTES", 3 * 8 * 23 * 5)  # blocks of 3 rows, the last of 2
    per_item = [np.sum((A @ A.T) ** 2, axis=1) for A in arrays]
    if not biased:
        per_item = [np.sum(u_centred(A @ A.T) ** 2, axis=1) for A in arrays]
    for found in (stacked_gram_sums(layers, biased=biased), feature_space_sums(layers, biased=biased)):
        np.testing.assert_allclose(found.products, expected, rtol=1e-9, atol=1e-8)
        np.testing.assert_allclose(found.per_item, per_item, rtol=1e-9, atol=1e-8)


def u_centred(K: np.ndarray) -> np.ndarray:
    """Székely and Rizzo 2014, definition 2, entry by entry."""
    n, K = len(K), K - np.diag(np.diag(K))
    rows = K.sum(axis=1)
    centred = np.zeros_like(K)
    for i in range(n):
        for j in range(n):
            if i != j:
                centred[i, j] = K[i, j] - (rows[i] + rows[j]) / (n - 2) + rows.sum() / ((n - 1) * (n - 2))
    return centred


def test_the_cheaper_way_is_taken() -> None:
    assert feature_space_is_cheaper(20_000, [768, 768])
    assert not feature_space_is_cheaper(1024, [768] * 38)


def test_independent_layers_have_cka_0_on_average() -> None:
    """At n = 32 the biased form is far from 0; its expectation depends on the widths."""
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(size=(32, 64)), rng.normal(size=(32, 48))) for _ in range(500)]
    assert abs(np.mean([MEASURES["cka"](X, Y) for X, Y in pairs])) < 0.02
    assert np.mean([MEASURES["cka-biased"](X, Y) for X, Y in pairs]) > 0.5


@pytest.mark.parametrize("n", [48, 400], ids=["grams", "feature space"])
def test_a_common_offset_of_three_units_changes_nothing_in_float32(n: int) -> None:
    """Language models have such units; the three-term formula in float32 loses HSIC(K, K) on them."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 64)).astype(np.float32)
    Y = (X + rng.normal(size=(n, 64))).astype(np.float32)
    shifted = X.copy()
    shifted[:, :3] += np.float32(1e3)
    cka = MEASURES["cka"]
    assert cka(shifted, Y) == pytest.approx(cka(X, Y), abs=1e-3)
    assert cka(shifted, shifted) == pytest.approx(1.0, abs=1e-12)
    naive = shifted @ shifted.T
    one = np.ones(n, np.float32)
    np.fill_diagonal(naive, 0)
    terms = (
        np.trace(naive @ naive)
        + (one @ naive @ one) ** 2 / ((n - 1) * (n - 2))
        - 2 / (n - 2) * one @ naive @ naive @ one
    )
    exact = song_hsic(
        *[(shifted - shifted.astype(float).mean(0)) @ (shifted - shifted.astype(float).mean(0)).T] * 2
    )
    assert abs(terms / (n * (n - 3)) - exact) > 0.1 * exact  # what it protects from is real


def test_the_mean_over_all_minibatches_is_the_full_batch() -> None:
    """HSIC₁ is a U-statistic: its mean over every subset of a size equals its value on all items, exactly."""
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(8, 3)), rng.normal(size=(8, 5))

    def value(rows: tuple[int, ...]) -> np.ndarray:
        return hsic_matrix([Z[list(rows)] - Z[list(rows)].mean(0) for Z in (X, Y)])

    mean = np.mean([value(rows) for rows in combinations(range(8), 5)], axis=0)
    np.testing.assert_allclose(mean, value(tuple(range(8))), rtol=1e-10)
    biased = np.mean(
        [
            hsic_matrix([Z[list(r)] - Z[list(r)].mean(0) for Z in (X, Y)], biased=True)
            for r in combinations(range(8), 5)
        ],
        axis=0,
    )
    assert abs(biased[0, 1] / hsic_matrix([X - X.mean(0), Y - Y.mean(0)], biased=True)[0, 1] - 1) > 0.1


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(4, 12))
def test_unbiased_cka_stays_within_1(seed: int, n: int) -> None:
    """HSIC₁ is an inner product of U-centred Grams, so Cauchy and Schwarz hold for it."""
    rng = np.random.default_rng(seed)
    values = MEASURES["cka"].matrix([rng.standard_cauchy(size=(n, d)) for d in (1, 3, 9)])
    assert np.abs(values).max() <= 1 + 1e-12


def test_huge_and_tiny_activations() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 5))
    Y = X + rng.normal(size=(30, 5))
    for scale in (1e-150, 1e150):
        assert MEASURES["cka"](X * scale, Y) == pytest.approx(MEASURES["cka"](X, Y), rel=1e-9)


def test_a_layer_in_which_one_item_alone_differs() -> None:
    X = np.zeros((10, 3))
    X[4] = 1.0
    Y = np.random.default_rng(4).normal(size=(10, 3))
    with pytest.raises(InvalidInput, match="Layer 0 of the 2 compared varies in too few items for CKA"):
        MEASURES["cka"](X, Y)


def test_a_gaussian_kernel_needs_distinct_items() -> None:
    X = np.zeros((12, 2))
    X[0] = 1.0
    with pytest.raises(InvalidInput, match="more than half of its pairs of items the same vector"):
        MEASURES["cka-rbf"](X, np.random.default_rng(0).normal(size=(12, 2)))


@pytest.mark.parametrize("n", [4, 8, 12, 50])
@pytest.mark.parametrize("size", [1.0, 3.3])
def test_a_gaussian_kernel_needs_different_distances(n: int, size: float) -> None:
    with pytest.raises(InvalidInput, match="All pairs of items are equally far apart in X"):
        MEASURES["cka-rbf"](size * np.eye(n), np.random.default_rng(0).normal(size=(n, 2)))
