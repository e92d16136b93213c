"""How much the answer to *why* depends on choices: stimuli, distance, cohort and grouping, in one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from thinkalike.errors import InvalidInput
from thinkalike.populations.between_models import Distances
from thinkalike.populations.fact_table import fact_table, group_facts
from thinkalike.populations.why import FEWEST, Groups, why
from thinkalike.saving import Kept
from thinkalike.types import Chart

LOOSER = 0.5
"""Facts that correlate so much are one group in the coarser of the groupings"""
LEVEL = 0.05


class WhyAnalysis(NamedTuple):
    """One way to ask why.

    Attributes
    ----------
    choice
        What is chosen otherwise: "main", "stimuli", "distance", "cohort" or "grouping".
    name
        Such as "without pythia".
    """

    choice: str
    name: str
    distances: Distances
    groups: Groups | None = None


@dataclass(frozen=True, eq=False, repr=False)
class WhySensitivity(Kept):
    """The answers of many analyses; made by `Atlas.sensitivity`.

    Attributes
    ----------
    rows : DataFrame, one row per analysis and fact: `choice`, `analysis`, `models`, `fact`, the `group` that
        it stands in there, its `importance` and `rank` among the groups, `share`, `p` and `q`

    Examples
    --------
    >>> import thinkalike as ta
    >>> found = ta.Atlas().sensitivity(n_permutations=9)
    >>> sorted(set(found.rows["choice"]))
    ['cohort', 'distance', 'grouping', 'main', 'stimuli']
    """

    rows: pd.DataFrame = field()

    def __repr__(self) -> str:
        return f"WhySensitivity({self.rows['analysis'].nunique()} analyses)"

    def to_frame(self) -> pd.DataFrame:
        """One row per fact: its importance over all analyses, and in how many it leads and is found."""
        rows = self.rows.assign(
            leads=self.rows["rank"] == 1, found=(self.rows["q"] <= LEVEL).where(self.rows["q"].notna())
        )
        by_fact = rows.groupby("fact", sort=False)
        main = self.rows[self.rows["choice"] == "main"].set_index("fact")["importance"]
        frame = pd.DataFrame(
            {
                "main": main.reindex(list(by_fact.groups)),
                "least": by_fact["importance"].min(),
                "most": by_fact["importance"].max(),
                "analyses": by_fact.size(),
                "leads": by_fact["leads"].sum(),
                "tested": by_fact["found"].count(),
                "found": by_fact["found"].sum().astype(int),
            }
        )
        return frame.sort_values("main", ascending=False).rename_axis("fact").reset_index()

    def table(self, column: str = "importance") -> pd.DataFrame:
        """Facts × analyses."""
        order = list(dict.fromkeys(self.rows["analysis"]))
        frame: pd.DataFrame = self.rows.pivot_table(index="fact", columns="analysis", values=column)
        return frame[order]

    def plot(self, *, theme: str = "light") -> Chart:
        """The importance of every fact in all analyses, by what was chosen otherwise in them."""
        from thinkalike.populations.charts import sensitivity_chart

        return sensitivity_chart(self, theme=theme)

    def leaders(self) -> pd.DataFrame:
        """One row per analysis: the group of facts that leads, and whether it is that of the main one."""
        first = self.rows[self.rows["rank"] == 1].groupby(["choice", "analysis"], sort=False)
        frame = first.agg(models=("models", "first"), leader=("group", "first"), facts=("fact", frozenset))
        main = frame["facts"].iloc[0]
        frame["same"] = [bool(main & facts) for facts in frame["facts"]]
        return frame.drop(columns="facts").reset_index()


def why_sensitivity(
    analyses: Iterable[WhyAnalysis], facts: pd.DataFrame, *, n_permutations: int = 199, seed: int = 0
) -> WhySensitivity:
    """Ask why in every analysis, the main one first."""
    frames = []
    for one in analyses:
        found = why(
            one.distances, facts, groups=one.groups, n_permutations=n_permutations, ranges=False, seed=seed
        )
        rank = np.argsort(np.argsort(-found.importance, kind="stable"), kind="stable") + 1
        frames += [
            {
                "choice": one.choice,
                "analysis": one.name,
                "models": found.n_models,
                "fact": fact,
                "group": group,
                "importance": found.importance[k],
                "rank": int(rank[k]),
                "share": found.share[k],
                "p": found.p[k],
                "q": found.q[k],
            }
            for k, (group, own) in enumerate(found.groups.items())
            for fact in own
        ]
    return WhySensitivity(pd.DataFrame(frames))


def other_groupings(
    distances: Distances, facts: pd.DataFrame, groups: Groups | None
) -> Iterator[WhyAnalysis]:
    """Every fact by itself, and facts that go together less closely as one; what is the same is left out."""
    table = fact_table(facts.loc[list(distances.names)])
    own = set(group_facts(table, groups).values())
    several = {
        "facts one by one": dict[str, tuple[str, ...]](),
        "facts that correlate at 0.8": group_facts(table),
        f"facts that correlate at {LOOSER}": group_facts(table, together=LOOSER),
    }
    seen = [own]
    for name, given in several.items():
        made = set(group_facts(table, given).values())
        if made not in seen:
            seen.append(made)
            yield WhyAnalysis("grouping", name, distances, given)


def other_cohorts(
    distances: Distances, facts: pd.DataFrame, fact: str, groups: Groups | None
) -> Iterator[WhyAnalysis]:
    """Without the models of each level of `fact` in turn."""
    cohorts = facts.loc[list(distances.names), fact].astype(str)
    for level in dict.fromkeys(cohorts):
        kept = list(cohorts.index[cohorts != level])
        if FEWEST <= len(kept) < len(distances.names):
            yield WhyAnalysis(
                "cohort", f"without {level}", distances.among(kept), _still(groups, facts.loc[kept])
            )


def _still(groups: Groups | None, facts: pd.DataFrame) -> Groups | None:
    """The groups less the facts that no longer differ."""
    if not groups:
        return groups
    names = fact_table(facts).names
    left = {group: [fact for fact in own if fact in names] for group, own in groups.items()}
    return {group: own for group, own in left.items() if own}


def cohort_fact(facts: pd.DataFrame, asked: str | None) -> str | None:
    """The fact whose levels are cohorts: the one that was asked for, or family, or architecture."""
    if asked is not None and asked not in facts:
        raise InvalidInput(
            f"There is no fact {asked!r} to make cohorts by: known are {', '.join(map(str, facts))}."
        )
    return asked or next((name for name in ("family", "architecture") if name in facts), None)
