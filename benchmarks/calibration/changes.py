"""Claims on what changed between two states of a model."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.calibration.claims import Claim, Simulation
from thinkalike.activations import Activations
from thinkalike.populations.layer_changes import parted_strengths, strength_changes
from thinkalike.stimuli import Stimuli

LAYERS = (0, 1, 2, 3, 4, 5)
RENEWED = 0.2
"""How much of the noise of a vector is new in the child: tuning leaves none as it was"""


def planted(
    stimuli: Stimuli, rng: np.random.Generator, gains: dict[int, float] | None = None
) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
    """A model whose layers know tense and number, and a child in which tense is stronger in some layers.

    The child has as much noise as its parent, part of it new: strengths are in units of the noise.
    """
    columns = {name: centred_levels(stimuli, name) for name in ("tense", "number")}
    base, tuned = {}, {}
    for layer in LAYERS:
        old, new = rng.normal(size=(2, len(stimuli), 20))
        signal = np.zeros(old.shape)
        signal[:, 0] = 1.5 * columns["tense"]
        signal[:, 1] = 1.5 * columns["number"]
        base[layer] = signal + old
        tuned[layer] = signal + np.sqrt(1 - RENEWED**2) * old + RENEWED * new
        tuned[layer][:, 0] += (gains or {}).get(layer, 0.0) * columns["tense"]
    return base, tuned


def centred_levels(stimuli: Stimuli, feature: str) -> np.ndarray:
    """−½ and ½ for the two levels, 0 for words that have none, as far from one as from the other."""
    codes = stimuli.features[feature].cat.codes.to_numpy(float)
    return np.where(codes < 0, 0.0, codes - 0.5)


def changes(rng: np.random.Generator, gains: dict[int, float]) -> pd.DataFrame:
    """What is called changed in one drawn world, over sentences of its own."""
    stimuli = Stimuli.from_grammar(100, seed=int(rng.integers(2**31)), grammar="salle2024")
    first, second = (
        parted_strengths(Activations.from_arrays(X, system="x", stimuli=stimuli), stimuli)
        for X in planted(stimuli, rng, gains)
    )
    return strength_changes(first, second)


def nothing_changed(n: int, seed: int) -> list[Claim]:
    rng = np.random.default_rng(seed)
    worlds = [changes(rng, {}) for _ in range(n)]
    single = float(np.mean([(one["p"] <= 0.05).mean() for one in worlds]))
    some = float(np.mean([(one["p_holm"] <= 0.05).any() for one in worlds]))
    world = "100 sentences, 6 layers, 8 features"
    return [
        Claim("p ≤ 0.05 of a change, none is there", world, 0.03, 0.07, single, n),
        Claim("any change named, none is there", world, 0.0, 0.07, some, n),
    ]


def two_layers_changed(n: int, seed: int) -> list[Claim]:
    rng = np.random.default_rng(seed)
    found, others = [], []
    for _ in range(n):
        frame = changes(rng, {3: 1.5, 4: 1.5})
        planted_there = (frame["feature"] == "tense") & frame["layer"].isin([3, 4])
        found.append((frame["p_holm"] <= 0.05)[planted_there].all())
        others.append((frame["p_holm"] <= 0.05)[~planted_there].any())
    world = "tense stronger in layers 3 and 4"
    return [
        Claim("the planted change named in both layers", world, 0.9, 1.0, float(np.mean(found)), n),
        Claim("anything else named", world, 0.0, 0.07, float(np.mean(others)), n),
    ]


SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "diff-nothing": (nothing_changed, 200),
    "diff-planted": (two_layers_changed, 200),
}
