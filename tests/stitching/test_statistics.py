"""Intervals and tests over units, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, permutation_test, t

from thinkalike.stitching.statistics import ratio_interval, sign_flip_p


def test_the_interval_is_a_bootstrap_of_the_units():
    rng = np.random.default_rng(0)
    counts = rng.integers(5, 50, 30).astype(float)
    sums = rng.normal(0.5, 0.3, (2, 30)) * counts
    found = ratio_interval(sums, counts, resamples=4000, seed=0)
    np.testing.assert_allclose(found.value, sums.sum(1) / counts.sum())
    draws = np.random.default_rng(9).integers(0, 30, (4000, 30))
    means = sums[:, draws].sum(2) / counts[draws].sum(1)
    tail = norm.cdf(-np.sqrt(30 / 29) * 2.0452)  # Student's quantile for 29 degrees of freedom, from a table
    low, high = np.quantile(means, [tail, 1 - tail], axis=1)
    np.testing.assert_allclose(found.low, low, atol=0.01)
    np.testing.assert_allclose(found.high, high, atol=0.01)


def test_few_normal_units_have_about_the_interval_of_student():
    """Of units that all count the same; by percentiles as they are it would be a fifth narrower."""
    values = np.random.default_rng(3).normal(size=8)
    values = (values - values.mean()) / values.std(ddof=1)
    found = ratio_interval(values[None], np.ones(8), resamples=40_000, seed=0)
    exact = t.interval(0.95, 7, 0.0, 1 / np.sqrt(8))
    assert (found.high[0] - found.low[0]) / (exact[1] - exact[0]) == pytest.approx(1, abs=0.08)


@pytest.mark.parametrize("n_units", [8, 60])
def test_coverage_is_near_its_level(n_units):
    rng = np.random.default_rng(1)
    inside = []
    for seed in range(200):
        values = rng.normal(0.2, 1.0, n_units)
        found = ratio_interval(values[None], np.ones(n_units), resamples=300, seed=seed)
        inside.append(found.low[0] <= 0.2 <= found.high[0])
    assert 0.91 <= np.mean(inside) <= 0.99


def test_one_unit_has_no_interval():
    found = ratio_interval(np.ones((1, 1)), np.ones(1), resamples=100, seed=0)
    assert np.isnan(found.low[0])
    assert np.isnan(ratio_interval(np.ones((1, 5)), np.ones(5), resamples=0, seed=0).high[0])


@pytest.mark.parametrize("shift", [0.0, 0.6])
def test_signs_are_flipped_as_in_a_paired_permutation_test(shift):
    x = np.random.default_rng(2).normal(shift, 1, 12)
    exact = permutation_test((x,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip_p(x, resamples=20_000, seed=0) == pytest.approx(exact.pvalue, abs=0.015)
