"""Leaving sentences out: the degrees of freedom of several deals, against draws of normal data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from thinkalike.encoding.resampling import leave_out
from thinkalike.inference.jackknife import jackknife_error, jackknife_range, quantile


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
