"""Claims on groups of models: do ranges of means and of separations hold those of very many models?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations_with_replacement

import numpy as np
from scipy.spatial.distance import pdist, squareform

from benchmarks.calibration.claims import Claim, Simulation, error_of_sets
from benchmarks.calibration.structure import Floats, Generator, centred
from thinkalike.inference.groups import compare_groups
from thinkalike.inference.over_models import mean_over_pairs

COVERAGE = (0.92, 0.98)


@dataclass(frozen=True)
class Scattered:
    """Models at random places, of whose groups the means of distances are known from very many models."""

    sizes: tuple[int, ...]
    spread: tuple[float, ...]
    d: int = 8
    tails: int | None = None
    """Degrees of freedom of Student's t that places are drawn from; None: normal"""
    far: bool = False
    """Whether every model shifts all its distances by an exponential effect of its own"""
    apart: float = 2.0
    """From the centre of a group to that of another"""
    squared: bool = False
    """Whether means are of squared distances"""

    def distances(self, rng: Generator, sizes: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Between models of groups of these sizes; and the group of each."""
        codes = np.repeat(np.arange(len(sizes)), sizes)
        shape = (len(codes), self.d)
        X = rng.normal(size=shape) if self.tails is None else rng.standard_t(self.tails, size=shape)
        places = X * np.array(self.spread)[codes][:, None] + centred(codes, self.apart, self.d)
        between = squareform(pdist(places))
        effect = rng.exponential(size=len(codes)) if self.far else np.zeros(len(codes))
        return between + effect[:, None] + effect, codes

    def truth(self, rng: Generator, n: int = 1000) -> Floats:
        """(n_groups, n_groups) means over pairs of different models."""
        values, codes = self.distances(rng, (n,) * len(self.sizes))
        np.fill_diagonal(values, 0.0)
        if self.squared:
            values **= 2
        groups = np.eye(len(self.sizes))[codes]
        counts = np.outer(groups.sum(axis=0), groups.sum(axis=0)) - np.diag(groups.sum(axis=0))
        means: Floats = (groups.T @ values @ groups) / counts
        return means

    def true_separation(self, rng: Generator) -> float:
        """√ of the mean square between groups − √ of that within them, all groups counting alike."""
        squares = replace(self, squared=True).truth(rng)
        k = len(self.sizes)
        within = squares.trace() / k
        return float(np.sqrt((squares.sum() - squares.trace()) / (k * (k - 1))) - np.sqrt(within))


SCATTERED = {
    "4 + 8 models, 3 dimensions, heavy tails (t of 4 degrees)": Scattered((4, 8), (1.0, 1.0), d=3, tails=4),
    "6 + 6 models, each far from all or near to all, skewed": Scattered((6, 6), (1.0, 1.0), far=True),
    "3 + 20 models, the few thrice as spread": Scattered((3, 20), (3.0, 1.0)),
    "12 + 25 models, 20 dimensions": Scattered((12, 25), (1.0, 1.0), d=20),
    "5 + 5 + 5 models, once, twice and thrice as spread": Scattered((5, 5, 5), (1.0, 2.0, 3.0)),
}
"""Worlds that only judge: drawn up after how the range is made had been settled in others"""


def means_of_groups(n: int, seed: int, *, about: Scattered, world: str) -> list[Claim]:
    """Do the ranges of means within and between groups hold those of very many models?"""
    rng = np.random.default_rng(seed)
    truth = np.mean([about.truth(rng) for _ in range(5)], axis=0)
    held: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(n):
        values, codes = about.distances(rng, about.sizes)
        inside: dict[bool, list[bool]] = {True: [], False: []}
        for a, b in combinations_with_replacement(range(len(about.sizes)), 2):
            chosen = (codes[:, None] == a) & (codes == b) & ~np.eye(len(codes), dtype=bool)
            found = mean_over_pairs(values, chosen, codes)
            inside[a == b].append(found.low <= truth[a, b] <= found.high)
        for within, ones in inside.items():
            held[within].append(float(np.mean(ones)))
    return [
        Claim(
            f"95 % range of a mean {'within a group' if within else 'between two groups'}",
            world,
            *COVERAGE,
            found=float(np.mean(shares)),
            n=n,
            error_of_sets=error_of_sets(shares, range(n)),
        )
        for within, shares in held.items()
    ]


APART = {
    f"{name}, centres {apart} apart": replace(SCATTERED[name], apart=apart)
    for name, apart in (
        ("4 + 8 models, 3 dimensions, heavy tails (t of 4 degrees)", 3.0),
        ("6 + 6 models, each far from all or near to all, skewed", 0.0),
        ("6 + 6 models, each far from all or near to all, skewed", 2.0),
        ("3 + 20 models, the few thrice as spread", 2.0),
        ("12 + 25 models, 20 dimensions", 1.0),
        ("12 + 25 models, 20 dimensions", 4.0),
        ("5 + 5 + 5 models, once, twice and thrice as spread", 0.0),
        ("5 + 5 + 5 models, once, twice and thrice as spread", 3.0),
    )
}

ELSEWHERE = {
    "3 + 3 + 9 models, 5 dimensions, centres 2.5 apart": Scattered(
        (3, 3, 9), (1.0, 1.0, 1.0), d=5, apart=2.5
    ),
    "8 + 8 models, 2 dimensions, t of 3 degrees, centres 1.5 apart": Scattered(
        (8, 8), (1.0, 1.0), d=2, tails=3, apart=1.5
    ),
    "4 + 30 models, the many twice as spread, centres 3.0 apart": Scattered(
        (4, 30), (1.0, 2.0), d=10, apart=3.0
    ),
    "7 + 7 + 7 + 7 models, 6 dimensions, centres 1.0 apart": Scattered((7,) * 4, (1.0,) * 4, d=6, apart=1.0),
}
"""Drawn up after the reach of the upper end was chosen; those above had shown that it was too short"""


def separation_of_groups(n: int, seed: int, *, about: Scattered, world: str) -> Claim:
    """Does the range of the separation hold that of very many models?"""
    rng = np.random.default_rng(seed)
    truth = np.mean([about.true_separation(rng) for _ in range(5)])
    held = []
    for _ in range(n):
        distances, codes = about.distances(rng, about.sizes)
        np.fill_diagonal(distances, 0.0)
        row = compare_groups(distances, list(codes), n_permutations=199).separation.iloc[0]
        held.append(row["low"] <= truth <= row["high"])
    return Claim("95 % range of a separation", world, *COVERAGE, found=float(np.mean(held)), n=n)


SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "groups-separation": (
        {world: partial(separation_of_groups, about=about, world=world) for world, about in APART.items()},
        1000,
    ),
    "groups-separation-elsewhere": (
        {
            world: partial(separation_of_groups, about=about, world=world)
            for world, about in ELSEWHERE.items()
        },
        1000,
    ),
    "groups-means": (
        {world: partial(means_of_groups, about=about, world=world) for world, about in SCATTERED.items()},
        4000,
    ),
}
"""Name → the simulation, and the draws of a full run"""
