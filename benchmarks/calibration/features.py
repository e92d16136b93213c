"""Claims on the p of τ_w: systems whose strengths have nothing to do with each other, or nothing at all."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.calibration.claims import Claim, Simulation
from benchmarks.calibration.worlds import Floats, World, draw_strengths, shown
from thinkalike.activations import Activations
from thinkalike.comparison.cautions import CautionWarning
from thinkalike.comparison.feature_similarity import by_features
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.profiling import plan_profiles, profile
from thinkalike.encoding.crossval import LayerJudge, layer_target
from thinkalike.encoding.strengths import strengths
from thinkalike.inference.block_tests import relabelling_test
from thinkalike.inference.weighted_tau import tau_matrix
from thinkalike.labels import Row
from thinkalike.stimuli import Stimuli

SENTENCES = {"salle2024": 100, "untangled": 60, "half missing": 100}
DOCUMENTS = {"documents of eight items": 20}
LEVEL = (0.03, 0.07)


@dataclass(frozen=True)
class NullWorld:
    """Two systems of some layers each, whose strengths are drawn apart."""

    kind: str
    strengths: str
    layers: tuple[int, int] = (1, 1)
    n_sentences: int = 100
    tails: int | None = None
    loud: int = 0
    interactions: float = 0.0
    sentence_noise: float = 0.5
    """What the items of a sentence share, as a share of the noise of items"""
    strength: float = 1.0
    """All strengths are multiplied by it"""
    draws_each: int | None = None
    """Draws of systems that some sentences are shown to; then others are drawn. None: the same throughout"""

    @property
    def name(self) -> str:
        first, second = self.layers
        depth = f"{first} layer{'s' if first > 1 else ''}"
        if first != second:
            depth = f"{first} layers against {second}"
        return f"{self.kind}, {self.strengths} strengths, {depth}"

    @property
    def rows(self) -> list[Row]:
        return [
            (name, layer) for name, depth in zip("ab", self.layers, strict=True) for layer in range(depth)
        ]

    def world(self, seed: int) -> World:
        stimuli = shown(self.kind, self.n_sentences, seed)
        return World(
            stimuli,
            sentence_noise=self.sentence_noise,
            tails=self.tails,
            loud=self.loud,
            interactions=self.interactions,
        )


NULL_WORLDS = {
    world.name: world
    for world in (
        NullWorld(kind, drawn, (depth, depth), SENTENCES[kind])
        for kind, drawn, depth in product(SENTENCES, ("log-normal", "sparse"), (1, 5))
    )
}
OTHER_WORLDS = {
    "heavy tails (t of 4 degrees), wide strengths, 5 layers": NullWorld(
        "untangled", "wide", (5, 5), 60, tails=4
    ),
    "twelve features, log-normal strengths, 3 layers": NullWorld("twelve features", "log-normal", (3, 3), 80),
    "rare levels (92 % are the first), gamma strengths, 3 layers": NullWorld(
        "rare levels", "gamma", (3, 3), 100
    ),
    "salle2024, log-normal strengths, 2 layers against 13": NullWorld("salle2024", "log-normal", (2, 13), 80),
    "salle2024, 40 sentences, gamma strengths, 3 layers": NullWorld("salle2024", "gamma", (3, 3), 40),
}
"""Worlds that nothing was chosen in: drawn up before any of them was run"""
OUTSIDE_WORLDS = {
    "correlated features (0.6), log-normal strengths, 3 layers": NullWorld(
        "correlated features", "log-normal", (3, 3), 80, draws_each=50
    ),
    "salle2024, one feature dominates each system, 3 layers": NullWorld(
        "salle2024", "one dominates", (3, 3), 80, draws_each=50
    ),
    "salle2024, two loud units, t of 3 degrees, 3 layers": NullWorld(
        "salle2024", "log-normal", (3, 3), 80, tails=3, loud=2, draws_each=50
    ),
    "salle2024, features interact, sparse strengths, 3 layers": NullWorld(
        "salle2024", "sparse", (3, 3), 80, interactions=1.0, draws_each=50
    ),
}
"""Worlds of other kinds, drawn up when all else was done"""
LOUD_SENTENCES = {
    f"untangled, sentences 1.5 times as loud as words, strengths of {strength}, 3 layers": NullWorld(
        "untangled", "log-normal", (3, 3), 60, sentence_noise=1.5, strength=strength, draws_each=5
    )
    for strength in (1.0, 0.3)
}
"""Items of a sentence are close, and alike in features that are the same in a whole sentence (tense,
question): where the others are weak, that is taken for strength of these"""


def null_in(n_draws: int, seed: int, *, about: NullWorld, name: str) -> list[Claim]:
    """p ≤ 0.05 of two systems whose strengths have nothing to do with each other."""
    rng, found = np.random.default_rng(seed), list[tuple[float, float]]()
    for k in range(n_draws):
        if k % (about.draws_each or n_draws) == 0:
            world = about.world(seed + k)
            plan = plan_profiles(world.stimuli)
            side = LayerJudge.of(plan.encoding).side
        layers = []
        for depth in about.layers:
            drawn = about.strength * draw_strengths(rng, about.strengths, plan.differences.n_features)
            layers += world.system(rng, drawn, depth, spread=0.4)
        with threadpool_limits(1):
            measured = [
                strengths(side, layer_target(X, plan.encoding.settings, len(X))).mean(axis=0) for X in layers
            ]
        profiles = np.stack(measured)
        test = relabelling_test(tau_matrix(profiles), profiles, about.rows)
        block = next(one for one in test.blocks if one.a != one.b)
        found.append((block.p_mean, block.p_maximum))
    shares = (np.array(found) <= 0.05).mean(axis=0)
    claims = [Claim("p ≤ 0.05 of a block mean of τ_w", name, *LEVEL, float(shares[0]), n_draws)]
    if max(about.layers) > 1:
        claims.append(Claim("p ≤ 0.05 of a block maximum of τ_w", name, *LEVEL, float(shares[1]), n_draws))
    return claims


def nothing_matters(
    n_draws: int, seed: int, *, kind: str, sentence_noise: float = 0.5, draws_each: int | None = None
) -> list[Claim]:
    """p where no feature matters in either system, and whether there is one where features do matter."""
    warnings.simplefilter("ignore", CautionWarning)
    rng, p = np.random.default_rng(seed), {"none": [], "all": []}
    for k in range(n_draws):
        if k % (draws_each or n_draws) == 0:
            stimuli = shown(kind, (SENTENCES | DOCUMENTS)[kind], seed + k)
            world = World(stimuli, sentence_noise=sentence_noise)
        for what, found in p.items():
            drawn = [draw_strengths(rng, "log-normal", len(world.codes)) * (what == "all") for _ in "ab"]
            systems = {
                name: np.stack(world.system(rng, s, 1, 0.4)) for name, s in zip("ab", drawn, strict=True)
            }
            block = by_features(profiles_of(world.stimuli, systems, resamples=0)).block_test("a", "b")
            found.append(np.nan if block is None else block.p_mean)
    none, given = np.array(p["none"]), np.isfinite(p["all"])
    return [
        Claim("p ≤ 0.05 where no feature matters", kind, 0.0, 0.05, float((none <= 0.05).mean()), n_draws),
        Claim("a p is given where features matter", kind, 0.95, 1.0, float(given.mean()), n_draws),
    ]


def profiles_of(stimuli: Stimuli, systems: dict[str, Floats], *, resamples: int) -> list[Profile]:
    plan = plan_profiles(stimuli, resamples=resamples)
    return [
        profile(Activations.from_arrays(dict(enumerate(layers)), system=name), stimuli, plan=plan)
        for name, layers in systems.items()
    ]


SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "features-null": (
        {name: partial(null_in, about=about, name=name) for name, about in NULL_WORLDS.items()},
        400,
    ),
    "features-null-elsewhere": (
        {name: partial(null_in, about=about, name=name) for name, about in OTHER_WORLDS.items()},
        400,
    ),
    "features-null-outside": (
        {name: partial(null_in, about=about, name=name) for name, about in OUTSIDE_WORLDS.items()},
        1200,
    ),
    "features-null-loud-sentences": (
        {name: partial(null_in, about=about, name=name) for name, about in LOUD_SENTENCES.items()},
        400,
    ),
    "features-nothing": ({kind: partial(nothing_matters, kind=kind) for kind in SENTENCES}, 200),
    "features-nothing-documents": (
        {kind: partial(nothing_matters, kind=kind, sentence_noise=0.7, draws_each=10) for kind in DOCUMENTS},
        200,
    ),
}
"""Name → the simulation, and the draws of a full run"""
