"""Intervals and tests over units, against brute force, Student's t and permutations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import permutation_test, t

from thinkalike.stitching.statistics import FEWEST, ratio_interval


def by_hand(sums, counts, draws, rank, of_sizes):
    """The two ranges of one row, resample by resample."""
    n = len(counts)

    def ratio(x, c):
        value = x.sum() / c.sum()
        return value, np.sqrt(n / (n - 1) * ((x - value * c) ** 2).sum()) / c.sum()

    value, error = ratio(sums, counts)
    T = []
    for chosen in draws:
        again, its_error = ratio(sums[chosen], counts[chosen])
        T.append((again - value) / its_error)
    T, sizes = np.sort(T), np.sort(np.abs(T))
    return [
        min(value - T[-rank] * error, value - sizes[-of_sizes] * error),
        max(value - T[rank - 1] * error, value + sizes[-of_sizes] * error),
    ]


@pytest.mark.parametrize("skewed", [False, True])
def test_the_interval_is_a_studentised_bootstrap_of_the_units(skewed):
    rng = np.random.default_rng(0)
    counts = rng.integers(5, 50, 30).astype(float)
    drawn = rng.exponential(0.5, (2, 30)) if skewed else rng.normal(0.5, 0.3, (2, 30))
    sums = drawn * counts
    found = ratio_interval(sums, counts, resamples=999, seed=4)
    np.testing.assert_allclose(found.value, sums.sum(1) / counts.sum())
    weights = np.random.default_rng(4).multinomial(30, np.full(30, 1 / 30), size=999)
    draws = [np.repeat(np.arange(30), row) for row in weights]
    for k in range(2):
        ends = by_hand(sums[k], counts, draws, 25, 50)
        np.testing.assert_allclose([found.low[k], found.high[k]], ends)


def test_of_normal_units_it_is_about_the_interval_of_student():
    """A little wider, as the wider of two ends."""
    values = np.random.default_rng(3).normal(size=40)
    values = (values - values.mean()) / values.std(ddof=1)
    found = ratio_interval(values[None], np.ones(40), resamples=39_999, seed=0)
    exact = t.interval(0.95, 39, 0.0, 1 / np.sqrt(40))
    assert (found.high[0] - found.low[0]) / (exact[1] - exact[0]) == pytest.approx(1.03, abs=0.05)


@pytest.mark.parametrize(("n_units", "skewed"), [(12, False), (60, False), (60, True)])
def test_coverage_is_near_its_level(n_units, skewed):
    rng = np.random.default_rng(1)
    inside = []
    for seed in range(200):
        values = rng.exponential(1.0, n_units) - 0.8 if skewed else rng.normal(0.2, 1.0, n_units)
        found = ratio_interval(values[None], np.ones(n_units), resamples=299, seed=seed)
        inside.append(found.low[0] <= 0.2 <= found.high[0])
    assert 0.91 <= np.mean(inside) <= 0.99


@pytest.mark.parametrize("n_resamples", [39, 99, 500, 999])
def test_p_is_small_exactly_where_the_range_does_not_hold_0(n_resamples):
    rng = np.random.default_rng(8)
    counts = rng.integers(5, 50, 15).astype(float)
    sums = (rng.exponential(size=(200, 15)) - 1 + rng.uniform(-1, 1, (200, 1))) * counts
    found = ratio_interval(sums, counts, resamples=n_resamples, seed=0)
    known = np.isfinite(found.low)
    outside = (found.low > 0) | (found.high < 0)
    assert known.sum() > 150
    np.testing.assert_array_equal(found.p[known] <= 0.05 + 1e-12, outside[known])
    assert outside[known].any()
    assert not outside[known].all()


@pytest.mark.parametrize("shift", [0.0, 0.25, 0.5])
def test_p_is_about_that_of_signs_flipped(shift):
    x = np.random.default_rng(2).normal(0, 1, 60)
    x += shift - x.mean()
    exact = permutation_test((x,), np.sum, permutation_type="samples", n_resamples=20_000, rng=0)
    found = ratio_interval(x[None], np.ones(60), resamples=20_000, seed=0)
    assert found.p[0] == pytest.approx(exact.pvalue, abs=0.02)


def test_of_few_units_or_resamples_there_is_no_interval():
    rng = np.random.default_rng(0)
    for n_units, resamples in ((FEWEST - 1, 999), (1, 999), (40, 38), (40, 0)):
        values = rng.normal(size=(1, n_units))
        found = ratio_interval(values, np.ones(n_units), resamples=resamples, seed=0)
        assert np.isnan([found.low[0], found.high[0], found.p[0]]).all()
        assert found.value[0] == pytest.approx(values.mean())
    enough = ratio_interval(rng.normal(size=(1, FEWEST)), np.ones(FEWEST), resamples=39, seed=0)
    assert np.isfinite([enough.low[0], enough.high[0], enough.p[0]]).all()


def test_where_one_unit_in_many_differs_there_is_no_interval():
    values = np.zeros((1, 30))
    values[0, 3] = 1.0
    found = ratio_interval(values, np.ones(30), resamples=999, seed=0)
    assert np.isnan([found.low[0], found.high[0], found.p[0]]).all()


def test_what_is_the_same_in_every_unit_has_a_range_of_no_width():
    counts = np.random.default_rng(0).integers(5, 50, 20).astype(float)
    found = ratio_interval(np.stack([0.0 * counts, 0.3 * counts]), counts, resamples=999, seed=0)
    np.testing.assert_allclose(found.low, [0.0, 0.3])
    np.testing.assert_allclose(found.high, [0.0, 0.3])
    np.testing.assert_allclose(found.p, [1.0, 2 / 1000])
