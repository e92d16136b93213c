"""The range of a mean over pairs of models: by hand, and by leaving models out one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from thinkalike.inference.over_models import mean_over_pairs


def test_one_group_by_hand() -> None:
    """Means without each of three models are single pairs: 1, 3 and 2."""
    values = np.array([[0.0, 2.0, 3.0], [2.0, 0.0, 1.0], [3.0, 1.0, 0.0]])
    found = mean_over_pairs(values, ~np.eye(3, dtype=bool), np.zeros(3, dtype=int), confidence=0.9)
    error = np.sqrt(2 / 3 * 2)
    assert found == pytest.approx((2.0, 2 - student.ppf(0.95, 2) * error, 2 + student.ppf(0.95, 2) * error))


@pytest.mark.parametrize("both_ways", [True, False])
def test_two_groups_by_leaving_models_out(both_ways: bool) -> None:
    rng = np.random.default_rng(0)
    values, codes = rng.normal(size=(9, 9)), np.array([0, 1, 1, 0, 1, 1, 0, 2, 2])
    chosen = (codes[:, None] == 0) & (codes == 1)
    if both_ways:
        chosen |= chosen.T
    found = mean_over_pairs(values, chosen, codes)
    variances = []
    for group in (0, 1):
        means = []
        for k in np.flatnonzero(codes == group):
            stay = np.arange(9) != k
            means.append(values[np.ix_(stay, stay)][chosen[np.ix_(stay, stay)]].mean())
        n = len(means)
        variances.append(((n - 1) / n * np.sum((np.array(means) - np.mean(means)) ** 2), n - 1))
    squared = sum(v for v, _ in variances)
    reach = student.ppf(0.975, squared**2 / sum(v**2 / free for v, free in variances)) * np.sqrt(squared)
    mean = values[chosen].mean()
    assert found == pytest.approx((mean, mean - reach, mean + reach))


def test_no_range_of_two_models() -> None:
    values, codes = np.random.default_rng(0).normal(size=(7, 7)), np.array([0, 0, 1, 1, 1, 1, 1])
    for a, has_one in ((0, False), (1, True)):
        found = mean_over_pairs(values, (codes[:, None] == a) & (codes == 1) & ~np.eye(7, dtype=bool), codes)
        assert np.isfinite([found.low, found.high]).all() == has_one
        assert np.isfinite(found.mean)


def test_models_that_are_all_alike_have_a_range_without_width() -> None:
    found = mean_over_pairs(np.ones((4, 4)), ~np.eye(4, dtype=bool), np.zeros(4, dtype=int))
    assert found == (1.0, 1.0, 1.0)
