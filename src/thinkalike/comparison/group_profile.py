"""`profile_group`: what the regions of a group of subjects are organised by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from thinkalike import provenance
from thinkalike.activations.conversion import as_stimuli
from thinkalike.comparison.group import RANGES_OVER
from thinkalike.comparison.group_scoring import subjects_of
from thinkalike.comparison.profiling import plan_profiles, profile
from thinkalike.errors import InvalidInput
from thinkalike.inference.over_subjects import BOTH, Spread, spread_of_folds
from thinkalike.labels import Floats, Layer
from thinkalike.saving import KeptFolder
from thinkalike.stimuli.table import Stimuli
from thinkalike.types import Chart, Facts, Json
from thinkalike.wording import number, readable

MOST_REGIONS, MOST_FEATURES = 8, 8
"""Lines that are printed; all are in the tables"""


@dataclass(frozen=True, eq=False, repr=False)
class GroupProfile(KeptFolder):
    """Importances and ρ of every subject, and how far their means hold.

    Attributes
    ----------
    subjects, regions, features : names
    importance : (n_subjects, n_regions, n_features) means over folds
    scores : (n_subjects, n_regions) held-out ρ
    ceiling : (n_subjects, n_regions) the ρ that any features could reach, from halves of the units
    fold_importance, fold_scores : (n_folds, …) the same in each fold of the items, of which they are means
    n_items : how many items there are
    settings, versions : what changed the numbers, by name, and with which packages they were made

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from thinkalike.comparison import profile_group
    >>> rng = np.random.default_rng(0)
    >>> items = pd.DataFrame({"animal": rng.choice(["cat", "dog"], 40), "side": rng.choice(["l", "r"], 40)})
    >>> profile_group(rng.normal(size=(3, 40, 5)), items)
    GroupProfile(3 subjects, 1 regions, 2 features)
    """

    subjects: tuple[str, ...]
    regions: tuple[Layer, ...]
    features: tuple[str, ...]
    importance: Floats = field()
    scores: Floats = field()
    ceiling: Floats = field()
    fold_importance: Floats = field()
    fold_scores: Floats = field()
    n_items: int
    settings: Facts = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=provenance.versions)

    def __repr__(self) -> str:
        return (
            f"GroupProfile({len(self.subjects)} subjects, {len(self.regions)} regions, "
            f"{len(self.features)} features)"
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"What {len(self.subjects)} subjects are organised by, {self.n_items} items"
        over = self.widest
        table = self.table(over=over)
        for _, row in self.region_table(over=over)[:MOST_REGIONS].iterrows():
            ceiling = f", ceiling {number(row['ceiling'])}" if np.isfinite(row["ceiling"]) else ""
            yield f"  {row['region']}: ρ {_with_range(row, 'score')}{ceiling}"
            here = table[table["region"] == row["region"]].sort_values("importance", ascending=False)
            for _, one in here[:MOST_FEATURES].iterrows():
                yield f"    {readable(one['feature'])} {_with_range(one, 'importance')}"
            if len(here) > MOST_FEATURES:
                yield f"    … and {len(here) - MOST_FEATURES} more in table()"
        if len(self.regions) > MOST_REGIONS:
            yield f"  … and {len(self.regions) - MOST_REGIONS} more regions in table()"
        yield f"Means over subjects; ranges of 95 % over {RANGES_OVER[over]}."

    @property
    def widest(self) -> str:
        """What the widest ranges there are speak of: "both", or "subjects" if folds share their items."""
        return "subjects" if self.settings.get("folds_over") == "pairs" else BOTH

    def table(self, *, over: str = BOTH) -> pd.DataFrame:
        """A row per region and feature: the mean importance with its 95 % range.

        Parameters
        ----------
        over : {"both", "subjects", "items"}
            What the range is about: other subjects, other items, or both.
        """
        mean = self.importance.mean(axis=0)
        low, high = self._spread(self.fold_importance, over).range(mean)
        regions = np.repeat(np.array(self.regions, dtype=object), len(self.features))
        return pd.DataFrame(
            {
                "region": regions,
                "feature": list(self.features) * len(self.regions),
                "importance": mean.ravel(),
                "low": low.ravel(),
                "high": high.ravel(),
            }
        )

    def region_table(self, *, over: str = BOTH) -> pd.DataFrame:
        """A row per region: the mean held-out ρ with its 95 % range, and the mean ceiling."""
        mean = self.scores.mean(axis=0)
        low, high = self._spread(self.fold_scores, over).range(mean)
        ceiling = self.ceiling.mean(axis=0)
        columns = {"score": mean, "low": low, "high": high, "ceiling": ceiling}
        return pd.DataFrame({"region": np.array(self.regions, dtype=object), **columns})

    def _spread(self, folds: Floats, over: str) -> Spread:
        if over != "subjects" and self.settings.get("folds_over") == "pairs":
            raise InvalidInput(
                "Folds over pairs share their items, and say nothing of others: use over='subjects', or the "
                "default preset."
            )
        return spread_of_folds(folds, over=over)

    def to_frame(self) -> pd.DataFrame:
        """A row per subject, region and feature."""
        index = pd.MultiIndex.from_product(
            [self.subjects, self.regions, self.features], names=["subject", "region", "feature"]
        )
        return pd.DataFrame({"importance": self.importance.ravel()}, index=index).reset_index()

    def _tables(self) -> dict[str, pd.DataFrame]:
        return {"group": self.table(), "regions": self.region_table(), "subjects": self.to_frame()}

    def _about(self) -> Json:
        return {
            "subjects": self.subjects,
            "settings": dict(self.settings),
            "versions": dict(self.versions),
        }

    def plot(self, *, over: str = BOTH, theme: str = "light") -> Chart:
        """The mean importance of every feature with its range, one picture a region."""
        from thinkalike.charts.range_charts import range_figure

        data = self.table(over=over).rename(columns={"region": "panel", "importance": "value"})
        data = data.assign(name=data.pop("feature").map(readable), panel=data["panel"].map(str))
        title = f"{len(self.subjects)} subjects, ranges over {over}"
        return range_figure(data, label="importance", title=title, theme=theme)


def _with_range(row: pd.Series, name: str) -> str:
    return f"{number(row[name])} ({number(row['low'])} to {number(row['high'])})"


def profile_group(
    subjects: object, stimuli: Stimuli | pd.DataFrame, *, seed: int = 0, **settings: Any
) -> GroupProfile:
    """What regions of a group of subjects are organised by: importances with inference over subjects.

    Every subject is profiled by itself, as `profile` does; what is said of the group is the mean.

    Parameters
    ----------
    subjects : array (n_subjects, n_items, n_units), or a mapping or list of subjects, as in
        `compare_with_group`.
    stimuli : what the items were, with their features.
    seed : of folds and of the parts of the items that are left out.
    settings : of the encoding models, as in `profile`.

    Returns
    -------
    GroupProfile

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from thinkalike.comparison import profile_group
    >>> rng = np.random.default_rng(0)
    >>> items = pd.DataFrame({"animal": rng.choice(["cat", "dog"], 60), "side": rng.choice(["l", "r"], 60)})
    >>> cats = (items["animal"] == "cat").to_numpy()[:, None]
    >>> people = rng.normal(size=(5, 60, 8)) + 2 * cats
    >>> found = profile_group(people, items)
    >>> found.table().set_index("feature")["low"].gt(0).to_dict()
    {'animal': True, 'side': False}
    """
    shown = as_stimuli(stimuli)
    people = subjects_of(subjects, stimuli=shown)
    if len(people) < 2:
        raise InvalidInput("There is 1 subject, and how subjects differ cannot be said: use ta.profile.")
    plan = plan_profiles(shown, seed=seed, **settings)
    made = [profile(one, shown, plan=plan) for one in people]
    unknown = np.full(len(people[0].layers), np.nan)
    return GroupProfile(
        tuple(one.system for one in people),
        tuple(people[0].layers),
        made[0].features,
        np.stack([one.mean_importance for one in made]),
        np.stack([one.mean_scores for one in made]),
        np.stack([unknown if one.diagnostics is None else one.diagnostics.ceiling for one in made]),
        np.stack([one.importance.swapaxes(0, 1) for one in made], axis=1),
        np.stack([one.scores.T for one in made], axis=1),
        people[0].n_items,
        plan.settings,
    )
