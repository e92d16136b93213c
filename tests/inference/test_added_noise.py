"""Noise added once more: its covariance is the jackknife's, and the ranges of what jumps hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from thinkalike.inference.added_noise import noise_range, with_noise
from thinkalike.inference.jackknife import jackknife_error, jackknife_range, quantile


def left_out_means(x: np.ndarray, parts: int = 10) -> np.ndarray:
    """Of rows dealt in their order: the mean without each part."""
    return np.stack([x[np.arange(len(x)) % parts != g].mean(axis=0) for g in range(parts)])


def test_noise_has_the_covariance_of_the_jackknife() -> None:
    x = np.random.default_rng(0).normal(size=(50, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 0.1]])
    without = left_out_means(x)
    drawn = np.stack(list(with_noise(x.mean(axis=0), without, parts=10, draws=20_000)))
    expected = 9 * np.cov(without, rowvar=False, ddof=0)
    np.testing.assert_allclose(np.cov(drawn, rowvar=False), expected, atol=0.05 * expected.max())
    np.testing.assert_allclose(drawn.mean(axis=0), x.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(np.sqrt(np.diag(expected)), jackknife_error(without, parts=10))


def test_of_a_number_that_does_not_jump_the_range_is_that_of_the_jackknife() -> None:
    x = np.random.default_rng(1).normal(size=(60, 2))
    without = left_out_means(x)
    slope = np.array([2.0, -1.0])
    drawn = np.stack(list(with_noise(x.mean(axis=0), without, parts=10, draws=20_000))) @ slope
    value = float(x.mean(axis=0) @ slope)
    found = noise_range(value, np.mean((drawn - value) ** 2), 10, parts=10)
    expected = jackknife_range(value, without @ slope, parts=10)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.01)


def test_of_jumps_the_error_is_as_large_as_it_should_be_and_that_of_the_jackknife_too_large() -> None:
    """The share of twelve signs that are +: for truths spread evenly, how far is that of a sample from it?

    By hand: a sign is wrong with probability Φ(−|δ|/σ), and averaged over δ the two errors are the same.
    """
    rng = np.random.default_rng(2)
    truths = rng.uniform(-3, 3, size=(400, 12)) / np.sqrt(50)  # in standard errors of a mean of 50
    wrong = norm.cdf(-np.abs(truths) * np.sqrt(50)).mean()
    ours, theirs, held = [], [], []
    for truth in truths:
        x = truth + rng.normal(size=(50, 12))
        mean, without = x.mean(axis=0), left_out_means(x)
        share = (mean > 0).mean()
        noisy = np.array([(one > 0).mean() for one in with_noise(mean, without, parts=10)])
        square = float(((noisy - share) ** 2).mean())
        ours.append(square)
        theirs.append(float(jackknife_error((without > 0).mean(axis=1), parts=10)) ** 2)
        found = noise_range(share, square, 10, parts=10, sentences=50)
        held.append(found.low <= (truth > 0).mean() <= found.high)
    # a wrong sign changes the share by 1/12; twelve signs that have nothing to do with one another
    assert np.mean(ours) == pytest.approx(wrong / 12, rel=0.15)
    assert np.mean(theirs) > 1.5 * np.mean(ours)
    assert 0.93 < np.mean(held) < 0.99


def test_the_same_seed_gives_the_same_noise() -> None:
    without = np.random.default_rng(3).normal(size=(10, 2))
    first, again, other = (
        np.stack(list(with_noise(np.zeros(2), without, parts=10, seed=seed))) for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()


def test_the_reach_is_students() -> None:
    found = noise_range(np.array([0.5]), np.array([0.01]), 20, parts=10, sentences=80)
    assert found.high[0] - 0.5 == pytest.approx(0.1 * quantile(0.95, 20, parts=10, sentences=80))
