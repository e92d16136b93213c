"""Claims on ties: pairs of systems equally alike are called a tie, a pair clearly ahead is told apart.

`features-ties` draws systems as they come. `features-equals` asks about equals alone: three systems at a
time, none of which is in another set, whose two most alike pairs are equally alike in truth. The truth alone
chooses them. A set counts where one of these two pairs comes out as the most alike, and is right where the
other is called a tie. Where the third pair comes out first, nothing is said of the two: that is not counted.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from benchmarks.calibration.claims import Claim, Simulation, error_of_sets
from benchmarks.calibration.feature_worlds import (
    EQUAL,
    EQUALS,
    EQUALS_DEVELOPMENT,
    SAMPLES_EACH,
    TIES,
    Equals,
    RangeWorld,
    Sample,
    equals,
    samples,
    taus,
)
from thinkalike.comparison.cautions import CautionWarning

CALLED = (0.93, 1.0)
"""The share of ties that should be called so"""
STEPS = (0.1, 0.2, 0.3, 0.4, 0.5, np.inf)
"""Bounds of the true differences by which the most alike pair is told apart from others"""


@dataclass(frozen=True)
class Judged:
    """The pair that comes out as the most alike, against one other."""

    ahead: float
    """By how much it is truly ahead"""
    tied: bool
    sample: int
    set: int
    """The set of systems that the sample is of: they have one shift in all samples"""


def judged(sample: Sample, number: int) -> list[Judged]:
    """Each other pair of one sample."""
    truth = {(b.a, b.b): b.mean for b in taus(sample.truth).blocks}
    blocks = [b for b in taus(sample.made).blocks if b.a != b.b]
    best = max(blocks, key=lambda block: block.mean)
    return [
        Judged(truth[best.a, best.b] - truth[block.a, block.b], block.is_tied, number, number // SAMPLES_EACH)
        for block in blocks
        if block is not best
    ]


def ties_in(n_draws: int, seed: int, *, about: RangeWorld, name: str, first: int) -> list[Claim]:
    """In how many cases a tie is called, by the true difference."""
    warnings.simplefilter("ignore", CautionWarning)
    drawn = enumerate(samples(about, n_draws, 1000 * seed + first))
    found = [judged(sample, number) for number, sample in drawn]
    every = [case for cases in found for case in cases]
    named = [not any(case.tied for case in cases) for cases in found]
    wrong = [
        alone and any(case.ahead < -EQUAL for case in cases)
        for alone, cases in zip(named, found, strict=True)
    ]
    claims = [
        Claim("a pair is named the most alike that is not", name, 0.0, 0.05, float(np.mean(wrong)), n_draws),
    ]
    for low, high in pairwise(STEPS):
        cases = [case for case in every if low < case.ahead <= high]
        goal = (0.8, 1.0) if low >= 0.4 and about.n_sentences >= 200 else (0.0, 1.0)
        width = f"{low} to {high}" if np.isfinite(high) else f"more than {low}"
        claims += _claim(f"a pair truly ahead by {width} is told apart", name, goal, cases)
    return claims


def _claim(name: str, world: str, goal: tuple[float, float], cases: list[Judged]) -> list[Claim]:
    """`n` counts samples, of which one may have several cases; nothing where there are none."""
    if not cases:
        return []
    right = [float(not case.tied) for case in cases]
    error = error_of_sets(right, [case.set for case in cases])
    n_samples = len({case.sample for case in cases})
    return [Claim(name, world, *goal, float(np.mean(right)), n_samples, error_of_sets=error)]


def is_tied(found: Equals) -> bool | None:
    """Whether the two pairs are called a tie; None where a third pair comes out first."""
    blocks = {(b.a, b.b): b for b in taus(found.made).blocks if b.a != b.b}
    best = max(blocks, key=lambda pair: blocks[pair].mean)
    pairs = found.first, found.second
    if best not in pairs:
        return None
    return blocks[pairs[1 - pairs.index(best)]].is_tied


def equals_in(n_draws: int, seed: int, *, about: RangeWorld, name: str, first: int) -> list[Claim]:
    """In how many cases a tie is called where there is one."""
    warnings.simplefilter("ignore", CautionWarning)
    judged = [(is_tied(one), one.pool) for one in equals(about, n_draws, 100_000 * seed + first)]
    told = [(float(tied), pool) for tied, pool in judged if tied is not None]
    if not told:
        return []
    called, pools = zip(*told, strict=True)
    return [
        Claim(
            "two pairs equally alike are called a tie",
            f"{name}, new systems in each draw",
            *CALLED,
            found=float(np.mean(called)),
            n=len(told),
            error_of_sets=error_of_sets(called, pools),
        )
    ]


def _of_equals(worlds: Mapping[str, RangeWorld], first: int) -> Simulation:
    return {
        name: partial(equals_in, about=about, name=name, first=first + 1000 * place)
        for place, (name, about) in enumerate(worlds.items())
    }


SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "features-ties": (
        {
            name: partial(ties_in, about=about, name=name, first=300 + place)
            for place, (name, about) in enumerate(TIES.items())
        },
        100,
    ),
    "features-equals": (_of_equals(EQUALS, 1000), 300),
    "features-equals-development": (_of_equals(EQUALS_DEVELOPMENT, 50_000), 300),
}
"""Name → the simulation, and the draws of a full run"""
