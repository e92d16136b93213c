"""Least squares from moments, against libraries that see the data."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import orthogonal_procrustes
from sklearn.linear_model import LinearRegression

from thinkalike.errors import InvalidInput
from thinkalike.stitching.closed_form import (
    LayerMoments,
    Pair,
    orthogonal_solution,
    reduced_rank,
    ridge_solution,
)
from thinkalike.stitching.phi import KINDS, Orthogonal, get_kind, identity_start


def data(seed=0, n=400, n_in=6, n_out=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_in)) * rng.uniform(0.1, 30, n_in) + rng.normal(size=n_in) * 50
    Y = X @ rng.normal(size=(n_in, n_out)) + rng.normal(size=(n, n_out)) * 3 + 7
    return X, Y


def pair_of(X, Y, batches=3):
    x, y = LayerMoments(torch.from_numpy(X[:5])), LayerMoments(torch.from_numpy(Y[:5]))
    products = np.zeros((X.shape[1], Y.shape[1]))
    for a, b in zip(np.array_split(X, batches), np.array_split(Y, batches), strict=True):
        products += (x.add(torch.from_numpy(a)).T @ y.add(torch.from_numpy(b))).numpy()
    return Pair.of(x, y, products)


def test_moments_are_those_of_the_rows():
    X, Y = data()
    pair = pair_of(X, Y)
    np.testing.assert_allclose(pair.mean_x, X.mean(0))
    np.testing.assert_allclose(pair.variance_y, np.cov(Y.T, bias=True))
    np.testing.assert_allclose(pair.cross, (X - X.mean(0)).T @ (Y - Y.mean(0)) / len(X), atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_affine_is_linear_regression(seed):
    X, Y = data(seed)
    weight, bias = ridge_solution(pair_of(X, Y))
    oracle = LinearRegression().fit(X, Y)
    np.testing.assert_allclose(weight, oracle.coef_.T, atol=1e-5)
    np.testing.assert_allclose(bias, oracle.intercept_, atol=1e-3)
    residual = ((Y - X @ weight - bias) ** 2).sum() / ((Y - Y.mean(0)) ** 2).sum()
    assert pair_of(X, Y).explained(weight) == pytest.approx(1 - residual, abs=1e-6)


def test_directions_without_variance_do_no_harm():
    X, Y = data()
    X = np.column_stack([X, X.sum(1)])
    weight, bias = ridge_solution(pair_of(X, Y))
    assert np.isfinite(weight).all()
    np.testing.assert_allclose(X @ weight + bias, LinearRegression().fit(X, Y).predict(X), atol=1e-3)


@pytest.mark.parametrize("sizes", [(4, 4), (6, 4), (3, 5)])
def test_orthogonal_is_procrustes_on_centred_data(sizes):
    X, Y = data(1, n_in=sizes[0], n_out=sizes[1])
    weight, bias = orthogonal_solution(pair_of(X, Y))
    short = weight @ weight.T if sizes[0] <= sizes[1] else weight.T @ weight
    np.testing.assert_allclose(short, np.eye(min(sizes)), atol=1e-9)
    np.testing.assert_allclose((X @ weight + bias).mean(0), Y.mean(0), atol=1e-6)
    if sizes[0] == sizes[1]:
        expected, _ = orthogonal_procrustes(X - X.mean(0), Y - Y.mean(0))
        np.testing.assert_allclose(weight, expected, atol=1e-8)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_reduced_rank_regression_is_the_best_of_its_rank(rank):
    X, Y = data(2)
    left, right, bias = reduced_rank(pair_of(X, Y), rank)
    assert left.shape == (6, rank)
    assert right.shape == (rank, 4)
    error = ((Y - X @ left @ right - bias) ** 2).sum()
    # The textbook: the best approximation of the fitted values is their truncated singular decomposition.
    fitted = LinearRegression().fit(X, Y).predict(X) - Y.mean(0)
    u, s, v = np.linalg.svd(fitted, full_matrices=False)
    best = ((Y - Y.mean(0) - (u[:, :rank] * s[:rank]) @ v[:rank]) ** 2).sum()
    assert error == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("kind", ["affine", "orthogonal", "layernorm-affine", "low-rank"])
def test_phi_starts_at_its_solution_and_moves(kind):
    X, Y = data(3, n_in=5, n_out=5)
    rows = torch.from_numpy(X).float()
    prepare = KINDS[kind].prepare
    prepared = X if prepare is None else prepare(rows).double().numpy()
    phi = KINDS[kind].solve(pair_of(prepared, Y), 5)
    expected = orthogonal_solution(pair_of(prepared, Y)) if kind == "orthogonal" else None
    expected = expected or ridge_solution(pair_of(prepared, Y))
    np.testing.assert_allclose(phi(rows).detach(), prepared @ expected[0] + expected[1], rtol=1e-3, atol=0.05)
    before = phi(rows).detach()
    phi(rows).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in phi.parameters())
    with torch.no_grad():
        for p in phi.parameters():
            p.add_(0.01 * torch.randn(p.shape, generator=torch.Generator().manual_seed(0)))
    assert (phi(rows) - before).abs().max() > 1e-3


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_an_orthogonal_phi_stays_orthogonal_while_it_learns(shape):
    start = torch.linalg.qr(torch.randn(max(shape), max(shape)))[0][: shape[0], : shape[1]]
    phi = Orthogonal(start, torch.zeros(shape[1]))
    with torch.no_grad():
        phi.turn.normal_()
    weight = phi.matrix().detach()
    assert weight.shape == shape
    short = weight @ weight.T if shape[0] <= shape[1] else weight.T @ weight
    torch.testing.assert_close(short, torch.eye(min(shape)), atol=1e-4, rtol=0)
    assert (weight - start).abs().max() > 0.01


def test_what_cannot_be():
    with pytest.raises(InvalidInput, match=r"There is no kind of φ 'afine'. Did you mean 'affine'"):
        get_kind("afine")
    with pytest.raises(InvalidInput, match="a:1 is 8 wide and b:2 16: the identity cannot stand between"):
        identity_start("identity", (8, 16), ("a:1", "b:2"))
    with pytest.raises(InvalidInput, match="cannot be the identity: start it at least squares"):
        identity_start("low-rank", (8, 8), ("a:1", "b:2"))
    X, Y = data()
    with pytest.raises(InvalidInput, match="rank=9, but these layers allow a rank of 1 to 4"):
        KINDS["low-rank"].solve(pair_of(X, Y), 9)
