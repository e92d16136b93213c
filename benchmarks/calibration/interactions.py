"""Claims on whether interactions help: does the range hold what other sentences give?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.calibration.claims import Claim, Simulation, error_of_sets
from benchmarks.calibration.worlds import World, draw_strengths, shown
from thinkalike.encoding import compare_interactions

SYSTEMS = 4
"""New systems of each world; all samples of one system share the others' mean as their truth"""


@dataclass(frozen=True)
class Acting:
    """Features that act together, or do not."""

    kind: str
    n_sentences: int
    population: int
    interactions: float


ACTING = {
    "twelve features, each by itself": Acting("twelve features", 100, 2000, 0.0),
    "twelve features that act together a little": Acting("twelve features", 100, 2000, 1.0),
    "ten features that act together": Acting("ten features", 100, 2000, 3.0),
    "ten features that act together, 30 sentences": Acting("ten features", 30, 2000, 3.0),
}


def whether_needed(n: int, seed: int, *, about: Acting, world: str) -> list[Claim]:
    """Samples of the sentences of a population; the truth is what they give on average.

    The second claim is of "needed" where interactions do not help on average.
    """
    rng = np.random.default_rng(seed)
    held, systems, needless = [], [], []
    for system in range(SYSTEMS):
        stimuli = shown(about.kind, about.population, seed + system)
        population = World(stimuli, interactions=about.interactions)
        strengths = draw_strengths(rng, "log-normal", len(population.codes))
        X = population.layer(rng, strengths)
        found = []
        for _ in range(n // SYSTEMS):
            chosen = rng.choice(about.population, about.n_sentences, replace=False)
            rows = np.isin(population.sentence, chosen)
            made = compare_interactions(population.stimuli.subset(rows), X[rows], seed=0)
            found.append((made.difference.mean(), *made.interval))
        mean, low, high = np.array(found).T
        truth = mean.mean()
        held += list((low <= truth) & (truth <= high))
        systems += [system] * len(found)
        if truth <= 0:
            needless += list(low > 0)
    error = error_of_sets(held, systems)
    told = [Claim("95 % range of what interactions add", world, 0.92, 0.98, float(np.mean(held)), n, error)]
    if needless:
        name = "interactions said to be needed that are not"
        told.append(Claim(name, world, 0.0, 0.05, float(np.mean(needless)), len(needless)))
    return told


SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "interactions-needed": (
        {world: partial(whether_needed, about=about, world=world) for world, about in ACTING.items()},
        300,
    )
}
"""Name → the simulation, and the draws of a full run"""
