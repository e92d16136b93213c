"""Claims on ranges by features (ρ, importances, strengths, ranks and τ_w), and on ties.

How ranges are made was chosen in other worlds than these, with other seeds: first in thirteen (50 to 60
samples each) among ten ways: percentiles, shifted and widened forms of a bootstrap, half-samples, and leaving
out a third, a fifth, a tenth or a twentieth of the sentences. A tenth was the balance over ρ, importances,
ranks and τ_w, not the best for each.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from benchmarks.calibration.claims import Claim, Simulation
from benchmarks.calibration.features import profiles_of
from benchmarks.calibration.worlds import Floats, World, related_strengths, shown
from thinkalike.comparison.cautions import CautionWarning
from thinkalike.comparison.feature_similarity import by_features
from thinkalike.comparison.profiles import Profile

COVERAGE = (0.92, 0.98)
SMALL = 0.01
"""What an importance below this is called: near 0"""


@dataclass(frozen=True)
class RangeWorld:
    """Two systems of some layers each, and samples of the sentences that both are shown."""

    kind: str
    likeness: float
    n_sentences: int
    noise: float = 1.0
    population: int = 1500
    layers: tuple[int, int] = (2, 2)
    tails: int | None = None


RANGE_WORLDS = {
    "salle2024": RangeWorld("salle2024", 0.0, 80),
    "half missing": RangeWorld("half missing", 0.5, 80),
    "untangled": RangeWorld("untangled", 0.8, 40, population=800),
    "salle2024, alike": RangeWorld("salle2024", 1.0, 80),
}
OTHER_WORLDS = {
    "heavy tails (t of 4 degrees)": RangeWorld("untangled", 0.6, 60, population=800, tails=4),
    "twelve features": RangeWorld("twelve features", 0.7, 80, population=1000),
    "rare levels (92 % are the first)": RangeWorld("rare levels", 0.5, 100, population=1200),
    "2 layers against 13": RangeWorld("salle2024", 0.5, 80, population=1000, layers=(2, 13)),
    "few sentences": RangeWorld("salle2024", 0.9, 40, population=1000),
}
"""Worlds that nothing was chosen in: drawn up before any of them was run"""


@dataclass(frozen=True, eq=False)
class Population:
    """All sentences of a world, and what two systems make of them."""

    about: RangeWorld
    seed: int

    @cached_property
    def world(self) -> World:
        about = self.about
        return World(shown(about.kind, about.population, self.seed), noise=about.noise, tails=about.tails)

    @cached_property
    def drawn(self) -> tuple[dict[str, Floats], np.random.Generator]:
        """The layers of each system (n_layers, n_items, n_units), and what draws samples after them."""
        about, rng = self.about, np.random.default_rng(self.seed)
        spread = 0.4 if about.likeness < 1 else 0.15
        strengths = related_strengths(rng, about.likeness, len(self.world.codes))
        systems = {
            name: np.stack(self.world.system(rng, one, depth, spread))
            for name, one, depth in zip("ab", strengths, about.layers, strict=True)
        }
        return systems, rng

    def truth(self) -> list[Profile]:
        """What all sentences give."""
        return profiles_of(self.world.stimuli, self.drawn[0], resamples=0)

    def samples(self, n: int) -> Iterator[list[Profile]]:
        """Profiles of both systems from some of the sentences, `n` times."""
        (systems, rng), about = self.drawn, self.about
        for _ in range(n):
            rows = np.isin(
                self.world.sentence, rng.choice(about.population, about.n_sentences, replace=False)
            )
            sample = {name: X[:, rows] for name, X in systems.items()}
            yield profiles_of(self.world.stimuli.subset(rows), sample, resamples=20)


@dataclass
class Coverage:
    """How often ranges held the truth, by quantity."""

    held: dict[str, list[float]] = field(default_factory=dict)

    def add(
        self, quantity: str, low: Floats, high: Floats, truth: Floats, some: Floats | None = None
    ) -> None:
        """The share of values, or of `some` of them, in their ranges; nothing where there are none."""
        known = np.isfinite(low) & np.isfinite(high) & (True if some is None else some)
        inside = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
        if known.any():
            self.held.setdefault(quantity, []).append(float(inside[known].mean()))


def ranges_in(n_draws: int, seed: int, *, about: RangeWorld, name: str, first: int) -> list[Claim]:
    """Do 95 % ranges hold the values of very many sentences? The truth is what a whole population gives."""
    warnings.simplefilter("ignore", CautionWarning)
    population = Population(about, 1000 * seed + first)
    truth = population.truth()
    value = by_features(truth).block_mean("a", "b")
    world = f"{name}, {about.n_sentences} sentences, true mean τ_w {value:.2f}"
    return covered(truth, population.samples(n_draws), world, n_draws)


def covered(truth: list[Profile], samples: Iterable[list[Profile]], world: str, n_draws: int) -> list[Claim]:
    """How often the ranges of samples hold the truth."""
    coverage, tau_truth = Coverage(), by_features(truth)
    depth = len(truth[0].layers)
    cells = slice(0, depth), slice(depth, None)
    for made in samples:
        for one, true in zip(made, truth, strict=True):
            coverage.add("ρ", *one.score_range(), true.mean_scores)
            importance = (*one.importance_range(), true.mean_importance)
            coverage.add("importances", *importance)
            coverage.add(f"importances below {SMALL}", *importance, np.abs(true.mean_importance) < SMALL)
            coverage.add("strengths", *one.strength_range(), true.mean_strengths)
            coverage.add("ranks of features", *one.rank_range(), ranks(true.mean_importance))
        found = by_features(made)
        assert found.low is not None
        assert found.high is not None
        coverage.add("τ_w of two layers", found.low[cells], found.high[cells], tau_truth.values[cells])
        block, true_block = found.block_test("a", "b"), tau_truth.block_test("a", "b")
        assert block is not None
        assert true_block is not None
        ends = np.array([block.low]), np.array([block.high])
        coverage.add("mean τ_w of two systems", *ends, np.array([true_block.mean]))
    return [
        Claim(f"95 % range of {quantity}", world, *COVERAGE, float(np.mean(held)), n_draws)
        for quantity, held in coverage.held.items()
    ]


def ties(n_draws: int, seed: int, *, equal: bool) -> Claim:
    """Three systems: two pairs as alike as each other are called a tie, a pair much more alike is found.

    The population is the first, from `seed` on, in which the two highest of the three true means are within
    0.01 of each other (more than 0.3 apart), and the third is 0.15 below.
    """
    warnings.simplefilter("ignore", CautionWarning)
    world, systems, apart = _three_systems(seed, equal=equal)
    rng, found = np.random.default_rng(seed), []
    for _ in range(n_draws):
        rows = np.isin(world.sentence, rng.choice(1500, 80, replace=False))
        sample = {name: X[:, rows] for name, X in systems.items()}
        blocks = by_features(profiles_of(world.stimuli.subset(rows), sample, resamples=20)).blocks
        between = sorted((b for b in blocks if b.a != b.b), key=lambda b: -b.mean)
        found.append(between[1].is_tied if equal else not between[1].is_tied)
    name = "two pairs equally alike are called a tie" if equal else "the pair most alike is told apart"
    goal = (0.95, 1.0) if equal else (0.8, 1.0)
    about = f"salle2024, 80 sentences, true means {apart:.2f} apart"
    return Claim(name, about, *goal, float(np.mean(found)), n_draws)


def _three_systems(seed: int, *, equal: bool) -> tuple[World, dict[str, Floats], float]:
    world = World(shown("salle2024", 1500, seed))
    rng = np.random.default_rng(seed)
    while True:
        common, *own = rng.normal(size=(4, len(world.codes)))
        logs = [0.6 * common + 0.8 * one for one in own]
        if not equal:
            logs[1] = 0.97 * logs[0] + 0.25 * logs[1]
        systems = {
            name: np.stack(world.system(rng, np.exp(one), 2, 0.15))
            for name, one in zip("abc", logs, strict=True)
        }
        blocks = by_features(profiles_of(world.stimuli, systems, resamples=0)).blocks
        means = sorted((b.mean for b in blocks if b.a != b.b), reverse=True)
        apart = means[0] - means[1]
        if apart <= 0.01 and means[1] - means[2] >= 0.15 if equal else apart >= 0.3:
            return world, systems, apart


def ranks(importance: Floats) -> Floats:
    """1 for the largest."""
    places: Floats = 1 + (importance[..., None, :] > importance[..., :, None]).sum(axis=-1)
    return places


SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "features-ties": ({"equal": partial(ties, equal=True), "apart": partial(ties, equal=False)}, 200),
    "features-ranges": (
        {
            name: partial(ranges_in, about=about, name=about.kind, first=100 + place)
            for place, (name, about) in enumerate(RANGE_WORLDS.items())
        },
        300,
    ),
    "features-ranges-elsewhere": (
        {
            name: partial(ranges_in, about=about, name=name, first=200 + place)
            for place, (name, about) in enumerate(OTHER_WORLDS.items())
        },
        100,
    ),
}
"""Name → the simulation, and the draws of a full run"""
