"""float64 in, float32 kept: geometry stays, or is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

import thinkalike as ta
from thinkalike.errors import InvalidInput

N_ITEMS, N_UNITS = 80, 20


def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    levels = {"colour": 2, "size": 3, "shape": 2, "taste": 4, "sound": 3}
    return pd.DataFrame(
        {name: [f"{name}{k}" for k in rng.integers(n, size=N_ITEMS)] for name, n in levels.items()}
    )


def systems(offset: float) -> dict[str, np.ndarray]:
    """Two systems in float64 that care for the same features, by other amounts."""
    features = table()
    found = {}
    for seed, system in enumerate(("one", "two")):
        rng = np.random.default_rng(seed)
        vectors = rng.normal(size=(N_ITEMS, N_UNITS))
        for place, name in enumerate(features):
            codes = features[name].astype("category").cat.codes.to_numpy()
            vectors += (1.2 - 0.25 * ((place + seed) % 5)) * rng.normal(size=(codes.max() + 1, N_UNITS))[
                codes
            ]
        found[system] = vectors / vectors.std() + offset
    return found


LARGEST_KEPT = 4000.0
"""Beside a spread of 1"""


def test_the_largest_offset_that_is_kept_does_not_move_rsa() -> None:
    given = systems(LARGEST_KEPT)
    exact = spearmanr(*(pdist(vectors) for vectors in given.values())).statistic
    assert ta.similarity(given, measure="rsa").values[0, 1] == pytest.approx(exact, abs=1e-3)


def test_the_largest_offset_that_is_kept_does_not_move_weighted_tau() -> None:
    stimuli = ta.Stimuli.from_table(table(), kinds=dict.fromkeys(table(), "nominal"))

    def tau(offset: float) -> float:
        profiles = [
            ta.profile(ta.Activations.from_arrays({"layer": vectors}, system=name), stimuli)
            for name, vectors in systems(offset).items()
        ]
        return float(ta.similarity(profiles).values[0, 1])

    found = tau(0.0), tau(LARGEST_KEPT)
    assert found[1] == pytest.approx(found[0], abs=1e-3)


@pytest.mark.parametrize("offset", [1e4, 1e5, 1e7, 1e12])
def test_larger_offsets_are_refused(offset: float) -> None:
    with pytest.raises(InvalidInput, match="would blur that: subtract the mean of every unit"):
        ta.similarity(systems(offset), measure="rsa")


def test_without_the_mean_they_are_taken() -> None:
    given = {name: vectors - vectors.mean(axis=0) for name, vectors in systems(1e7).items()}
    exact = spearmanr(*(pdist(vectors) for vectors in systems(0).values())).statistic
    assert ta.similarity(given, measure="rsa").values[0, 1] == pytest.approx(exact, abs=1e-3)


def test_values_below_float32_are_refused_and_constants_are_not() -> None:
    with pytest.raises(InvalidInput, match="or change the scale, first"):
        ta.Activations.from_arrays({"a": systems(0)["one"] * 1e-300})
    ta.Activations.from_arrays({"a": np.full((5, 3), 0.1)})
