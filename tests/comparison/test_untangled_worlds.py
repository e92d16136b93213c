"""Systems that care about one thing only: the grammar `untangled` takes nothing else for it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from thinkalike.comparison import profile
from thinkalike.comparison.profiles import Profile
from thinkalike.stimuli import Stimuli

SENTENCES = 150
UNITS = 24


def one_hot(values: np.ndarray) -> np.ndarray:
    return np.eye(len(set(values)))[np.unique(values, return_inverse=True)[1]]


SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "each place its own": one_hot,
    "along a line": lambda places: places[:, None] / 3,
    "waves": lambda places: np.stack([f(places / 2**k) for k in range(4) for f in (np.sin, np.cos)], axis=1),
}


def planted(grammar: str) -> Profile:
    """A layer per world: what is planted, turned at random, and noise."""
    made = Stimuli.from_grammar(SENTENCES, seed=0, grammar=grammar)
    grouped = made.items.groupby("sentence", sort=False)["word"]
    start = grouped.cumcount().to_numpy(float)
    end = grouped.transform("size").to_numpy(float) - 1 - start
    worlds = {f"end, {name}": shape(end) for name, shape in SHAPES.items()}
    worlds |= {f"start, {name}": shape(start) for name, shape in SHAPES.items()}
    worlds["part of speech"] = one_hot(made.features["part_of_speech"].astype(str).to_numpy())
    rng = np.random.default_rng(0)
    layers = {}
    for name, world in worlds.items():
        noise = 0.3 * rng.normal(size=(len(made), UNITS))
        layers[name] = (world @ rng.normal(size=(world.shape[1], UNITS)) + noise).astype(np.float32)
    return profile(layers, made)


def importances(made: Profile, layer: str) -> pd.Series:
    return pd.Series(made.mean_importance[made.layers.index(layer)], index=list(made.features))


@pytest.fixture(scope="module")
def untangled() -> Profile:
    return planted("untangled")


@pytest.mark.parametrize("shape", SHAPES)
def test_position_from_the_end_is_not_taken_for_part_of_speech(untangled: Profile, shape: str) -> None:
    assert importances(untangled, f"end, {shape}")["part_of_speech"] < 0.05


@pytest.mark.parametrize("shape", SHAPES)
def test_position_from_the_start_is_found_and_nothing_else(untangled: Profile, shape: str) -> None:
    importance = importances(untangled, f"start, {shape}")
    assert importance.idxmax() == "word_position"
    assert importance.drop("word_position").max() < 0.05


def test_part_of_speech_is_found_and_nothing_else(untangled: Profile) -> None:
    importance = importances(untangled, "part of speech")
    assert importance["part_of_speech"] > 0.3
    assert importance.drop("part_of_speech").max() < 0.05


def test_the_grammar_of_the_paper_takes_the_one_for_the_other() -> None:
    """All its sentences end in a verb: why there is another grammar."""
    found = planted("salle2024")
    assert importances(found, "end, each place its own")["part_of_speech"] > 0.3
