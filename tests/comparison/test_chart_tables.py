"""What charts of profiles are drawn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tests.planted import replicates
from thinkalike.comparison.chart_tables import profile_table
from thinkalike.comparison.profiles import Profile

NAMES = tuple("pqr")


def test_the_band_of_an_importance_is_its_range_where_there_is_one(
    make_profile: Callable[..., Profile],
) -> None:
    folds = make_profile("a", [0.5, 0.2, 0.1], features=NAMES, noise=0.01)
    without = profile_table(folds)
    np.testing.assert_allclose(without["high"] - without["importance"], folds.spread.ravel())
    ranged = replace(folds, replicates=replicates(folds, noise=0.05))
    low, high = ranged.importance_range().reshape(2, -1)
    found = profile_table(ranged)
    np.testing.assert_array_equal(found["low"], low)
    np.testing.assert_array_equal(found["high"], high)
    assert (np.abs(found["high"] - without["high"]) > 1e-6).all()


def test_strength_stands_beside_importance(make_profile: Callable[..., Profile]) -> None:
    made = make_profile("a", [0.5, 0.2, 0.1], features=NAMES)
    np.testing.assert_array_equal(profile_table(made)["strength"], made.mean_strengths.ravel())
    assert np.isfinite(made.mean_strengths).all()
