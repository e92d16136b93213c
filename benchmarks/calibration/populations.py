"""Claims on populations: which facts go with how alike models are."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.spatial.distance import squareform

from benchmarks.calibration.claims import Claim, Simulation
from thinkalike.inference.dyads import dyad_tests
from thinkalike.populations.between_models import Distances
from thinkalike.populations.fact_table import fact_table
from thinkalike.populations.importance_distances import warped_matrix

LEVEL = (0.03, 0.07)
MODELS, FACTS, LAYERS, FEATURES = 60, 6, 6, 8


def planted_facts(rng: np.random.Generator, *, correlated: float = 0.0) -> pd.DataFrame:
    """Six facts of 60 models, three categories and three numbers; `correlated`: how much they share."""
    shared = rng.normal(size=(MODELS, 1))
    latent = np.sqrt(correlated) * shared + np.sqrt(1 - correlated) * rng.normal(size=(MODELS, FACTS))
    names = [f"model {k}" for k in range(MODELS)]
    categories = {f"category {k}": pd.qcut(latent[:, k], 3, labels=list("abc")) for k in range(3)}
    numbers = {f"number {k}": latent[:, 3 + k] for k in range(3)}
    return pd.DataFrame({**{k: np.asarray(v, dtype=object) for k, v in categories.items()}, **numbers}, names)


def planted_distances(rng: np.random.Generator, facts: pd.DataFrame, effect: float) -> Distances:
    """Warped distances of models whose importances follow category 0 and number 0 by `effect`.

    Every model also has importances of its own, in all of its layers alike.
    """
    towards = {level: rng.normal(size=FEATURES) for level in "abc"}
    slope = rng.normal(size=FEATURES)
    number = facts["number 0"].to_numpy(float)
    number = (number - number.mean()) / number.std()
    profiles = []
    for k, level in enumerate(facts["category 0"]):
        own = rng.normal(size=FEATURES)
        centre = effect * (towards[level] + slope * number[k]) + own
        profiles.append(centre + 0.3 * rng.normal(size=(LAYERS, FEATURES)))
    return Distances("warped", tuple(facts.index), warped_matrix(profiles))


def p_values(rng: np.random.Generator, *, effect: float, correlated: float) -> dict[str, float]:
    """Fact → p in one drawn world, as `why` gives it."""
    facts = planted_facts(rng, correlated=correlated)
    distances, table = planted_distances(rng, facts, effect), fact_table(facts)
    target, groups = squareform(distances.values) ** 2, [[k] for k in range(FACTS)]
    tests = dyad_tests(target, table.columns, groups, n_permutations=199)
    return {name: test.p for name, test in zip(table.names, tests, strict=True)}


def why_nothing(n: int, seed: int) -> list[Claim]:
    """No fact matters: the share of p ≤ 0.05, over all six facts."""
    found = []
    for correlated in (0.0, 0.5):
        rng = np.random.default_rng((seed, int(10 * correlated)))
        worlds = [p_values(rng, effect=0.0, correlated=correlated) for _ in range(n)]
        p = pd.DataFrame(worlds).to_numpy()
        world = "facts that have nothing to do with one another" if not correlated else "correlated facts"
        found.append(Claim("p ≤ 0.05, no fact matters", world, *LEVEL, float((p <= 0.05).mean()), n))
    return found


def why_two_of_six(n: int, seed: int) -> list[Claim]:
    """Two facts matter: how often they are found, and how often one of the four others is."""
    found = []
    for correlated in (0.0, 0.5):
        rng = np.random.default_rng((seed, 1 + int(10 * correlated)))
        p = pd.DataFrame([p_values(rng, effect=1.0, correlated=correlated) for _ in range(n)])
        planted = ["category 0", "number 0"]
        world = "facts that have nothing to do with one another" if not correlated else "correlated facts"
        hits = float((p[planted] <= 0.05).to_numpy().mean())
        others = float((p.drop(columns=planted) <= 0.05).to_numpy().mean())
        found += [
            Claim("p ≤ 0.05, the two facts that matter", world, 0.9, 1.0, hits, n),
            Claim("p ≤ 0.05, the four that do not", world, *LEVEL, others, n),
        ]
    return found


SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "why-nothing": (why_nothing, 500),
    "why-two-of-six": (why_two_of_six, 500),
}
