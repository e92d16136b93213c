"""Claims on what changed between two states of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.calibration.claims import Claim, Simulation
from thinkalike.activations import Activations
from thinkalike.populations.diffing import (
    ChangePlan,
    parted_strengths,
    plan_changes,
    strength_changes,
)
from thinkalike.populations.tracing import changes_along
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
        self,
        stimuli: Stimuli,
        rng: np.random.Generator,
        *,
        gain: float | None = None,
        layers: Sequence[int] = LAYERS,
    ) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
        """Layer → (n_items, 20), of the model and of its child."""
        first, second = (centred_levels(stimuli, name) for name in self.features)
        gain = self.gain if gain is None else gain
        base, tuned = {}, {}
        for layer in layers:
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

    def shown(self, rng: np.random.Generator, n: int) -> Iterator[tuple[Stimuli, ChangePlan]]:
        """Sentences for each of `n` draws, new ones for every tenth."""
        for k in range(n):
            if k % 10 == 0:
                stimuli = Stimuli.from_grammar(100, seed=int(rng.integers(2**31)), grammar=self.grammar)
                plan = plan_changes(stimuli)
            yield stimuli, plan

    def changes(
        self, rng: np.random.Generator, n: int, *, gain: float | None = None
    ) -> Iterator[pd.DataFrame]:
        """What is called changed, in `n` draws."""
        for stimuli, plan in self.shown(rng, n):
            first, second = (
                parted_strengths(Activations.from_arrays(X, system="x", stimuli=stimuli), plan)
                for X in self.states(stimuli, rng, gain=gain)
            )
            yield strength_changes(first, second)

    def named(self, frame: pd.DataFrame) -> tuple[bool, bool]:
        """Whether the planted change is named in all its layers, and whether anything else is."""
        there = (frame["feature"] == self.features[0]) & frame["layer"].isin(self.changed)
        called = frame["p_holm"] <= 0.05
        return bool(called[there].all()), bool(called[~there].any())


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


GAINS = (0.2, 0.3, 0.4, 0.6)


def nothing_changed(world: Tuning, k: int, n: int, seed: int) -> list[Claim]:
    rng = np.random.default_rng((seed, 31, k))
    drawn = list(world.changes(rng, n, gain=0.0))
    single = float(np.mean([(one["p"] <= 0.05).mean() for one in drawn]))
    some = float(np.mean([(one["p_holm"] <= 0.05).any() for one in drawn]))
    about = f"as for: {world.about}; no change"
    return [
        Claim("p ≤ 0.05 of a change, none is there", about, 0.03, 0.07, single, n),
        Claim("any change named, none is there", about, 0.0, 0.05, some, n),
    ]


def planted_change(world: Tuning, k: int, n: int, seed: int) -> list[Claim]:
    rng = np.random.default_rng((seed, 32, k))
    found, others = np.mean([world.named(one) for one in world.changes(rng, n)], axis=0)
    return [
        Claim("the planted change named in all its layers", world.about, 0.9, 1.0, float(found), n),
        Claim("anything else named", world.about, 0.0, 0.07, float(others), n),
    ]


def change_of_a_size(k: int, n: int, seed: int) -> Claim:
    """How often a small change is named in both of its layers, in the first world."""
    world, gain = WORLDS[0], GAINS[k]
    rng = np.random.default_rng((seed, 33, k))
    found = np.mean([world.named(one)[0] for one in world.changes(rng, n, gain=gain)])
    before, after = (level**2 / 40 for level in (1.5, 1.5 + gain))
    about = f"{world.about}, its strength from {before:.3f} to {after:.3f}"
    return Claim("a small change named in all its layers", about, 0.8, 1.0, float(found), n)


def trace_without_change(n: int, seed: int) -> list[Claim]:
    """No feature gains or loses; two checkpoints share most of their noise, and the third shares none."""
    world, rng = WORLDS[1], np.random.default_rng((seed, 34))
    single, some = [], []
    for stimuli, plan in world.shown(rng, n):
        first, second = world.states(stimuli, rng, gain=0.0, layers=(0, 1))
        _, third = world.states(stimuli, rng, gain=0.0, layers=(0, 1))
        parted = [
            parted_strengths(Activations.from_arrays(X, system="x", stimuli=stimuli), plan)
            for X in (first, second, third)
        ]
        found = changes_along(dict(zip(("m@1", "m@2", "m@3"), parted, strict=True)))
        single.append((found["p"] <= 0.05).mean())
        some.append((found["p_holm"] <= 0.05).any())
    about = "three checkpoints of two layers, no change"
    return [
        Claim("p ≤ 0.05 of a change in a trace, none is there", about, 0.03, 0.07, float(np.mean(single)), n),
        Claim("any change named in a trace of two steps", about, 0.0, 0.1, float(np.mean(some)), n),
    ]


SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "diff-nothing": (
        {world.about: partial(nothing_changed, world, k) for k, world in enumerate(WORLDS)},
        400,
    ),
    "diff-planted": (
        {world.about: partial(planted_change, world, k) for k, world in enumerate(WORLDS)},
        100,
    ),
    "diff-size": ({f"gain {gain}": partial(change_of_a_size, k) for k, gain in enumerate(GAINS)}, 100),
    "diff-trace": (trace_without_change, 400),
}
