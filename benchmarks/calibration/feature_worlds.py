"""Worlds in which ranges by features, and ties, are chosen and judged: systems, and samples of sentences.

Ranges of τ_w and of importances were chosen in `DEVELOPMENT` (`features-ranges-development`; first looked at
with 25 samples of each of 37 sets of systems): how they are made, and the step of `inference/ranges.py`.
All other worlds only judge: nothing was chosen in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np

from benchmarks.calibration.features import profiles_of
from benchmarks.calibration.worlds import DOMINANT, Floats, World, shown
from thinkalike.comparison.feature_similarity import by_features
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.similarity_matrix import SimilarityMatrix

SAMPLES_EACH = 10
"""Samples of sentences that one set of systems is shown; then new systems are drawn"""


@dataclass(frozen=True)
class RangeWorld:
    """Systems of some layers each, and samples of the sentences that all are shown."""

    kind: str
    likeness: tuple[float, ...]
    """Of each system: how its log strengths correlate with those that all share"""
    n_sentences: int
    population: int = 1500
    layers: tuple[int, ...] = (2, 2)
    tails: int | None = None
    spread: float = 0.4
    """Of log strengths over the layers of a system"""
    loud: int = 0
    interactions: float = 0.0
    dominant: bool = False
    """Whether one feature, the same in all systems, is as strong as `worlds.DOMINANT`"""


class Sample(NamedTuple):
    """What all sentences give, and what a sample of them does: one profile per system."""

    truth: list[Profile]
    made: list[Profile]


def taus(profiles: Sequence[Profile]) -> SimilarityMatrix:
    """τ_w with ranges, without the test by relabelling, which takes longer than all else."""
    return by_features([replace(one, strengths=None) for one in profiles])


def pair(kind: str, likeness: float, n_sentences: int, **other: object) -> RangeWorld:
    """Two systems whose log strengths correlate at `likeness`."""
    spread = 0.4 if likeness < 1 else 0.15
    return RangeWorld(kind, (likeness**0.5,) * 2, n_sentences, spread=spread, **other)  # type: ignore[arg-type]


RANGES = {
    "salle2024": pair("salle2024", 0.0, 80),
    "half missing": pair("half missing", 0.5, 80),
    "untangled": pair("untangled", 0.8, 40, population=800),
    "salle2024, alike": pair("salle2024", 1.0, 80),
}
ELSEWHERE = {
    "heavy tails (t of 4 degrees)": pair("untangled", 0.6, 60, population=800, tails=4),
    "twelve features": pair("twelve features", 0.7, 80, population=1200),
    "rare levels (92 % are the first)": pair("rare levels", 0.5, 100, population=1200),
    "2 layers against 13": pair("salle2024", 0.5, 80, population=1000, layers=(2, 13)),
    "few sentences": pair("salle2024", 0.9, 40, population=1000),
}
OUTSIDE = {
    "correlated features (0.6)": pair("correlated features", 0.6, 80, population=1200),
    "one feature dominates": pair("salle2024", 0.3, 80, population=1200, dominant=True),
    "two loud units, t of 3 degrees": pair("salle2024", 0.7, 80, population=1200, tails=3, loud=2),
    "features interact": pair("salle2024", 0.5, 80, population=1200, interactions=1.0),
}
"""Kinds of worlds that were drawn up when all else was done"""
DEVELOPMENT = {
    "salle2024, unlike": pair("salle2024", 0.3, 80, population=1600),
    "untangled, 40 sentences": pair("untangled", 0.9, 40, population=1000),
    "a third missing": pair("third missing", 0.6, 80, population=1600),
    "85 % are the first level": pair("uncommon", 0.8, 100, population=2000),
    "93 % are the first level": pair("scarce", 0.5, 100, population=2000),
    "ten features": pair("ten features", 0.7, 60, population=1500),
    "salle2024, 200 sentences": pair("salle2024", 0.8, 200, population=3000),
}
FOUR = (0.95, 0.95, 0.8, 0.3)
"""Four systems, of whose six pairs some are nearly equal and others far apart"""
TIES = {
    "salle2024, 80 sentences": RangeWorld("salle2024", FOUR, 80, 1500, (2, 2, 2, 2), spread=0.2),
    "salle2024, 200 sentences": RangeWorld("salle2024", FOUR, 200, 2500, (2, 2, 2, 2), spread=0.2),
    "twelve features, 200 sentences": RangeWorld("twelve features", FOUR, 200, 2500, (2, 2, 2, 2)),
    "untangled, 200 sentences": RangeWorld("untangled", FOUR, 200, 2000, (1, 1, 1, 1)),
    "rare levels, 200 sentences": RangeWorld("rare levels", FOUR, 200, 2500, (2, 2, 2, 2)),
}
POOL = 24
"""Systems that are drawn together, to find sets of three among them"""


def pooled(about: RangeWorld, likeness: tuple[float, ...] = FOUR) -> RangeWorld:
    """The same world with `POOL` systems, as unlike as `likeness`, which all have the depth of its first."""
    times = POOL // len(likeness)
    return replace(about, likeness=likeness * times, layers=about.layers[:1] * POOL)


EQUALS = {
    name: pooled(about)
    for name, about in {
        **{name: about for name, about in TIES.items() if about.kind != "untangled"},
        # of 2,000 sentences the truth alone takes two seconds a system
        "untangled, 100 sentences": RangeWorld("untangled", FOUR, 100, 1000, (1,)),
    }.items()
}
EQUALS_DEVELOPMENT = {name: pooled(about) for name, about in DEVELOPMENT.items()}
EQUAL = 0.02
"""True means of τ_w so close are equal"""


def samples(about: RangeWorld, n: int, seed: int) -> Iterator[Sample]:
    """`n` samples, and new systems after every ten."""
    world = _population(about, seed)
    rng, systems = np.random.default_rng(seed), dict[str, Floats]()
    for k in range(n):
        if k % SAMPLES_EACH == 0:
            systems = _systems(about, world, rng)
            truth = profiles_of(world.stimuli, systems, resamples=0)
        yield Sample(truth, _sampled(about, world, systems, rng))


class Equals(NamedTuple):
    """Three systems, whose two most alike pairs are equally alike in truth, and one sample of theirs."""

    first: tuple[str, str]
    second: tuple[str, str]
    """The two pairs"""
    made: list[Profile]
    pool: int
    """Which systems they were found among"""


def equals(about: RangeWorld, n: int, seed: int) -> Iterator[Equals]:
    """`n` sets of three systems, each with one sample; no system is in two of them.

    Sentences and `POOL` systems are drawn, and sets taken from them by the truth alone; then others are.
    """
    found = 0
    for pool in count():
        world = _population(about, seed + pool)
        rng = np.random.default_rng(seed + pool)
        systems = _systems(about, world, rng)
        truth = taus(profiles_of(world.stimuli, systems, resamples=0))
        for first, second in equal_pairs({(b.a, b.b): b.mean for b in truth.blocks}):
            if found == n:
                return
            found += 1
            three = {name: systems[name] for name in sorted({*first, *second})}
            yield Equals(first, second, _sampled(about, world, three, rng), pool)


Pair = tuple[str, str]


def equal_pairs(means: Mapping[Pair, float]) -> Iterator[tuple[Pair, Pair]]:
    """Of sets of three systems with none in common: the two pairs most alike, where these are equals."""
    free = sorted({name for pair in means for name in pair})
    for three in combinations(free, 3):
        if not set(three) <= set(free):
            continue
        first, second = sorted(combinations(three, 2), key=lambda pair: -means[pair])[:2]
        if means[first] - means[second] <= EQUAL:
            free = [name for name in free if name not in three]
            yield first, second


def _population(about: RangeWorld, seed: int) -> World:
    stimuli = shown(about.kind, about.population, seed)
    return World(stimuli, tails=about.tails, loud=about.loud, interactions=about.interactions)


def _sampled(
    about: RangeWorld, world: World, systems: Mapping[str, Floats], rng: np.random.Generator
) -> list[Profile]:
    """What a sample of the sentences gives."""
    chosen = rng.choice(about.population, about.n_sentences, replace=False)
    rows = np.isin(world.sentence, chosen)
    shown_to = {name: X[:, rows] for name, X in systems.items()}
    return profiles_of(world.stimuli.subset(rows), shown_to, resamples=20)


def _systems(about: RangeWorld, world: World, rng: np.random.Generator) -> dict[str, Floats]:
    """The layers of each system (n_layers, n_items, n_units)."""
    common, *own = rng.normal(size=(1 + len(about.likeness), len(world.codes)))
    top = rng.integers(len(world.codes)) if about.dominant else None
    systems = {}
    for name, share, one, depth in zip(ascii_lowercase, about.likeness, own, about.layers, strict=False):
        strengths = np.exp(share * common + np.sqrt(1 - share**2) * one)
        if top is not None:
            strengths[top] = DOMINANT
        systems[name] = np.stack(world.system(rng, strengths, depth, about.spread))
    return systems
