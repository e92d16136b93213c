"""Claims on populations: which facts go with how alike models are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.spatial.distance import squareform

from benchmarks.calibration.claims import Claim, Simulation
from thinkalike.inference.redundancy import place_tests
from thinkalike.populations.between_models import Distances, warped_matrix
from thinkalike.populations.fact_table import fact_table
from thinkalike.populations.why import Why, why

LEVEL = (0.03, 0.07)
FACTS, FEATURES = 6, 8
PLANTED = ["category 0", "number 0"]


@dataclass(frozen=True)
class Population:
    """A world of models: what their importances follow, and how.

    Attributes
    ----------
    correlated
        The share of its variance that each fact has in common with the others.
    effect
        How far category 0 and number 0 move a model, in units of what models have for themselves.
    curved
        Whether number 0 moves models along a bent line.
    skewed
        Whether importances are as uneven as real ones: exponentials of what the facts move.
    depths
        Whether models have 3 to 12 layers instead of six.
    heavy
        Whether some models are far off by themselves (Student's t with 4 degrees of freedom).
    """

    about: str
    correlated: float = 0.0
    effect: float = 1.0
    models: int = 60
    curved: bool = False
    skewed: bool = False
    depths: bool = False
    heavy: bool = False

    def facts(self, rng: np.random.Generator, n: int | None = None) -> pd.DataFrame:
        """Six facts, three categories and three numbers."""
        n = n or self.models
        shared = rng.normal(size=(n, 1))
        own = rng.normal(size=(n, FACTS))
        latent = np.sqrt(self.correlated) * shared + np.sqrt(1 - self.correlated) * own
        categories = {f"category {k}": pd.qcut(latent[:, k], 3, labels=list("abc")) for k in range(3)}
        numbers = {f"number {k}": latent[:, 3 + k] for k in range(3)}
        levels = {k: np.asarray(v, dtype=object) for k, v in categories.items()}
        return pd.DataFrame({**levels, **numbers}, [f"model {k}" for k in range(n)])

    def directions(self, rng: np.random.Generator) -> np.ndarray:
        """(5, n_features): where the three levels, the number and its square move a model."""
        return rng.normal(size=(5, FEATURES))

    def distances(self, rng: np.random.Generator, facts: pd.DataFrame, towards: np.ndarray) -> Distances:
        """Warped distances of models whose importances follow category 0 and number 0.

        Every model also has importances of its own, in all of its layers alike.
        """
        number = facts["number 0"].to_numpy(float)
        number = (number - number.mean()) / number.std()
        profiles = []
        for x, level in zip(number, facts["category 0"], strict=True):
            moved = towards["abc".index(level)] + x * towards[3] + (0.5 * x**2 * towards[4] * self.curved)
            own = rng.standard_t(4, size=FEATURES) if self.heavy else rng.normal(size=FEATURES)
            layers = int(rng.integers(3, 13)) if self.depths else 6
            profile = self.effect * moved + own + 0.3 * rng.normal(size=(layers, FEATURES))
            profiles.append(np.exp(0.5 * profile) if self.skewed else profile)
        return Distances("warped", tuple(facts.index), warped_matrix(profiles))

    def drawn(self, rng: np.random.Generator) -> tuple[Distances, pd.DataFrame]:
        facts = self.facts(rng)
        return self.distances(rng, facts, self.directions(rng)), facts


WORLDS = (
    Population("60 models, facts that have nothing to do with one another"),
    Population("60 models, facts that share half of their variance", 0.5),
    Population("60 models, facts that share 70 % of their variance", 0.7),
    Population("the same, half shared, along a bent line", 0.5, curved=True),
    Population("the same, half shared, importances as uneven as real ones", 0.5, skewed=True),
    Population("the same, half shared, 3 to 12 layers", 0.5, depths=True),
    Population("30 models, half shared, some far off by themselves", 0.5, models=30, heavy=True),
)


def p_values(distances: Distances, facts: pd.DataFrame) -> dict[str, float]:
    """Fact → p, as `why` gives it for facts one by one."""
    table = fact_table(facts)
    tests = place_tests(squareform(distances.values, checks=False), table.places, n_permutations=199)
    return {name: test.p for name, test in zip(table.names, tests, strict=True)}


def why_nothing(n: int, seed: int) -> list[Claim]:
    """No fact matters: the share of p ≤ 0.05, over all six facts."""
    found = []
    for k, world in enumerate(WORLDS):
        rng = np.random.default_rng((seed, 21, k))
        idle = replace(world, effect=0.0)
        p = pd.DataFrame([p_values(*idle.drawn(rng)) for _ in range(n)])
        share = float((p <= 0.05).to_numpy().mean())
        found.append(Claim("p ≤ 0.05, no fact matters", world.about, *LEVEL, share, n))
    return found


def why_far_scattered(n: int, seed: int) -> list[Claim]:
    """Two of ten models have another level of one fact and scatter five times as far around one centre."""
    rng, p = np.random.default_rng((seed, 23)), []
    for _ in range(n):
        names = [f"model {k}" for k in range(10)]
        odd = pd.Series(["usual"] * 8 + ["odd"] * 2, names)
        facts = pd.DataFrame({"kind": odd, "size": 10 ** rng.uniform(7, 10, 10), "year": rng.permutation(10)})
        facts.index = pd.Index(names)
        places = rng.normal(size=(10, 6)) * np.where(odd == "odd", 5.0, 1.0)[:, None]
        distances = np.linalg.norm(places[:, None] - places, axis=-1)
        p.append(p_values(Distances("warped", tuple(names), distances), facts)["kind"])
    world = "ten models, two of another kind that scatter five times as far"
    share = float((np.array(p) <= 0.05).mean())
    return [Claim("p ≤ 0.05, a fact that only goes with scatter", world, *LEVEL, share, n)]


def why_two_of_six(n: int, seed: int) -> list[Claim]:
    """Two facts matter: how often they are found, and how often one of the four others is."""
    found = []
    for k, world in enumerate(WORLDS):
        rng = np.random.default_rng((seed, 22, k))
        p = pd.DataFrame([p_values(*world.drawn(rng)) for _ in range(n)])
        hits = float((p[PLANTED] <= 0.05).to_numpy().mean())
        others = float((p.drop(columns=PLANTED) <= 0.05).to_numpy().mean())
        found += [
            Claim("p ≤ 0.05, the two facts that matter", world.about, 0.9, 1.0, hits, n),
            Claim("p ≤ 0.05, the four that do not", world.about, *LEVEL, others, n),
        ]
    return found


def why_ranges(n: int, seed: int) -> list[Claim]:
    """How often the range of an importance holds that of five times as many models of the same world.

    A world is drawn anew for every ten populations. Importances of exactly 0 have no range.
    """
    world, held = WORLDS[1], []
    for k in range(-(-n // 10)):
        rng = np.random.default_rng((seed, 24, 1, k))
        towards, many = world.directions(rng), world.facts(rng, 5 * world.models)
        truth = importances(world.distances(rng, many, towards), many, ranges=False).importance
        for _ in range(10):
            some = world.facts(rng)
            drawn = importances(world.distances(rng, some, towards), some)
            inside = (drawn.low <= truth) & (truth <= drawn.high)
            held.append(np.where(np.isfinite(drawn.low), inside, np.nan))
    share = pd.DataFrame(held, columns=list(many))
    others = share.drop(columns=PLANTED).to_numpy()
    return [
        Claim(
            f"95 % range of an importance, facts {about}",
            world.about,
            0.92,
            0.98,
            float(np.nanmean(values)),
            n,
        )
        for about, values in (("that matter", share[PLANTED].to_numpy()), ("that do not", others))
    ]


def importances(distances: Distances, facts: pd.DataFrame, *, ranges: bool = True) -> Why:
    return why(distances, facts, groups={}, n_permutations=0, ranges=ranges)


SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "why-nothing": (why_nothing, 500),
    "why-far-scattered": (why_far_scattered, 400),
    "why-two-of-six": (why_two_of_six, 500),
    "why-ranges": (why_ranges, 60),
}
