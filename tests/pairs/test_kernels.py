"""The order of values by radix, against NumPy's stable sort."""

from __future__ import annotations

import numpy as np
import pytest

from thinkalike.pairs.kernels import ascending

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "values",
    [
        RNG.normal(size=20_000),
        800 + RNG.normal(size=20_000),
        np.round(RNG.normal(size=5_000), 1),
        np.repeat(RNG.normal(size=5), 400) + 1e-12 * RNG.normal(size=2_000),
        np.append(RNG.normal(size=3_000), 1e12),
        np.concatenate([1e-9 * RNG.normal(size=500), 1e9 * RNG.normal(size=500)]),
        np.array([1e300, -1e300, 1e299, 5e-324, 0.0, -0.0, 1e-50, 2e-50] * 9),
        np.array([3e-310, 1e-310, 2e-310]),
        RNG.normal(size=999).astype(np.float32).astype(np.float64),
        np.zeros(50),
        np.array([1.0]),
        np.array([]),
    ],
    ids=lambda values: f"{len(values)}-{np.ptp(values) if len(values) else 0:.1e}",
)
def test_values_rise_and_equal_ones_stay_in_order(values: np.ndarray) -> None:
    np.testing.assert_array_equal(ascending(values), np.argsort(values, kind="stable"))
