"""From what all models show on one set of sentences to distances, reasons, and the effects of the claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.spatial.distance import squareform
from scipy.stats import spearmanr

from thinkalike.encoding.mlem import MLEM
from thinkalike.labels import Floats
from thinkalike.populations.between_models import Distances, one_less_mean_tau, warped_matrix
from thinkalike.populations.fact_table import fact_table
from thinkalike.populations.why import Why, why
from thinkalike.populations.why_sensitivity import other_cohorts, other_groupings
from thinkalike.recipes.salle2026.work import GROUPS, Observation

Effects = dict[str, float]
SHUFFLED = 20
"""Orders of the models that facts explain by chance"""


@dataclass(frozen=True, eq=False)
class Seen:
    """One set of sentences with the facts about the models.

    Attributes
    ----------
    elsewhere
        The same models on a set of other sentences.
    """

    observation: Observation
    facts: pd.DataFrame
    permutations: int = 499
    elsewhere: Seen | None = None

    @cached_property
    def folds(self) -> list[Floats]:
        """Warped distances of raw importances in every fold, as in the third version."""
        importance = self.observation.importance
        return [warped_matrix([one[:, k] for one in importance]) for k in range(importance[0].shape[1])]

    @cached_property
    def warped(self) -> Distances:
        return Distances("warped", self.observation.models, np.mean(self.folds, axis=0))

    @cached_property
    def taus(self) -> Distances:
        means = [one.mean(axis=1) for one in self.observation.importance]
        return Distances("features", self.observation.models, one_less_mean_tau(means))

    @cached_property
    def geometry(self) -> Distances:
        ranks = self.observation.geometry
        unit = ranks / np.linalg.norm(ranks, axis=1, keepdims=True)
        rho = np.clip((unit @ unit.T).astype(np.float64), -1, 1)
        np.fill_diagonal(rho, 1.0)
        return Distances("rsa", self.observation.models, np.sqrt(2 * (1 - rho)))

    @cached_property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """The groups of facts, as far as they differ among these models."""
        return groups_among(self.facts.loc[list(self.observation.models)])

    @cached_property
    def why(self) -> Why:
        return why(
            self.warped, self.facts, groups=self.groups, n_permutations=self.permutations, ranges=False
        )

    @property
    def importance(self) -> Effects:
        """Group of facts → how much ρ falls without it."""
        return dict(zip(self.why.groups, map(float, self.why.importance), strict=True))

    @property
    def leader(self) -> str:
        return leader_of(self.why)


def groups_among(facts: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """`GROUPS` less the facts that are the same in all models."""
    names = fact_table(facts).names
    found = {group: tuple(fact for fact in own if fact in names) for group, own in GROUPS.items()}
    return {group: own for group, own in found.items() if own}


def leader_of(found: Why) -> str:
    return list(found.groups)[int(np.argmax(found.importance))]


def _ahead(seen: Seen, own: str, *aside: str) -> Effects:
    """How much more important one group is than all the others but those `aside`."""
    found = seen.importance
    others = [value for name, value in found.items() if name not in (own, *aside)]
    return {"": found[own] - max(others)} if own in found and others else {}


def date(seen: Seen) -> Effects:
    return _ahead(seen, "date")


def family(seen: Seen) -> Effects:
    return _ahead(seen, "family", "date")


def development(seen: Seen) -> Effects:
    return {} if "date" in seen.importance else _ahead(seen, "training")


def _less_family(seen: Seen, group: str) -> Effects:
    found = seen.importance
    return {"": found[group] - found["family"]} if {group, "family"} <= set(found) else {}


def scale(seen: Seen) -> Effects:
    return _less_family(seen, "size")


def kind(seen: Seen) -> Effects:
    return _less_family(seen, "class")


def families_apart(seen: Seen) -> Effects:
    if "family" not in seen.facts:
        return {}
    families = seen.facts.loc[list(seen.warped.names), "family"].to_numpy()
    first, second = np.triu_indices(len(families), k=1)
    values, same = seen.warped.values[first, second], families[first] == families[second]
    if same.all() or not same.any():
        return {}
    return {"": float((values[~same].mean() - values[same].mean()) / values.mean())}


def explained(seen: Seen) -> Effects:
    """ρ less what the facts of other models would reach."""
    table = fact_table(seen.facts.loc[list(seen.warped.names)])
    rng = np.random.default_rng(0)
    by_chance = []
    for _ in range(SHUFFLED):
        order = rng.permutation(len(table.features))
        moved = seen.warped.values[np.ix_(order, order)]
        model = MLEM(distance="precomputed", ordered="minmax").fit(table.features, moved)
        by_chance.append(float(model.score(table.features, moved)))
    return {"": seen.why.score - float(np.mean(by_chance))}


def by_chance(seen: Seen) -> Effects:
    names = list(seen.why.groups)
    return {"": float(seen.why.alone[names.index("family")])} if "family" in names else {}


def agreement(one: Distances, other: Distances) -> float:
    """Spearman's ρ over pairs of models."""
    first, second = (squareform(values, checks=False) for values in (one.values, other.values))
    return float(spearmanr(first, second).statistic)


def geometry(seen: Seen) -> Effects:
    return {"": agreement(seen.warped, seen.geometry)}


def distance(seen: Seen) -> Effects:
    return {"": agreement(seen.warped, seen.taus)}


def stimuli(seen: Seen) -> Effects:
    return {} if seen.elsewhere is None else {"": float(seen.elsewhere.leader == seen.leader)}


def cohort(seen: Seen) -> Effects:
    if "family" not in seen.facts:
        return {}
    analyses = list(other_cohorts(seen.warped, seen.facts, "family", seen.groups))
    return _same_leader(seen, [(one.distances, one.groups) for one in analyses])


def grouping(seen: Seen) -> Effects:
    analyses = list(other_groupings(seen.warped, seen.facts, seen.groups))
    return _same_leader(seen, [(one.distances, one.groups) for one in analyses])


def _same_leader(
    seen: Seen, analyses: Sequence[tuple[Distances, Mapping[str, Sequence[str]] | None]]
) -> Effects:
    """The share of analyses whose leading group has a fact of the one that leads here."""
    own = set(seen.why.groups[seen.leader])
    same = []
    for distances, groups in analyses:
        found = why(distances, seen.facts, groups=groups, n_permutations=0, ranges=False)
        same.append(bool(own & set(found.groups[leader_of(found)])))
    return {"": float(np.mean(same))} if same else {}


MEASURES: dict[str, Callable[[Seen], Effects]] = {
    "date": date,
    "family": family,
    "scale": scale,
    "class": kind,
    "families apart": families_apart,
    "development": development,
    "explained": explained,
    "by chance": by_chance,
    "geometry": geometry,
    "distance": distance,
    "stimuli": stimuli,
    "cohort": cohort,
    "grouping": grouping,
}
"""Name of a rule → its effects on one set of sentences"""
