"""The two solvers against general ones."""

from __future__ import annotations

import warnings

import clarabel
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from thinkalike.encoding import solvers
from thinkalike.encoding.designs import make_design
from thinkalike.encoding.solvers import (
    matrix_size,
    solve_nonnegative,
    solve_nonnegative_many,
    solve_psd,
    unpack,
)
from thinkalike.errors import UnknownName


def problem(n_columns: int, seed: int, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n_columns)), rng.normal(size=n)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0, 100.0])
def test_nonnegative_equals_scipy_on_the_rows(seed: int, alpha: float) -> None:
    A, b = problem(6, seed)
    expected, _ = nnls(np.vstack([A, np.sqrt(alpha) * np.eye(6)]), np.concatenate([b, np.zeros(6)]))
    np.testing.assert_allclose(solve_nonnegative(A.T @ A, A.T @ b, alpha), expected, atol=1e-10)
    assert (expected == 0).any()  # the constraint binds, or the test would be too easy


def test_nonnegative_copes_with_columns_that_say_nothing() -> None:
    A, b = problem(3, 0)
    A = np.column_stack([A, np.zeros(60), A[:, 0]])  # a constant feature and a copy
    w = solve_nonnegative(A.T @ A, A.T @ b, 0.0)
    expected, _ = nnls(A, b)
    np.testing.assert_allclose(A @ w, A @ expected, atol=1e-9)
    assert w[3] == 0
    np.testing.assert_array_equal(solve_nonnegative(np.zeros((2, 2)), np.zeros(2), 0.0), [0, 0])


