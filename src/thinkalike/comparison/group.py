"""`GroupComparison`: models beside a group of subjects, with what other subjects and items would say."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t as student

from thinkalike.addresses import place
from thinkalike.errors import InvalidInput
from thinkalike.files import write_json, write_tables
from thinkalike.inference.over_subjects import (
    BOTH,
    Cluster,
    check_over,
    cluster_test,
    p_over_subjects,
    spread,
)
from thinkalike.labels import Floats, Layer, Row, find_row, row_name
from thinkalike.provenance import versions
from thinkalike.saving import RESULT, Kept, read_result, write_result
from thinkalike.types import Chart, Facts


@dataclass(frozen=True, eq=False, repr=False)
class GroupComparison(Kept):
    """Scores of every subject with every layer of the models, and what they are worth.

    Attributes
    ----------
    measure : its name
    subjects : names of the subjects
    regions : names of the layers of the subjects: areas, or points in time
    rows : (system, layer) of the models
    scores : (n_subjects, n_regions, n_rows)
    ceiling_lower, ceiling_upper : (n_regions,) means over subjects; NaN where the measure has none
    p_items : (n_regions, n_rows) from other orders of the models' items, or of their features for "features"
    without : (n_left_out, n_subjects, n_regions, n_rows) the scores without parts of the items; optional
    parts : how many parts the items were dealt into
    least_p : (n_regions, n_rows) the smallest p that other orders of the items can give; optional. Large
        for few items, and for models that take many items for one
    threshold : (n_regions, n_rows) the mean score that 95 % of the orders stay below; optional
    n_items : how many items there are
    settings : what changed the numbers, by name

    Examples
    --------
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> rng = np.random.default_rng(0)
    >>> shared = rng.normal(size=(20, 3))
    >>> people = shared @ rng.normal(size=(6, 3, 9)) + rng.normal(size=(6, 20, 9))
    >>> found = ta.compare_with_group(people, {"one": shared, "two": rng.normal(size=(20, 3))})
    >>> found
    GroupComparison(rsa: 6 subjects, 1 regions, 2 layers of models)
    >>> bool(found.difference(("one", "one"), ("two", "two"))["low"][0] > 0)
    True
    """

    measure: str
    subjects: tuple[str, ...]
    regions: tuple[Layer, ...]
    rows: tuple[Row, ...]
    scores: Floats = field()
    ceiling_lower: Floats = field()
    ceiling_upper: Floats = field()
    p_items: Floats = field()
    without: Floats | None = field(default=None)
    parts: int | None = None
    least_p: Floats | None = field(default=None)
    threshold: Floats | None = field(default=None)
    n_items: int | None = None
    settings: Facts = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"GroupComparison({self.measure}: {len(self.subjects)} subjects, {len(self.regions)} regions, "
            f"{len(self.rows)} layers of models)"
        )

    def plot(self, *, over: str = BOTH, theme: str = "light") -> Chart:
        """The mean score of every layer with its range and, as a tick, the lower ceiling of the region."""
        from thinkalike.charts.range_charts import ranges
        from thinkalike.charts.theme import get_theme, themed

        data = self.table(over=over).rename(
            columns={"model": "name", "region": "panel", "score": "value", "ceiling_lower": "tick"}
        )
        data["panel"] = data["panel"].map(str)
        title = f"{len(self.subjects)} subjects, ranges over {over}"
        kept = data[["name", "panel", "value", "low", "high", "tick"]]
        return themed(ranges(kept, label=self.measure, title=title, theme=get_theme(theme)), get_theme(theme))

    def table(self, *, over: str = BOTH) -> pd.DataFrame:
        """A row per region and layer: the mean score with its range, ceilings, and p over both and each.

        Parameters
        ----------
        over : {"both", "subjects", "items"}
            What the 95 % range is about: other subjects, other items, or both.
        """
        check_over(over)
        mean = self.scores.mean(axis=0)
        low = high = np.full_like(mean, np.nan)
        if over == "subjects" or self.without is not None:
            low, high = spread(self.scores, self.without, over=over, parts=self.parts).range(mean)
        p_subjects = p_over_subjects(self.scores) if len(self.subjects) > 1 else np.full_like(mean, np.nan)
        upper = self.ceiling_upper[:, None] + np.zeros_like(mean)
        lower = self.ceiling_lower[:, None] + np.zeros_like(mean)
        columns = {
            "region": np.repeat(np.array(self.regions, dtype=object), len(self.rows)),
            "model": [row_name(row) for row in self.rows] * len(self.regions),
            "score": mean.ravel(),
            "low": low.ravel(),
            "high": high.ravel(),
            "ceiling_lower": lower.ravel(),
            "ceiling_upper": upper.ravel(),
            "p_subjects": p_subjects.ravel(),
            "p_items": self.p_items.ravel(),
            "p_both": np.maximum(p_subjects, self.p_items).ravel(),
        }
        return pd.DataFrame(columns)

    def to_frame(self) -> pd.DataFrame:
        """A row per subject, region and layer."""
        index = pd.MultiIndex.from_product(
            [self.subjects, self.regions, [row_name(row) for row in self.rows]],
            names=["subject", "region", "model"],
        )
        return pd.DataFrame({"score": self.scores.ravel()}, index=index).reset_index()

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write group (the table), subjects (all scores), settings.json and all of it into `folder`."""
        folder = place(folder)
        tables = {"group": self.table(), "subjects": self.to_frame()}
        if self.threshold is not None:
            tables["limits"] = self.limits()
        about = {
            "tables": {name: write_tables(table, folder / name) for name, table in tables.items()},
            "measure": self.measure,
            "subjects": self.subjects,
            "regions": self.regions,
            "rows": self.rows,
            "settings": dict(self.settings),
            "versions": versions(),
            "result": write_result(self, folder / RESULT),
        }
        write_json(about, folder / "settings.json")
        return folder

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> GroupComparison:
        """What `save` wrote."""
        return read_result(cls, place(folder) / RESULT)

    def difference(self, first: Row, second: Row, *, over: str = BOTH) -> pd.DataFrame:
        """By how much the first of two layers of models scores higher: mean, range, and p (two-sided).

        The same subjects and items are in both, so that what they share cancels.
        """
        a, b = find_row(self.rows, *first), find_row(self.rows, *second)
        apart = self.scores[..., a] - self.scores[..., b]
        without = None if self.without is None else self.without[..., a] - self.without[..., b]
        found, mean = spread(apart, without, over=over, parts=self.parts), apart.mean(axis=0)
        low, high = found.range(mean)
        p = 2 * student.sf(np.abs(mean) / np.maximum(found.error, 1e-300), found.freedom)
        return pd.DataFrame(
            {"region": list(self.regions), "difference": mean, "low": low, "high": high, "p": p}
        )

    def limits(self) -> pd.DataFrame:
        """A row per region and layer: what so few items can show, and how many would show the score found.

        `threshold` is the mean score from which p over items is 0.05 or less. By chance RSA and CKA vary as
        one over the number of items, so that a score s would reach it with about n · threshold / s items
        (`items_needed`; infinite if s is not above 0).
        """
        if self.threshold is None or self.n_items is None or self.least_p is None:
            raise InvalidInput(f"{self.measure} is not held against other orders of the items: no limits.")
        mean = self.scores.mean(axis=0)
        ratio = np.divide(self.threshold, mean, out=np.full_like(mean, np.inf), where=mean > 0)
        return pd.DataFrame(
            {
                "region": np.repeat(np.array(self.regions, dtype=object), len(self.rows)),
                "model": [row_name(row) for row in self.rows] * len(self.regions),
                "items": self.n_items,
                "pairs": self.n_items * (self.n_items - 1) // 2,
                "least_p": self.least_p.ravel(),
                "score": mean.ravel(),
                "threshold": self.threshold.ravel(),
                "items_needed": np.ceil(self.n_items * ratio).ravel(),
            }
        )

    def clusters(self, system: str, layer: Layer, *, n_flips: int = 2_000, seed: int = 0) -> list[Cluster]:
        """Neighbouring regions, in their order (times), where subjects score above 0 with a layer.

        Corrected for having looked everywhere, by flipping the signs of whole subjects.
        """
        found = self.scores[:, :, find_row(self.rows, system, layer)]
        return cluster_test(found, n_flips=n_flips, seed=seed)
