"""τ_w against scipy, pair by pair; its decomposition against a slow sum over pairs and orders of ties."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import weightedtau

from thinkalike.inference.weighted_tau import (
    contribution_matrix,
    contributions,
    tau,
    tau_matrix,
    tau_without,
)

# Few distinct values, so that ties within and between profiles are common.
TIED = arrays(np.float64, (2, 6), elements=st.sampled_from([0.0, 0.0, 0.1, 0.2, 0.5, -0.01]))


def random_profiles(*, ties: bool) -> np.ndarray:
    values = np.random.default_rng(3).normal(size=(12, 8))
    return np.round(values) if ties else values


@pytest.mark.parametrize("ties", [False, True])
def test_the_matrix_is_scipys_pair_by_pair(ties: bool) -> None:
    profiles = random_profiles(ties=ties)
    expected = [[weightedtau(x, y).statistic for y in profiles] for x in profiles]
    np.testing.assert_allclose(tau_matrix(profiles), expected, atol=1e-12)


@settings(max_examples=200)
@given(TIED)
def test_any_pair_is_scipys(pair: np.ndarray) -> None:
    np.testing.assert_allclose(tau(*pair), weightedtau(*pair).statistic, atol=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_contributions_sum_to_tau(ties: bool) -> None:
    profiles = random_profiles(ties=ties)
    expected = [[weightedtau(x, y).statistic for y in profiles] for x in profiles]
    np.testing.assert_allclose(contribution_matrix(profiles).sum(axis=2), expected, atol=1e-12, rtol=0)


def slow_contributions(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The definition: half of each pair to each of its features, averaged over rankings and orders."""
    n = len(x)

    def of_order(order: tuple[int, ...]) -> np.ndarray:
        rank = np.empty(n)
        rank[list(order)] = np.arange(n)
        parts, in_x, in_y = np.zeros(n), 0.0, 0.0
        for i in range(n):
            for j in range(i):
                weight = 1 / (rank[i] + 1) + 1 / (rank[j] + 1)
                sign_x, sign_y = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
                parts[[i, j]] += sign_x * sign_y * weight / 2
                in_x, in_y = in_x + weight * sign_x**2, in_y + weight * sign_y**2
        return parts / np.sqrt(in_x * in_y)

    total = np.zeros(n)
    for first, second in ((x, y), (y, x)):
        sorted_keys = sorted(zip(-first, -second, strict=True))
        orders = [p for p in permutations(range(n)) if [(-first[i], -second[i]) for i in p] == sorted_keys]
        total += np.mean([of_order(order) for order in orders], axis=0) / 2
    return total


def test_joint_ties_are_averaged_over_their_orders() -> None:
    x, y = np.array([0.5, 0.0, 0.0, 0.0, 0.2]), np.array([0.1, 0.3, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(contributions(x, y), slow_contributions(x, y), atol=1e-12)


def test_contributions_do_not_depend_on_the_order_of_the_features() -> None:
    x, y = np.array([0.5, 0.0, 0.0, 0.0, 0.2]), np.array([0.1, 0.3, 0.0, 0.0, 0.0])
    order = np.array([3, 0, 4, 2, 1])
    np.testing.assert_allclose(contributions(x[order], y[order]), contributions(x, y)[order], atol=1e-15)


def test_a_constant_profile_has_no_ranking() -> None:
    profiles = np.array([[0.0, 0.0, 0.0], [0.3, 0.2, 0.1]])
    matrix = tau_matrix(profiles)
    assert np.isnan(matrix[0]).all()
    assert matrix[1, 1] == pytest.approx(1.0)


def test_many_layers_are_done_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    profiles = random_profiles(ties=True)
    whole = contribution_matrix(profiles)
    monkeypatch.setattr("thinkalike.inference.weighted_tau._PAIRS_AT_ONCE", 200)
    np.testing.assert_array_equal(contribution_matrix(profiles), whole)


def test_leaving_features_out_is_tau_of_the_rest() -> None:
    x, y = random_profiles(ties=False)[:2]
    left_out = [[2], [0, 5], list(range(7))]
    got = tau_without(x, y, left_out)
    for drop, value in zip(left_out[:2], got[:2], strict=True):
        rest = [k for k in range(8) if k not in drop]
        assert value == pytest.approx(weightedtau(x[rest], y[rest]).statistic, abs=1e-12)
    assert np.isnan(got[2])  # one feature cannot be ranked
