"""Claims on ranges by features: ρ, importances, strengths, ranks and τ_w."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from benchmarks.calibration.claims import Claim, Simulation, error_of_sets
from benchmarks.calibration.feature_worlds import (
    DEVELOPMENT,
    ELSEWHERE,
    OUTSIDE,
    RANGES,
    SAMPLES_EACH,
    RangeWorld,
    Sample,
    samples,
    taus,
)
from benchmarks.calibration.worlds import Floats
from thinkalike.comparison.cautions import CautionWarning

COVERAGE = (0.92, 0.98)
SMALL = 0.01
"""What an importance below this is called: near 0"""


@dataclass
class Coverage:
    """How often ranges held the truth, by quantity."""

    held: dict[str, list[float]] = field(default_factory=dict)
    sets: dict[str, list[int]] = field(default_factory=dict)
    """By quantity, which set of systems each share is of"""
    now: int = 0
    """The set of systems at hand"""

    def add(
        self, quantity: str, low: Floats, high: Floats, truth: Floats, some: Floats | None = None
    ) -> None:
        """The share of values, or of `some` of them, in their ranges; nothing where there are none."""
        known = np.isfinite(low) & np.isfinite(high) & (True if some is None else some)
        inside = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
        if known.any():
            self.held.setdefault(quantity, []).append(float(inside[known].mean()))
            self.sets.setdefault(quantity, []).append(self.now)

    def add_sample(self, number: int, sample: Sample) -> float:
        """All that two systems have; the true mean τ_w is returned."""
        self.now = number // SAMPLES_EACH
        for one, true in zip(sample.made, sample.truth, strict=True):
            self.add("ρ", *one.score_range(), true.mean_scores)
            importance = (*one.importance_range(), true.mean_importance)
            self.add("importances", *importance)
            self.add(f"importances below {SMALL}", *importance, np.abs(true.mean_importance) < SMALL)
            self.add("strengths", *one.strength_range(), true.mean_strengths)
            self.add("ranks of features", *one.rank_range(), ranks(true.mean_importance))
        found, true_taus = taus(sample.made), taus(sample.truth)
        assert found.low is not None
        assert found.high is not None
        depth = len(sample.truth[0].layers)
        cells = slice(0, depth), slice(depth, None)
        self.add("τ_w of two layers", found.low[cells], found.high[cells], true_taus.values[cells])
        block, true_block = found.block_test("a", "b"), true_taus.block_test("a", "b")
        assert block is not None
        assert true_block is not None
        ends = np.array([block.low]), np.array([block.high])
        self.add("mean τ_w of two systems", *ends, np.array([true_block.mean]))
        return true_block.mean


def ranges_in(n_draws: int, seed: int, *, about: RangeWorld, name: str, first: int) -> list[Claim]:
    """Do 95 % ranges hold the values of very many sentences? The truth is what a whole population gives."""
    warnings.simplefilter("ignore", CautionWarning)
    coverage = Coverage()
    drawn = enumerate(samples(about, n_draws, 1000 * seed + first))
    true_means = [coverage.add_sample(number, one) for number, one in drawn]
    world = (
        f"{name}, {about.n_sentences} sentences, true mean τ_w {min(true_means):.2f} to {max(true_means):.2f}"
    )
    return [
        Claim(
            f"95 % range of {quantity}",
            world,
            *COVERAGE,
            found=float(np.mean(held)),
            n=n_draws,
            error_of_sets=error_of_sets(held, coverage.sets[quantity]),
        )
        for quantity, held in coverage.held.items()
    ]


def ranks(importance: Floats) -> Floats:
    """1 for the largest."""
    places: Floats = 1 + (importance[..., None, :] > importance[..., :, None]).sum(axis=-1)
    return places


def _parts(worlds: dict[str, RangeWorld], first: int) -> Simulation:
    return {
        name: partial(ranges_in, about=about, name=name, first=first + place)
        for place, (name, about) in enumerate(worlds.items())
    }


SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "features-ranges": (_parts(RANGES, 100), 300),
    "features-ranges-elsewhere": (_parts(ELSEWHERE, 200), 300),
    "features-ranges-outside": (_parts(OUTSIDE, 400), 300),
    "features-ranges-development": (_parts(DEVELOPMENT, 5000), 100),
}
"""Name → the simulation, and the draws of a full run"""
