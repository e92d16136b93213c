"""Claims on everything that is by features: p of τ_w, ranges of ρ, importances, ranks and τ_w.

How ranges are made was chosen in thirteen other worlds (other seeds, 50 to 60 samples each), among ten ways:
percentiles, shifted and widened forms of a bootstrap, half-samples, and leaving out a third, a fifth, a tenth
or a twentieth of the sentences. A tenth was the balance over ρ, importances, ranks and τ_w, not the best for
each. The worlds below were run once, afterwards.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.calibration.claims import Claim, Simulation
from benchmarks.calibration.worlds import Floats, World, draw_strengths, related_strengths, shown
from thinkalike.activations import Activations
from thinkalike.comparison.cautions import CautionWarning
from thinkalike.comparison.feature_similarity import by_features
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.profiling import plan_profiles, profile
from thinkalike.encoding.crossval import LayerJudge, layer_target
from thinkalike.encoding.strengths import strengths
from thinkalike.inference.block_tests import relabelling_test
from thinkalike.inference.weighted_tau import tau_matrix
from thinkalike.stimuli import Stimuli

SENTENCES = {"salle2024": 100, "untangled": 60, "half missing": 100}
NULL_WORLDS = list(product(SENTENCES, ("log-normal", "sparse"), (1, 5)))
"""Stimuli, strengths, layers of a system"""


def null_of_tau(n_draws: int, seed: int) -> list[Claim]:
    """p ≤ 0.05 of two systems whose strengths have nothing to do with each other."""
    return [claim for world in NULL_WORLDS for claim in null_in(*world, n_draws=n_draws, seed=seed)]


def null_in(kind: str, distribution: str, n_layers: int, *, n_draws: int, seed: int) -> list[Claim]:
    """The claims in one world."""
    world = World(shown(kind, SENTENCES[kind], seed))
    plan = plan_profiles(world.stimuli)
    side = LayerJudge.of(plan.encoding).side
    rng = np.random.default_rng(seed)
    rows = [(name, layer) for name in "ab" for layer in range(n_layers)]
    found = []
    for _ in range(n_draws):
        layers = []
        for _ in "ab":
            drawn = draw_strengths(rng, distribution, plan.differences.n_features)
            layers += world.system(rng, drawn, n_layers, spread=0.4)
        with threadpool_limits(1):
            measured = [
                strengths(side, layer_target(X, plan.encoding.settings, len(X))).mean(axis=0) for X in layers
            ]
        profiles = np.stack(measured)
        test = relabelling_test(tau_matrix(profiles), profiles, rows)
        block = next(one for one in test.blocks if one.a != one.b)
        found.append((block.p_mean, block.p_maximum))
    name = f"{kind}, {distribution} strengths, {n_layers} layer{'s' if n_layers > 1 else ''}"
    shares = (np.array(found) <= 0.05).mean(axis=0)
    claims = [Claim("p ≤ 0.05 of a block mean of τ_w", name, 0.03, 0.07, float(shares[0]), n_draws)]
    if n_layers > 1:
        claims.append(
            Claim("p ≤ 0.05 of a block maximum of τ_w", name, 0.03, 0.07, float(shares[1]), n_draws)
        )
    return claims


def nothing_matters(n_draws: int, seed: int) -> list[Claim]:
    """p where no feature matters in either system, and whether there is one where features do matter."""
    warnings.simplefilter("ignore", CautionWarning)
    claims = []
    for kind, n_sentences in SENTENCES.items():
        world = World(shown(kind, n_sentences, seed))
        rng, p = np.random.default_rng(seed), {"none": [], "all": []}
        for _ in range(n_draws):
            for what, found in p.items():
                drawn = [draw_strengths(rng, "log-normal", len(world.codes)) * (what == "all") for _ in "ab"]
                systems = {
                    name: np.stack(world.system(rng, s, 1, 0.4)) for name, s in zip("ab", drawn, strict=True)
                }
                block = by_features(profiles_of(world.stimuli, systems, resamples=0)).block_test("a", "b")
                found.append(np.nan if block is None else block.p_mean)
        none, given = np.array(p["none"]), np.isfinite(p["all"])
        name = "p ≤ 0.05 where no feature matters"
        claims.append(Claim(name, kind, 0.0, 0.05, float((none <= 0.05).mean()), n_draws))
        name = "a p is given where features matter"
        claims.append(Claim(name, kind, 0.95, 1.0, float(given.mean()), n_draws))
    return claims


@dataclass(frozen=True)
class RangeWorld:
    """Two systems of two layers each, and samples of the sentences that both are shown."""

    kind: str
    likeness: float
    n_sentences: int
    noise: float = 1.0
    population: int = 1500


RANGE_WORLDS = (
    RangeWorld("salle2024", 0.0, 80),
    RangeWorld("half missing", 0.5, 80),
    RangeWorld("untangled", 0.8, 40, population=800),
    RangeWorld("salle2024", 1.0, 80),
)


@dataclass
class Coverage:
    """How often ranges held the truth, by quantity."""

    held: dict[str, list[float]] = field(default_factory=dict)

    def add(self, quantity: str, low: Floats, high: Floats, truth: Floats) -> None:
        known = np.isfinite(low) & np.isfinite(high)
        inside = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
        self.held.setdefault(quantity, []).append(float(inside[known].mean()))


def ranges(n_draws: int, seed: int) -> list[Claim]:
    """Do 95 % ranges hold the values of very many sentences?"""
    return [
        claim
        for place, world in enumerate(RANGE_WORLDS)
        for claim in ranges_in(world, n_draws=n_draws, seed=1000 * seed + 100 + place)
    ]


def ranges_in(about: RangeWorld, *, n_draws: int, seed: int) -> list[Claim]:
    """The claims in one world; the truth is what all sentences of its population give."""
    warnings.simplefilter("ignore", CautionWarning)
    world = World(shown(about.kind, about.population, seed), noise=about.noise)
    rng = np.random.default_rng(seed)
    spread = 0.4 if about.likeness < 1 else 0.15
    systems = {
        name: np.stack(world.system(rng, one, 2, spread))
        for name, one in zip("ab", related_strengths(rng, about.likeness, len(world.codes)), strict=True)
    }
    truth = profiles_of(world.stimuli, systems, resamples=0)
    tau_truth = by_features(truth)
    sentence, coverage = world.sentence, Coverage()
    for _ in range(n_draws):
        drawn = rng.choice(about.population, about.n_sentences, replace=False)
        rows = np.isin(sentence, drawn)
        sample = {name: X[:, rows] for name, X in systems.items()}
        made = profiles_of(world.stimuli.subset(rows), sample, resamples=20)
        for one, true in zip(made, truth, strict=True):
            coverage.add("ρ", *one.score_range(), true.mean_scores)
            coverage.add("importances", *one.importance_range(), true.mean_importance)
            coverage.add("strengths", *one.strength_range(), true.mean_strengths)
            coverage.add("ranks of features", *one.rank_range(), ranks(true.mean_importance))
        found = by_features(made)
        assert found.low is not None
        assert found.high is not None
        cells = np.ix_([0, 1], [2, 3])
        coverage.add("τ_w of two layers", found.low[cells], found.high[cells], tau_truth.values[cells])
        block, true_block = found.block_test("a", "b"), tau_truth.block_test("a", "b")
        assert block is not None
        assert true_block is not None
        ends = np.array([block.low]), np.array([block.high])
        coverage.add("mean τ_w of two systems", *ends, np.array([true_block.mean]))
    value = tau_truth.block_mean("a", "b")
    name = f"{about.kind}, {about.n_sentences} sentences, true mean τ_w {value:.2f}"
    return [
        Claim(f"95 % range of {quantity}", name, 0.92, 0.98, float(np.mean(held)), n_draws)
        for quantity, held in coverage.held.items()
    ]


def ties(n_draws: int, seed: int) -> list[Claim]:
    """Three systems: two pairs as alike as each other are called a tie, a pair much more alike is found.

    The population is the first, from `seed` on, in which the two highest of the three true means are within
    0.01 of each other (more than 0.3 apart), and the third is 0.15 below.
    """
    warnings.simplefilter("ignore", CautionWarning)
    claims = []
    for equal in (True, False):
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
        claims.append(Claim(name, about, *goal, float(np.mean(found)), n_draws))
    return claims


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


def profiles_of(stimuli: Stimuli, systems: dict[str, Floats], *, resamples: int) -> list[Profile]:
    plan = plan_profiles(stimuli, resamples=resamples)
    return [
        profile(Activations.from_arrays(dict(enumerate(layers)), system=name), stimuli, plan=plan)
        for name, layers in systems.items()
    ]


def ranks(importance: Floats) -> Floats:
    """1 for the largest."""
    places: Floats = 1 + (importance[..., None, :] > importance[..., :, None]).sum(axis=-1)
    return places


SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "features-null": (null_of_tau, 400),
    "features-nothing": (nothing_matters, 200),
    "features-ties": (ties, 200),
    "features-ranges": (ranges, 300),
}
"""Name → the simulation, and the draws of a full run"""
