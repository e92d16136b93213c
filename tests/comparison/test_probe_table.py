"""Probes beside profiles: the columns are those of their own functions, and the two can part."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import thinkalike as ta
from thinkalike.comparison import probes_beside_profile
from thinkalike.errors import InvalidInput
from thinkalike.measures import probe_layers

RNG = np.random.default_rng(0)
LABELS = pd.DataFrame(
    {
        "loud": RNG.choice(["a", "b"], 100),
        "quiet": RNG.choice(["a", "b"], 100),
        "absent": RNG.choice(["a", "b"], 100),
        "rare": ["x"] * 2 + ["y"] * 98,
    }
)
X = RNG.normal(size=(100, 30)) + 2 * (LABELS["loud"] == "a").to_numpy()[:, None]
X[:, 0] += 5 * (LABELS["quiet"] == "a")
STIMULI = ta.Stimuli.from_table(LABELS)
ACTS = ta.Activations.from_arrays({"first": RNG.normal(size=(100, 30)), "second": X}, system="made up")


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    return probes_beside_profile(ACTS, STIMULI, groups=None, seed=3)


def test_readable_is_not_organising(found: pd.DataFrame) -> None:
    second = found[found["layer"] == "second"].set_index("feature")
    assert (second.loc[["loud", "quiet"], "selectivity"] > 0.3).all()
    assert second.loc["loud", "importance"] > 5 * abs(second.loc["quiet", "importance"])
    assert abs(second.loc["absent", "selectivity"]) < 0.3


def test_columns_are_those_of_the_probe_and_of_the_profile(found: pd.DataFrame) -> None:
    probed = probe_layers(ACTS, STIMULI, "quiet", groups=None, seed=3)
    quiet = found[found["feature"] == "quiet"]
    np.testing.assert_allclose(quiet["probe"], probed.scores.mean(axis=1))
    np.testing.assert_allclose(quiet["control"], probed.control)
    np.testing.assert_allclose(quiet["selectivity"], probed.scores.mean(axis=1) - probed.control)
    profiled = ta.profile(ACTS, STIMULI)
    np.testing.assert_allclose(
        quiet["importance"], profiled.mean_importance[:, profiled.features.index("quiet")]
    )


def test_a_feature_that_cannot_be_probed_says_why(found: pd.DataFrame) -> None:
    rare = found[found["feature"] == "rare"]
    assert rare["probe"].isna().all()
    assert rare["why_not"].str.contains("The level 'x' has 2 items, fewer than the 5 folds").all()


def test_a_profile_of_other_layers_is_refused() -> None:
    other = ta.profile({"third": X}, STIMULI)
    with pytest.raises(InvalidInput, match="The profile has other layers than made up"):
        probes_beside_profile(ACTS, STIMULI, profiled=other)
