"""Canonical correlations and shape distances against eigenvalue problems, SciPy and explicit alignments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.linalg import fractional_matrix_power, orthogonal_procrustes
from scipy.spatial import procrustes as scipy_procrustes

from thinkalike.errors import InvalidInput
from thinkalike.measures import MEASURES
from thinkalike.measures.alignment import shape_distance
from thinkalike.measures.linear_maps import prepare_basis

Layers = Callable[..., tuple[np.ndarray, np.ndarray]]


def correlations(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Canonical correlations as roots of the eigenvalues of Σxx⁻¹ Σxy Σyy⁻¹ Σyx."""
    A, B = X - X.mean(0), Y - Y.mean(0)
    M = np.linalg.solve(A.T @ A, A.T @ B) @ np.linalg.solve(B.T @ B, B.T @ A)
    roots = np.sort(np.linalg.eigvals(M).real)[::-1][: min(X.shape[1], Y.shape[1])]
    return np.sqrt(np.clip(roots, 0, 1))


def shape(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(0)) / np.linalg.norm(X - X.mean(0))


def aligned_angle(A: np.ndarray, B: np.ndarray) -> float:
    """The angle left between A and B after SciPy's best rotation of padded copies."""
    width = max(A.shape[1], B.shape[1])
    A, B = (np.pad(M / np.linalg.norm(M), ((0, 0), (0, width - M.shape[1]))) for M in (A, B))
    Q, _ = orthogonal_procrustes(B, A)
    return float(np.arccos(np.sum(A * (B @ Q))))


def test_cca_is_the_mean_canonical_correlation(related_layers: Layers) -> None:
    X, Y = related_layers()
    assert MEASURES["cca"](X, Y) == pytest.approx(correlations(X, Y).mean(), abs=1e-10)


def test_cca_of_a_layer_of_low_rank_counts_its_directions_only(related_layers: Layers) -> None:
    X, Y = related_layers()
    doubled = np.hstack([X, X @ np.ones((X.shape[1], 3))]).astype(np.float32)
    assert MEASURES["cca"](doubled, Y) == pytest.approx(correlations(X, Y).mean(), abs=1e-5)


def test_svcca_truncates_at_99_percent_of_the_variance(related_layers: Layers) -> None:
    X, Y = related_layers()

    def leading(Z: np.ndarray) -> np.ndarray:
        U, s, _ = np.linalg.svd(Z - Z.mean(0), full_matrices=False)
        k = next(k for k in range(1, len(s) + 1) if (s[:k] ** 2).sum() >= 0.99 * (s**2).sum())
        assert k < len(s)
        return U[:, :k] * s[:k]

    assert MEASURES["svcca"](X, Y) == pytest.approx(correlations(leading(X), leading(Y)).mean(), abs=1e-10)


def test_pwcca_weighs_by_the_projection_of_x_on_its_canonical_variates(related_layers: Layers) -> None:
    X, Y = related_layers()
    A, B = X - X.mean(0), Y - Y.mean(0)
    M = np.linalg.solve(A.T @ A, A.T @ B) @ np.linalg.solve(B.T @ B, B.T @ A)
    roots, directions = np.linalg.eig(M)
    order = np.argsort(-roots.real)[: Y.shape[1]]
    variates = A @ directions.real[:, order]
    variates /= np.linalg.norm(variates, axis=0)
    weights = [sum(abs(h @ unit) for unit in A.T) for h in variates.T]
    expected = np.average(np.sqrt(roots.real[order]), weights=weights)
    assert MEASURES["pwcca"](X, Y) == pytest.approx(expected, abs=1e-9)


def test_pwcca_of_layers_that_share_a_subspace_is_one_number() -> None:
    """All correlations there are 1, so variates would be what the machine makes them: X's axes are taken."""
    rng = np.random.default_rng(4)
    shared = rng.normal(size=(60, 3))
    X = np.hstack([shared @ rng.normal(size=(3, 4)), rng.normal(size=(60, 3))])
    Y = np.hstack([shared @ rng.normal(size=(3, 4)), rng.normal(size=(60, 3))])
    expected = MEASURES["pwcca"](X, Y)
    turned = [Y @ np.linalg.qr(rng.normal(size=(7, 7)))[0] for _ in range(5)]
    noisy = [Y + 1e-13 * rng.normal(size=Y.shape) for _ in range(5)]
    for one in (*turned, *noisy):
        assert MEASURES["pwcca"](X, one) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["cca", "pwcca", "shape-0", "shape-0.5"])
