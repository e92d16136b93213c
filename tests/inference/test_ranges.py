"""Ranges over sentences: degrees of freedom against draws of normal data.

Of what jumps: the noise that is added has the covariance of the jackknife, and the ranges hold the truth.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from thinkalike.encoding.resampling import leave_out
from thinkalike.inference.ranges import jackknife_error, jackknife_range, noise_range, quantile, with_noise


@pytest.mark.parametrize(("n_sentences", "n_deals"), [(40, 1), (40, 2), (40, 5), (20, 10)])
def test_degrees_of_freedom_are_those_of_the_variance(n_sentences: int, n_deals: int) -> None:
    """Of a variance with df degrees of freedom, 2 · mean² / variance over many draws is df."""
    rng, squared = np.random.default_rng(0), []
    for seed in range(1500):
        kept, parts = leave_out(range(n_sentences), n_resamples=10 * n_deals, seed=seed)
        x = rng.normal(size=n_sentences)
        squared.append(jackknife_error(kept @ x / kept.sum(axis=1), parts=parts) ** 2)
    found = 2 * np.mean(squared) ** 2 / np.var(squared)
    assumed = quantile(0.95, 10 * n_deals, parts=10, sentences=n_sentences)
    assert np.mean(squared) == pytest.approx(1 / n_sentences, rel=0.05)
    assert assumed == pytest.approx(student.ppf(0.975, found), rel=0.02)


def test_one_deal_has_its_parts_less_one() -> None:
    assert quantile(0.95, 10, parts=10, sentences=500) == pytest.approx(student.ppf(0.975, 9))
    assert quantile(0.95, 20, parts=10) == pytest.approx(student.ppf(0.975, 9))  # sentences are not known
    assert quantile(0.8, 20, parts=20, sentences=20) == pytest.approx(student.ppf(0.9, 19))


def test_ranges_of_a_mean_hold_it() -> None:
    rng, held = np.random.default_rng(1), []
    for seed in range(1500):
        kept, parts = leave_out(range(30), n_resamples=20, seed=seed)
        x = rng.normal(size=30)
        found = jackknife_range(x.mean(), kept @ x / kept.sum(axis=1), parts=parts, sentences=30)
        held.append(bool(found.low <= 0 <= found.high))
    assert abs(np.mean(held) - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 1500)


def left_out_means(x: np.ndarray, parts: int = 10) -> np.ndarray:
    """Of rows dealt in their order: the mean without each part."""
    return np.stack([x[np.arange(len(x)) % parts != g].mean(axis=0) for g in range(parts)])


def test_noise_has_the_covariance_of_the_jackknife() -> None:
    x = np.random.default_rng(0).normal(size=(50, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 0.1]])
    without = left_out_means(x)
    drawn = np.stack(list(with_noise(x.mean(axis=0), without, parts=10, step=1.0, draws=20_000)))
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
    found = noise_range(value, drawn.std(), 10, parts=10)
    expected = jackknife_range(value, without @ slope, parts=10)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.01)


def test_jumps_count_once_with_whole_steps_and_three_times_with_those_of_the_jackknife() -> None:
    """The share of twelve signs that are +, for truths spread evenly around 0.

    A sample's sign is + with probability p = Φ(δ/σ), so that its share has the variance Σ p (1 − p) / 12².
    """
    rng = np.random.default_rng(2)
    truths = rng.uniform(-4, 4, size=(300, 12)) / np.sqrt(50)  # a mean of 50 has the error 1/√50
    p = norm.cdf(truths * np.sqrt(50))
    scatter = float((p * (1 - p)).sum(axis=1).mean() / 144)
    variances = {1.0: [], 0.6: [], 1 / 3: []}  # type: dict[float, list[float]]
    left_out, held = [], []
    for truth in truths:
        x = truth + rng.normal(size=(50, 12))
        mean, without = x.mean(axis=0), left_out_means(x)
        for step, found in variances.items():
            noisy = with_noise(mean, without, parts=10, step=step)
            found.append(np.var([(one > 0).mean() for one in noisy]) / step**2)
        left_out.append(jackknife_error((without > 0).mean(axis=1), parts=10) ** 2)
        spread = 0.6 * np.sqrt(variances[0.6][-1])
        found_range = noise_range((mean > 0).mean(), spread, 10, parts=10, sentences=50)
        held.append(found_range.low <= (truth > 0).mean() <= found_range.high)
    assert np.mean(variances[1.0]) == pytest.approx(scatter, rel=0.25)
    assert np.mean(variances[0.6]) == pytest.approx(np.mean(variances[1.0]) / 0.6, rel=0.25)
    assert np.mean(variances[1 / 3]) == pytest.approx(np.mean(left_out), rel=0.25)
    assert np.mean(left_out) > 2 * scatter
    assert 0.92 < np.mean(held) < 0.99


def test_the_same_seed_gives_the_same_noise() -> None:
    without = np.random.default_rng(3).normal(size=(10, 2))
    first, again, other = (
        np.stack(list(with_noise(np.zeros(2), without, parts=10, seed=seed))) for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()


def test_the_reach_is_students() -> None:
    found = noise_range(np.array([0.5]), np.array([0.06]), 20, parts=10, sentences=80)
    assert found.high[0] - 0.5 == pytest.approx(0.1 * quantile(0.95, 20, parts=10, sentences=80))
