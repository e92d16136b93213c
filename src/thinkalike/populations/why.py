"""Why are models alike? MLEM one level up: items are models, features are facts about them.

The target is the squared distance between models, the features are whether or by how much two models differ
in a fact. `importance` is how much ρ falls when a fact is shuffled over pairs, `conditional` how much a fit
without it is worse: what it adds to the others. Both are of the models at hand. p comes from permuting models
(`inference.dyads`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.spatial.distance import squareform
from scipy.stats import false_discovery_control

from thinkalike.encoding.mlem import MLEM
from thinkalike.errors import InvalidInput
from thinkalike.inference.dyads import dyad_tests
from thinkalike.labels import Floats
from thinkalike.options import LARGEST_SEED, one_name, whole_number
from thinkalike.populations.between_models import Distances
from thinkalike.populations.fact_table import FactTable, fact_table, group_facts

SHUFFLES = 100
"""Of a fact over pairs, for its importance"""
FEWEST = 8
"""Models below which nothing is tested"""


@dataclass(frozen=True, eq=False, repr=False)
class Why:
    """Which facts go with how alike models are.

    Attributes
    ----------
    by : which distance was explained
    score : ρ between predicted and given distances, on the same models
    importance, conditional : (n_groups,) how much ρ falls without a group of facts
    partial, p, q : (n_groups,) partial correlation with the distances, its p by permuting models, and that
        corrected for the number of groups (Benjamini and Hochberg)
    left_out : fact → why it was not used
    """

    by: str
    n_models: int
    groups: Mapping[str, tuple[str, ...]]
    score: float
    importance: Floats = field()
    conditional: Floats = field()
    partial: Floats = field()
    p: Floats = field()
    q: Floats = field()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Why({self.by}: {self.n_models} models, {len(self.groups)} facts or groups of them)"

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False, float_format=lambda v: f"{v:.3f}", border=0)

    def to_frame(self) -> pd.DataFrame:
        """One row per group of facts, the most important first."""
        frame = pd.DataFrame(
            {
                "facts": list(self.groups),
                "importance": self.importance,
                "conditional": self.conditional,
                "partial": self.partial,
                "p": self.p,
                "q": self.q,
            }
        )
        return frame.sort_values("importance", ascending=False, ignore_index=True)


@one_name
def why(
    distances: Distances,
    facts: pd.DataFrame,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    n_permutations: int = 999,
    seed: int = 0,
) -> Why:
    """Explain distances between models by facts about them.

    Parameters
    ----------
    facts : one row per model, its index the names; facts that are not known of every model are left out.
    groups : name → facts that are asked about as one. When None, facts whose differences correlate above 0.8
        over pairs of models are one group: no regression tells them apart. {} for none.
    n_permutations : orders of the models; 0 for no test.
    """
    whole_number("n_permutations", n_permutations, 0)
    whole_number("seed", seed, 0, LARGEST_SEED)
    missing = [name for name in distances.names if name not in facts.index]
    if missing:
        raise InvalidInput(f"There are no facts about {missing[0]}: give a row for every model.")
    if len(distances.names) < FEWEST:
        raise InvalidInput(
            f"There are {len(distances.names)} models: to explain how alike they are takes {FEWEST} or more."
        )
    table = fact_table(facts.loc[list(distances.names)])
    named = group_facts(table, groups)
    values, target = distances.values, squareform(distances.values, checks=False) ** 2
    model = _fit(table, values)
    several = {name: list(own) for name, own in named.items() if len(own) > 1}
    found, alone = (
        model.importance(table.features, values, method=method, groups=several, n_permutations=SHUFFLES)[
            list(named)
        ].to_numpy()
        for method in ("permutation", "drop")
    )
    places = [[table.names.index(fact) for fact in own] for own in named.values()]
    tests = dyad_tests(target, table.columns, places, n_permutations=n_permutations, seed=seed)
    p = np.array([test.p if n_permutations else np.nan for test in tests])
    q = np.full(len(p), np.nan)
    q[np.isfinite(p)] = false_discovery_control(p[np.isfinite(p)])
    partial = np.array([test.partial for test in tests])
    score = float(model.score(table.features, values))
    return Why(
        distances.by, len(distances.names), named, score, found, alone, partial, p, q, dict(table.left_out)
    )


def _fit(table: FactTable, distances: Floats) -> MLEM:
    return MLEM(distance="precomputed", ordered="minmax").fit(table.features, distances)