@pytest.mark.parametrize("n_columns", [1, 3, 8, 20])
def test_many_at_once_equal_scipy_on_the_rows(n_columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that hang together and have units of their own; some problems are bound, some are not."""
    rng = np.random.default_rng(n_columns)
    monkeypatch.setattr(solvers, "_by_spectrum", None)  # none of these is near singular
    mixed = np.eye(n_columns) + 0.5 * rng.normal(size=(300, n_columns, n_columns)) / np.sqrt(n_columns)
    A = rng.normal(size=(300, 60, n_columns)) @ mixed * 10.0 ** rng.uniform(-3, 3, n_columns)
    b = rng.normal(size=(300, 60)) + np.einsum("nij,nj->ni", A, np.abs(rng.normal(size=(300, n_columns))))
    b[:100] -= 4 * A[:100, :, 0] * rng.random((100, 1))
    found = solve_nonnegative_many(A.swapaxes(1, 2) @ A, np.einsum("nij,ni->nj", A, b), 0.0)
    expected = np.stack([nnls(*one)[0] for one in zip(A, b, strict=True)])
    size = expected.max(axis=0)
    np.testing.assert_allclose(found / size, expected / size, rtol=1e-7, atol=1e-10)
    np.testing.assert_array_equal(found == 0, expected == 0)
    assert 0 < (expected == 0).any(axis=1).sum() < 300


def test_problems_that_are_nearly_singular_are_those_of_their_spectrum() -> None:
    rng = np.random.default_rng(5)
    A, b = rng.normal(size=(50, 12, 4)), rng.normal(size=(50, 12))
    A[:20, :, 3] = A[:20, :, 2]
    A[:10, :, 3] += 1e-5 * rng.normal(size=(10, 12))
    A[20], b[20] = 0.0, 0.0
    for alpha in (0.0, 0.5):
        found = solve_nonnegative_many(A.swapaxes(1, 2) @ A, np.einsum("nij,ni->nj", A, b), alpha)
        for rows, y, w in zip(A, b, found, strict=True):
            rows, y = np.vstack([rows, np.sqrt(alpha) * np.eye(4)]), np.append(y, np.zeros(4))
            np.testing.assert_allclose(rows @ w, rows @ nnls(rows, y)[0], atol=1e-7)


def conic(G: np.ndarray, c: np.ndarray, alpha: float) -> np.ndarray:
    """Clarabel on ½ vᵀ(G + αI)v − cᵀv with svec(W) in the cone, its order being column by column."""
    K = len(c)
    F = matrix_size(K)
    rows = {(f, g): k for k, (f, g) in enumerate(zip(*np.triu_indices(F), strict=True))}
    order = [rows[f, g] for g in range(F) for f in range(g + 1)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    P = sparse.csc_matrix(np.triu(G + alpha * np.eye(K)))
    A = sparse.csc_matrix(-np.eye(K)[order])
    solver = clarabel.DefaultSolver(P, -c, A, np.zeros(K), [clarabel.PSDTriangleConeT(F)], settings)
    return np.array(solver.solve().x)


@pytest.mark.parametrize("n_features", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [0.0, 1.0, 50.0])
def test_psd_equals_a_conic_solver(n_features: int, seed: int, alpha: float) -> None:
    K = n_features * (n_features + 1) // 2
    A, b = problem(K, seed)
    v = solve_psd(A.T @ A, A.T @ b, alpha)
    np.testing.assert_allclose(v, conic(A.T @ A, A.T @ b, alpha), atol=1e-4 * np.abs(v).max())
    assert np.linalg.eigvalsh(unpack(v, n_features)).min() >= -1e-12


@pytest.mark.parametrize("seed", range(3))
def test_diagonal_is_the_restriction_of_psd(seed: int) -> None:
    """With nothing to explain off the diagonal, the diagonal of W is the non-negative solution."""
    F = 4
    diagonal = np.array([f == g for f, g in zip(*np.triu_indices(F), strict=True)])
    A, b = problem(F, seed)
    gram, cross = np.zeros((10, 10)), np.zeros(10)
    gram[np.ix_(diagonal, diagonal)], cross[diagonal] = A.T @ A, A.T @ b
    W = unpack(solve_psd(gram, cross, 2.0), F)
    expected = solve_nonnegative(A.T @ A, A.T @ b, 2.0)
    np.testing.assert_allclose(W, np.diag(expected), atol=1e-9)


def test_features_that_explain_one_another_do_not_slow_psd_down() -> None:
    """Two columns alike, and one that is a sum: the answer is optimal by the conditions of Karush et al."""
    A, b = problem(6, 3)
    A = np.column_stack([A[:, 0], A[:, 0], A[:, 0] + A[:, 1], A[:, 1], A[:, 2], A[:, 3]])
    for alpha in (0.0, 1e-4, 1.0):
        v = solve_psd(A.T @ A, A.T @ b, alpha)
        W, S = unpack(v, 3), unpack(A.T @ (A @ v - b) + alpha * v, 3)
        assert np.linalg.eigvalsh(W).min() >= -1e-12
        assert np.linalg.eigvalsh(S).min() >= -1e-7  # no direction in the cone leads down
        assert abs((S * W).sum()) < 1e-7


@pytest.mark.parametrize("n_features", [3, 6])
@pytest.mark.parametrize("relative", [1e-11, 1e-8, 1e-4])
def test_psd_converges_where_only_the_penalty_tells(n_features: int, relative: float) -> None:
    """Columns of half the rank needed: along the rest the answer of least norm, whatever the penalty."""
    K = n_features * (n_features + 1) // 2
    rng = np.random.default_rng(n_features)
    A = rng.normal(size=(K // 2, K)) @ np.diag(10.0 ** rng.uniform(-1, 1, K))
    gram, cross = A.T @ A, A.T @ rng.normal(size=K // 2)
    alpha = relative * np.linalg.eigvalsh(gram)[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        v = solve_psd(gram, cross, alpha)
    W, S = unpack(v, n_features), unpack(gram @ v - cross + alpha * v, n_features)
    scale = np.abs(cross).max()
    assert np.linalg.eigvalsh(W).min() >= -1e-10 * np.abs(W).max()
    assert np.linalg.eigvalsh(S).min() >= -1e-9 * scale
    assert abs((S * W).sum()) <= 1e-9 * scale * np.abs(W).max()


@pytest.mark.parametrize("n_features", [2, 4])
def test_the_slope_of_the_projection(n_features: int) -> None:
    x = np.random.default_rng(0).normal(size=n_features * (n_features + 1) // 2)
    found = solvers._Projected.of(x, n_features).slope()
    for k, direction in enumerate(np.eye(len(x))):
        ahead, behind = (solvers._Projected.of(x + h * direction, n_features).v for h in (1e-6, -1e-6))
        np.testing.assert_allclose(found[:, k], (ahead - behind) / 2e-6, atol=1e-7)


def test_psd_of_nothing_is_nothing() -> None:
    np.testing.assert_array_equal(solve_psd(np.zeros((3, 3)), np.zeros(3), 0.0), np.zeros(3))


def test_psd_converges_where_the_best_metric_is_nothing() -> None:
    """Distances that fall with every difference: any W > 0 is worse than none (a projection of −C)."""
    C = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])
    cross = -np.array([C[f, g] * (1 if f == g else np.sqrt(2)) for f in range(3) for g in range(f, 3)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(solve_psd(np.eye(6), cross, 1.0), 0.0, atol=1e-9)


def test_psd_says_when_it_has_not_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    A, b = problem(6, 0)
    monkeypatch.setattr(solvers, "PSD_MAX_ITERATIONS", 3)
    monkeypatch.setattr(solvers, "NEWTON_STEPS", 0)
    with pytest.warns(ConvergenceWarning, match="stopped after 3 steps"):
        solve_psd(A.T @ A, A.T @ b, 0.0)


def test_full_design_is_the_quadratic_form() -> None:
    rng = np.random.default_rng(0)
    design = make_design("full", 3)
    delta, W = rng.random((20, 3)), rng.normal(size=(3, 3))
    W = W @ W.T
    f, g = np.triu_indices(3)
    v = W[f, g] * np.where(f == g, 1.0, np.sqrt(2))
    np.testing.assert_allclose(design.predict(delta**2, v), np.einsum("pf,fg,pg->p", delta, W, delta))
    np.testing.assert_allclose(design.as_matrix(v), W)
    assert design.columns_of(np.array([0, 2])).tolist() == [0, 2, 5]
    with pytest.raises(UnknownName, match="no design 'ful'. Did you mean 'full'".replace(".", r"\.")):
        make_design("ful", 3)
