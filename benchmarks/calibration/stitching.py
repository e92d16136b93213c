"""Claims on stitching: ranges of penalties over documents, and the test of A→B against B→A."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.calibration.claims import Claim, Simulation
from benchmarks.calibration.worlds import Floats
from thinkalike.stitching.statistics import ratio_interval

RESAMPLES = 999


def _log_normal(rng: np.random.Generator, n: int, sigma: float = 0.4) -> Floats:
    mean, variance = np.exp(sigma**2 / 2), (np.exp(sigma**2) - 1) * np.exp(sigma**2)
    return (rng.lognormal(0.0, sigma, n) - mean) / np.sqrt(variance)


SPREADS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: rng.exponential(size=n) - 1,
    "heavy tails": lambda rng, n: rng.standard_t(3, size=n) / np.sqrt(3),
    "gamma of shape 2": lambda rng, n: (rng.gamma(2.0, size=n) - 2) / np.sqrt(2),
    "gamma of shape 0.6": lambda rng, n: (rng.gamma(0.6, size=n) - 0.6) / np.sqrt(0.6),
    "log-normal": _log_normal,
    "uniform": lambda rng, n: (rng.random(n) - 0.5) * np.sqrt(12),
    "t of 5 degrees": lambda rng, n: rng.standard_t(5, size=n) / np.sqrt(5 / 3),
    "one in ten thrice as far": lambda rng, n: (
        rng.normal(size=n) * np.where(rng.random(n) < 0.1, 3, 1) / np.sqrt(1.8)
    ),
}
"""Numbers of mean 0 and variance 1"""


@dataclass(frozen=True)
class Documents:
    """So many documents of unequal length, each of which loses so much for every prediction."""

    n: int
    losses: str
    """How the losses of documents spread around the mean: one of `SPREADS`"""
    lengths: float = 0.5
    """The standard deviation of log lengths"""

    @property
    def name(self) -> str:
        unequal = (
            "unequal" if self.lengths == 0.5 else "nearly equal" if self.lengths < 0.5 else "very unequal"
        )
        return f"{self.n} documents of {unequal} length, {self.losses}"

    def draw(self, rng: np.random.Generator, mean: float) -> tuple[Floats, Floats]:
        """Sums over the predictions of each document, and how many these are."""
        counts = np.ceil(200 * np.exp(self.lengths * rng.normal(size=self.n)))
        return counts * (mean + 0.3 * SPREADS[self.losses](rng, self.n)), counts


@dataclass(frozen=True)
class LongLoseLess:
    """25 documents with log-normal losses (skewness 2.3); the longer one is, the less it loses.

    With log lengths z / 2 and log losses σ (√3 v − z) / 2, of normal z and v, a prediction comes from a
    document with a z that is 1/2 higher on average, so that losses are lower by the factor exp(−σ / 4).
    """

    n: int = 25
    name: str = "25 documents, log-normal losses, long ones lose less"

    def draw(self, rng: np.random.Generator, mean: float) -> tuple[Floats, Floats]:
        sigma = 0.6
        z, v = rng.normal(size=(2, self.n))
        counts = 200 * np.exp(0.5 * z)
        losses = np.exp(sigma * (np.sqrt(3) * v - z) / 2)
        away = losses - np.exp(sigma**2 / 2 - sigma / 4)
        return counts * (mean + 0.3 * away), counts


@dataclass(frozen=True)
class MostLoseNothing:
    """40 documents of unequal length, of which three in ten lose something (skewness 3.6)."""

    n: int = 40
    name: str = "40 documents of unequal length, most lose the same"

    def draw(self, rng: np.random.Generator, mean: float) -> tuple[Floats, Floats]:
        counts = np.ceil(200 * np.exp(0.5 * rng.normal(size=self.n)))
        lost = rng.exponential(size=self.n) * (rng.random(self.n) < 0.3)
        return counts * (mean + 0.3 * (lost - 0.3)), counts


World = Documents | LongLoseLess | MostLoseNothing
WORLDS: list[World] = [
    *(Documents(n, losses) for n in (10, 30, 100) for losses in ("normal", "skewed", "heavy tails")),
    LongLoseLess(),
    MostLoseNothing(),
]
"""The last two were drawn up before anything was tried in them"""
DEVELOPMENT = [
    Documents(n, losses, lengths)
    for n in (10, 12, 20, 50)
    for lengths in (0.3, 0.8)
    for losses in list(SPREADS)[3:]
]
"""How ranges and p are made was chosen in these; docs/certainty.md says what else was tried"""


def penalties(n_draws: int, seed: int, *, about: World) -> list[Claim]:
    """The penalty of very many documents is 1, or 0 for the test."""
    rng, held, small = np.random.default_rng(seed), list[bool](), list[bool]()
    for k in range(n_draws):
        sums, counts = about.draw(rng, 1.0)
        found = ratio_interval(sums[None], counts, resamples=RESAMPLES, seed=k)
        held.append(bool(found.low[0] <= 1.0 <= found.high[0]))
        nothing, lengths = about.draw(rng, 0.0)
        small.append(bool(ratio_interval(nothing[None], lengths, resamples=RESAMPLES, seed=k).p[0] <= 0.05))
    return [
        Claim("95 % range of a penalty", about.name, 0.92, 0.98, float(np.mean(held)), n_draws),
        Claim("p ≤ 0.05 of A→B against B→A", about.name, 0.03, 0.07, float(np.mean(small)), n_draws),
    ]


SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "stitching-penalties": ({one.name: partial(penalties, about=one) for one in WORLDS}, 1000),
    "stitching-penalties-development": (
        {one.name: partial(penalties, about=one) for one in DEVELOPMENT},
        1000,
    ),
}
"""Name → the simulation, and the draws of a full run"""
