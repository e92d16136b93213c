"""Claims on what changed between two states of a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.calibration.claims import Claim, Simulation
from thinkalike.activations import Activations
from thinkalike.populations.layer_changes import parted_strengths, strength_changes
from thinkalike.stimuli import Stimuli

LAYERS = (0, 1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Tuning:
    """A model whose layers know two features, and a child in which the first has another strength somewhere.

    Attributes
    ----------
    grammar, features
        What both are shown, and the two features that they know, each of two levels.
    changed
        Layers in which the first feature's levels lie `gain` further apart in the child.
    renewed
        How much of the noise of a vector is new in the child: tuning leaves none as it was. The child has as
        much noise as its parent, for strengths are in units of it.
    shared
        How much noise the words of one sentence have in common.
    heavy
        Whether noise has heavy tails (Student's t with 5 degrees of freedom).
    """

    about: str
    grammar: str = "salle2024"
    features: tuple[str, str] = ("tense", "number")
    changed: tuple[int, ...] = (3, 4)
    gain: float = 1.5
    renewed: float = 0.2
    shared: float = 0.0
    heavy: bool = False

    def states(
        self, stimuli: Stimuli, rng: np.random.Generator, *, gain: float | None = None
    ) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
        """Layer → (n_items, 20), of the model and of its child."""
        first, second = (centred_levels(stimuli, name) for name in self.features)
        gain = self.gain if gain is None else gain
        base, tuned = {}, {}
        for layer in LAYERS:
            old, new = (self._noise(stimuli, rng) for _ in range(2))
            signal = np.zeros(old.shape)
            signal[:, 0], signal[:, 1] = 1.5 * first, 1.5 * second
            base[layer] = signal + old
            tuned[layer] = signal + np.sqrt(1 - self.renewed**2) * old + self.renewed * new
            tuned[layer][:, 0] += gain * first * (layer in self.changed)
        return base, tuned

    def _noise(self, stimuli: Stimuli, rng: np.random.Generator) -> np.ndarray:
        size = (len(stimuli), 20)
        own = rng.standard_t(5, size=size) / np.sqrt(5 / 3) if self.heavy else rng.normal(size=size)
        sentence = pd.factorize(stimuli.items["sentence"])[0]
        common = rng.normal(size=(sentence.max() + 1, 20))[sentence]
        return np.sqrt(1 - self.shared) * own + np.sqrt(self.shared) * common

    def changes(self, rng: np.random.Generator, *, gain: float | None = None) -> pd.DataFrame:
        """What is called changed in one drawn world, over sentences of its own."""
        stimuli = Stimuli.from_grammar(100, seed=int(rng.integers(2**31)), grammar=self.grammar)
        first, second = (
            parted_strengths(Activations.from_arrays(X, system="x", stimuli=stimuli), stimuli)
            for X in self.states(stimuli, rng, gain=gain)
        )
        return strength_changes(first, second)


def centred_levels(stimuli: Stimuli, feature: str) -> np.ndarray:
    """−½ and ½ for the two levels, 0 for words that have none, as far from one as from the other."""
    codes = stimuli.features[feature].cat.codes.to_numpy(float)
    return np.where(codes < 0, 0.0, codes - 0.5)


WORLDS = (
    Tuning("tense gained in layers 3 and 4"),
    Tuning("untangled, number lost in layers 1 and 2", "untangled", ("number", "tense"), (1, 2), -1.2, 0.4),
    Tuning(
        "untangled, question gained in layer 5, heavy tails, sentences share noise",
        "untangled",
        ("question", "number"),
        (5,),
        1.5,
        0.3,
        0.3,
        True,
    ),
)


def nothing_changed(n: int, seed: int) -> list[Claim]:
    found = []
    for k, world in enumerate(WORLDS):
        rng = np.random.default_rng((seed, 31, k))
        drawn = [world.changes(rng, gain=0.0) for _ in range(n)]
        single = float(np.mean([(one["p"] <= 0.05).mean() for one in drawn]))
        some = float(np.mean([(one["p_holm"] <= 0.05).any() for one in drawn]))
        about = f"as for: {world.about}; no change"
        found += [
            Claim("p ≤ 0.05 of a change, none is there", about, 0.03, 0.07, single, n),
            Claim("any change named, none is there", about, 0.0, 0.07, some, n),
        ]
    return found


def planted_changes(n: int, seed: int) -> list[Claim]:
    rows = []
    for k, world in enumerate(WORLDS):
        rng = np.random.default_rng((seed, 32, k))
        found, others = [], []
        for _ in range(n):
            frame = world.changes(rng)
            there = (frame["feature"] == world.features[0]) & frame["layer"].isin(world.changed)
            found.append((frame["p_holm"] <= 0.05)[there].all())
            others.append((frame["p_holm"] <= 0.05)[~there].any())
        rows += [
            Claim(
                "the planted change named in all its layers", world.about, 0.9, 1.0, float(np.mean(found)), n
            ),
            Claim("anything else named", world.about, 0.0, 0.07, float(np.mean(others)), n),
        ]
    return rows


SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "diff-nothing": (nothing_changed, 200),
    "diff-planted": (planted_changes, 200),
}
