"""Why are models alike? MLEM one level up: items are models, features are facts about them.

The target is the squared distance between models, the features are whether or by how much two models differ
in a fact. `importance` is how much ρ falls when a fact is shuffled over pairs, `conditional` how much a fit
without it is worse: what it adds to the others. Ranges leave models out, part by part.
p comes from permuting models and asks for places rather than for distances (`inference.redundancy`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.spatial.distance import squareform

from thinkalike.encoding.mlem import MLEM
from thinkalike.errors import InvalidInput
from thinkalike.inference.ranges import jackknife_range, leave_parts_out
from thinkalike.inference.redundancy import place_tests
from thinkalike.labels import Floats
from thinkalike.many_tests import corrected
from thinkalike.options import LARGEST_SEED, MOST_PERMUTATIONS, one_name, whole_number
from thinkalike.populations.between_models import Distances
from thinkalike.populations.fact_table import FactTable, fact_table, group_facts
from thinkalike.saving import Kept
from thinkalike.types import Chart

SHUFFLES = 100
"""Of a fact over pairs, for its importance"""
FEWEST = 8
"""Models below which nothing is tested"""
PARTS = 10
"""Parts of the models that are left out in turn, for ranges"""

Groups = Mapping[str, Sequence[str]]


@dataclass(frozen=True, eq=False, repr=False)
class Why(Kept):
    """Which facts go with how alike models are.

    Attributes
    ----------
    by : which distance was explained
    score : ρ between predicted and given distances, on the same models
    importance, conditional : (n_groups,) how much ρ falls without a group of facts
    low, high : (n_groups,) the 95 % range of `importance` over other models; NaN if none was asked for, and
        where the importance is exactly 0
    share : (n_groups,) of what the other facts leave of the distances, the part that a group explains
    p, q : (n_groups,) of `share`, by permuting models; q is corrected for the number of groups (Benjamini and
        Hochberg). NaN where a group cannot be told apart from the others among so few models
    alone, q_alone : (n_groups,) p and q of a group as if there were no other facts
    left_out : fact → why it was not used
    """

    by: str
    n_models: int
    groups: Mapping[str, tuple[str, ...]]
    score: float
    importance: Floats = field()
    conditional: Floats = field()
    low: Floats = field()
    high: Floats = field()
    share: Floats = field()
    p: Floats = field()
    q: Floats = field()
    alone: Floats = field()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Why({self.by}: {self.n_models} models, {len(self.groups)} facts or groups of them)"

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False, float_format=lambda v: f"{v:.3f}", border=0)

    @property
    def q_alone(self) -> Floats:
        return corrected(self.alone)

    def to_frame(self) -> pd.DataFrame:
        """One row per group of facts, the most important first; its tests are corrected for their number."""
        columns = ("importance", "low", "high", "conditional", "share", "q", "q_alone")
        frame = pd.DataFrame({"facts": list(self.groups), **{name: getattr(self, name) for name in columns}})
        return frame.sort_values("importance", ascending=False, ignore_index=True)

    def plot(self, *, theme: str = "light") -> Chart:
        """Importances of facts with their ranges over other models."""
        from thinkalike.populations.charts import why_chart

        return why_chart(self, theme=theme)


@one_name
def why(
    distances: Distances,
    facts: pd.DataFrame,
    *,
    groups: Groups | None = None,
    n_permutations: int = 999,
    ranges: bool = True,
    seed: int = 0,
) -> Why:
    """Explain distances between models by facts about them.

    Parameters
    ----------
    facts : one row per model, its index the names; facts that are not known of every model are left out.
    groups : name → facts that are asked about as one. When None, facts whose differences correlate above 0.8
        over pairs of models are one group: no regression tells them apart. {} for none.
    n_permutations : orders of the models; 0 for no test.
    ranges : whether to look how importances move when models are left out.
    """
    whole_number("n_permutations", n_permutations, 0, MOST_PERMUTATIONS)
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
    values = distances.values
    model = _fit(table.features, values)
    nothing = np.full(len(named), np.nan)
    found = _importance(model, table.features, values, named)
    ends = _range(found, table, values, named, seed) if ranges else (nothing, nothing)
    columns = [np.column_stack([_column(table, fact) for fact in own]) for own in named.values()]
    target = squareform(values, checks=False)
    given, alone = (
        place_tests(target, columns, alone=marginal, n_permutations=n_permutations, seed=seed)
        for marginal in (False, True)
    )
    p = np.array([test.p for test in given])
    return Why(
        by=distances.by,
        n_models=len(distances.names),
        groups=named,
        score=float(model.score(table.features, values)),
        importance=found,
        conditional=_importance(model, table.features, values, named, method="drop"),
        low=ends[0],
        high=ends[1],
        share=np.array([test.share for test in given]),
        p=p,
        q=corrected(p),
        alone=np.array([test.p for test in alone]),
        left_out=dict(table.left_out),
    )


def _fit(features: pd.DataFrame, distances: Floats) -> MLEM:
    return MLEM(distance="precomputed", ordered="minmax").fit(features, distances)


def _importance(
    model: MLEM,
    features: pd.DataFrame,
    distances: Floats,
    groups: Mapping[str, Sequence[str]],
    method: str = "permutation",
) -> Floats:
    several = {name: list(own) for name, own in groups.items() if list(own) != [name]}
    found = model.importance(features, distances, method=method, groups=several, n_permutations=SHUFFLES)
    values: Floats = found[list(groups)].to_numpy()
    return values


def _range(
    found: Floats, table: FactTable, distances: Floats, groups: Mapping[str, Sequence[str]], seed: int
) -> tuple[Floats, Floats]:
    """The ends of the range of importances, from leaving models out.

    Weights are not negative, and where one is 0 the importance is exactly 0 with and without most models:
    such a range would have no width, so there is none.
    """
    without = []
    for kept in leave_parts_out(None, len(distances), parts=PARTS, seed=seed):
        features = table.features.iloc[kept]
        features = features.loc[:, [len(features[name].unique()) > 1 for name in features]]
        own = {name: [f for f in facts if f in features] for name, facts in groups.items()}
        own = {name: facts for name, facts in own.items() if facts}
        some = distances[np.ix_(kept, kept)]
        values = _importance(_fit(features, some), features, some, own)
        by_name = dict(zip(own, values, strict=True))
        without.append([by_name.get(name, 0.0) for name in groups])
    low, high, _ = jackknife_range(found, np.array(without))
    return np.where(found == 0, np.nan, low), np.where(found == 0, np.nan, high)


def _column(table: FactTable, fact: str) -> Floats:
    return table.places[table.names.index(fact)]