def test_too_few_items_for_the_directions_is_said_with_the_way_out(name: str) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 20)), rng.normal(size=(30, 15))
    match = "they span 20 and 15 directions and 30 items leave 29, so 6 of the correlations are 1"
    with pytest.raises(InvalidInput, match=f"{name} of X and Y: {match}"):
        MEASURES[name](X, Y)
    with pytest.raises(InvalidInput, match="Use cka, procrustes or svcca, or more than 35 items"):
        MEASURES[name](X, Y)
    wide = rng.normal(size=(30, 50))
    with pytest.raises(InvalidInput, match="29 of the correlations are 1 whatever the data"):
        MEASURES[name](wide, wide)
    assert np.isfinite(MEASURES[name](np.vstack([X, X + rng.normal(size=X.shape)]), np.vstack([Y, -Y])))


def test_the_correlations_said_to_be_1_are() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 20)), rng.normal(size=(30, 15))
    assert np.isclose(correlations(X, Y), 1).sum() == 6


def test_procrustes_against_scipy(related_layers: Layers) -> None:
    X, _ = related_layers(widths=(8, 8))
    Y = X + np.random.default_rng(0).normal(size=X.shape)
    _, _, disparity = scipy_procrustes(X, Y)
    cosine = np.sqrt(1 - disparity)  # scipy lets the second layer shrink to fit, which leaves 1 − cos²
    assert MEASURES["procrustes"](X, Y) == pytest.approx(np.sqrt(2 - 2 * cosine), abs=1e-10)
    assert MEASURES["procrustes-angular"](X, Y) == pytest.approx(np.arccos(cosine), abs=1e-10)


@pytest.mark.parametrize("widths", [(8, 5), (5, 8), (30, 40)], ids=["narrower", "wider", "wider than items"])
def test_procrustes_of_unequal_widths_pads_with_silent_units(
    related_layers: Layers, widths: tuple[int, int]
) -> None:
    X, Y = related_layers(n=25, widths=widths)
    assert MEASURES["procrustes-angular"](X, Y) == pytest.approx(aligned_angle(shape(X), shape(Y)), abs=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.5, 1.0])
def test_shape_distances_against_explicit_whitening(related_layers: Layers, alpha: float) -> None:
    X, Y = related_layers()

    def whitened(Z: np.ndarray) -> np.ndarray:
        C = (Z - Z.mean(0)) * np.sqrt(Z.shape[1]) / np.linalg.norm(Z - Z.mean(0))
        return C @ (alpha * np.eye(Z.shape[1]) + (1 - alpha) * fractional_matrix_power(C.T @ C, -0.5))

    found = shape_distance(prepare_basis(X), prepare_basis(Y), alpha=alpha)
    assert found == pytest.approx(aligned_angle(whitened(X), whitened(Y)), abs=1e-7)


def test_the_ends_of_the_shape_family(related_layers: Layers) -> None:
    X, Y = related_layers()
    X_, Y_ = prepare_basis(X), prepare_basis(Y)
    assert shape_distance(X_, Y_, alpha=1) == pytest.approx(MEASURES["procrustes-angular"](X, Y), abs=1e-9)
    by_hand = np.arccos(correlations(X, Y).sum() / np.sqrt(X.shape[1] * Y.shape[1]))
    assert MEASURES["shape-0"](X, Y) == pytest.approx(by_hand, abs=1e-9)


def test_alpha_outside_the_family(related_layers: Layers) -> None:
    X, Y = map(prepare_basis, related_layers())
    with pytest.raises(InvalidInput, match=r"alpha is 1.5: expected 0 \(CCA\) to 1 \(Procrustes\)"):
        shape_distance(X, Y, alpha=1.5)
