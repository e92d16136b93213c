"""Claims on ranges of τ_w of a group: of subjects with a model, over other items and over other subjects too.

A population of subjects sees a population of items, and so does the model: what is true is what all of them
give. Some of the subjects and some of the items make a sample. Nothing was chosen in these worlds.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

import thinkalike as ta
from benchmarks.calibration.claims import Claim, Simulation, error_of_sets
from benchmarks.calibration.worlds import Floats
from thinkalike.comparison.cautions import CautionWarning
from thinkalike.comparison.group import GroupComparison

LEVELS = (2, 2, 3, 3, 4, 5)
"""Of the features: unlike, so that some differ in more pairs"""
SUBJECTS, ITEMS, UNITS = 30, 1000, 16
"""Of a population"""
SAMPLES_EACH = 20
"""Samples of one population; then another is drawn"""
GOALS = {"items": (0.92, 0.98), "both": (0.92, 0.98), "subjects": (0.0, 1.0)}
"""By what ranges are over; one over subjects speaks of these items, and is held against all to show that"""


@dataclass(frozen=True)
class GroupWorld:
    """Subjects and a model whose log strengths go together."""

    likeness: float
    """How the log strengths of any two of them correlate"""
    n_subjects: int
    n_items: int


WORLDS = {
    "unlike": GroupWorld(0.3, 8, 100),
    "alike": GroupWorld(0.85, 6, 80),
}


class Population(NamedTuple):
    """`people` (SUBJECTS, ITEMS, UNITS), `model` (ITEMS, UNITS), the features, and τ_w of each subject."""

    people: Floats
    model: Floats
    features: pd.DataFrame
    taus: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator, likeness: float) -> Population:
        codes = np.stack([rng.integers(0, n, ITEMS) for n in LEVELS])
        common, own = rng.normal(size=len(LEVELS)), rng.normal(size=(SUBJECTS + 1, len(LEVELS)))
        strengths = np.exp(np.sqrt(likeness) * common + np.sqrt(1 - likeness) * own)
        X = rng.normal(size=(SUBJECTS + 1, ITEMS, UNITS))
        for n, of_items, by_system in zip(LEVELS, codes, strengths.T, strict=True):
            places = rng.normal(size=(SUBJECTS + 1, n, UNITS)) * 0.4 * np.sqrt(by_system)[:, None, None]
            X += places[:, of_items]
        features = pd.DataFrame({f"f{k}": column.astype(str) for k, column in enumerate(codes)})
        truth = compared(X[1:], X[0], features, resamples=0)
        return cls(X[1:], X[0], features, truth.scores[:, 0, 0])


def compared(people: Floats, model: Floats, features: pd.DataFrame, **options: int) -> GroupComparison:
    return ta.compare_with_group(
        people, {"model": model}, features.reset_index(drop=True), measure="features", **options
    )


def ranges(n_draws: int, seed: int, *, about: GroupWorld) -> list[Claim]:
    """Subjects are drawn with replacement, so that the population's mean is what many of them would give."""
    warnings.simplefilter("ignore", CautionWarning)
    rng, truths = np.random.default_rng(seed), []
    held: dict[str, list[bool]] = {over: [] for over in GOALS}
    for k in range(n_draws):
        if k % SAMPLES_EACH == 0:
            population = Population.draw(rng, about.likeness)
            truths.append(float(population.taus.mean()))
        who = rng.choice(SUBJECTS, about.n_subjects)
        what = rng.choice(ITEMS, about.n_items, replace=False)
        found = compared(
            population.people[who][:, what], population.model[what], population.features.iloc[what]
        )
        for over, kept in held.items():
            row = found.table(over=over).iloc[0]
            truth = float(population.taus[who].mean()) if over == "items" else truths[-1]
            kept.append(bool(row["low"] <= truth <= row["high"]))
    sets = [k // SAMPLES_EACH for k in range(n_draws)]
    world = (
        f"{about.n_subjects} subjects, {about.n_items} items, true τ_w {min(truths):.2f} to {max(truths):.2f}"
    )
    return [
        Claim(
            f"95 % range over {over} of mean τ_w with a model",
            world,
            *GOALS[over],
            found=float(np.mean(kept)),
            n=n_draws,
            error_of_sets=error_of_sets(kept, sets),
        )
        for over, kept in held.items()
    ]


SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "subjects-coverage-by-features": (
        {name: partial(ranges, about=about) for name, about in WORLDS.items()},
        200,
    )
}
"""Name → the simulation, and the draws of a full run"""
