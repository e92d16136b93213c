"""`GroupComparison`: models beside a group of subjects, with what other subjects and items would say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
from scipy.stats import t as student

from thinkalike import provenance
from thinkalike.errors import InvalidInput
from thinkalike.inference.over_subjects import (
    BOTH,
    Cluster,
    Spread,
    check_over,
    cluster_test,
    p_over_subjects,
    spread,
    spread_of_noise,
)
from thinkalike.inference.ranges import STEP
from thinkalike.labels import Floats, Layer, Row, find_row, row_name
from thinkalike.many_tests import corrected
from thinkalike.measures import MEASURES
from thinkalike.saving import KeptFolder
from thinkalike.types import Facts, Json
from thinkalike.wording import listed, number, q_text

if TYPE_CHECKING:
    import altair as alt

MOST_LINES = 30
"""Rows that are printed; all are in the table"""
FEWEST_ITEMS = 8
"""From so many on there are ranges over items"""
RANGES_OVER = {"both": "other subjects and items", "subjects": "other subjects", "items": "other items"}


@dataclass(frozen=True, eq=False, repr=False)
class GroupComparison(KeptFolder):
    """Scores of every subject with every layer of the models, and what they are worth.

    Attributes
    ----------
    measure : its name
    subjects : names of the subjects
    regions : names of the layers of the subjects: areas, or points in time
    rows : (system, layer) of the models
    scores : (n_subjects, n_regions, n_rows)
    above : (n_subjects, n_regions, n_rows) how much better than chance: than the mean over other orders of
        the items; for "features" of τ_w of strengths. NaN where nothing says what chance gives
    ceiling_lower, ceiling_upper : (n_regions, n_rows) what models as good as other subjects reach, and as
        good as can be: `settings["ceilings"]` says in which sense. The lower one is NaN where subjects are
        too wide for one another
    p_items : (n_regions, n_rows) from other orders of the models' items, or of their features for "features"
    n_items : how many items there are
    kind : whether a larger score is more alike ("similarity") or less ("distance")
    without : (n_left_out, n_subjects, n_regions, n_rows) the scores without parts of the items; optional
    parts : how many parts the items were dealt into
    noisy : (n_draws, n_subjects, n_regions, n_rows) instead of `without`, for "features": the scores with the
        noise of the items added
    freedom : degrees of freedom that this noise is known with
    least_p : (n_regions, n_rows) the smallest p that other orders of the items can give; optional. Large
        for few items, and for models that take many items for one
    threshold : (n_regions, n_rows) the mean score that 95 % of the orders stay below; optional
    untested : sentences that say why some rows or regions have no p
    settings, versions : what changed the numbers, by name, and with which packages they were made

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
    above: Floats = field()
    ceiling_lower: Floats = field()
    ceiling_upper: Floats = field()
    p_items: Floats = field()
    n_items: int
    kind: Literal["similarity", "distance"] = "similarity"
    without: Floats | None = field(default=None)
    parts: int | None = None
    noisy: Floats | None = field(default=None)
    freedom: float | None = None
    least_p: Floats | None = field(default=None)
    threshold: Floats | None = field(default=None)
    untested: tuple[str, ...] = ()
    settings: Facts = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=provenance.versions)

    def __repr__(self) -> str:
        return (
            f"GroupComparison({self.measure}: {len(self.subjects)} subjects, {len(self.regions)} regions, "
            f"{len(self.rows)} layers of models)"
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.measure} of {len(self.subjects)} subjects with models, {self.n_items} items"
        over = self.widest
        rows = self.table(over=over)
        for _, row in rows[:MOST_LINES].iterrows():
            said = [f"{number(row['score'])} ({number(row['low'])} to {number(row['high'])})"]
            said += [f"chance {number(row['chance'])}"] if np.isfinite(row["chance"]) else []
            said += [f"ceilings {number(row['ceiling_lower'])} to {number(row['ceiling_upper'])}"]
            said += [q_text(row["q_both"])] if np.isfinite(row["q_both"]) else []
            yield f"  {row['region']} · {row['model']}: {', '.join(said)}"
        if len(rows) > MOST_LINES:
            yield f"  … and {len(rows) - MOST_LINES} more in table()"
        yield (
            f"Ranges of 95 % over {RANGES_OVER[over]}. q: the larger of p over subjects and over items, "
            "corrected for the number of lines (Benjamini–Hochberg)."
        )
        yield f"Ceilings: {self.settings['ceilings']}."
        yield from self.cautions()

    def cautions(self) -> tuple[str, ...]:
        """What these numbers cannot say, in sentences."""
        said = list(self.untested)
        if len(self.subjects) < 2:
            said.append("There is one subject: nothing is known about others, and there are no ceilings.")
        elif np.isnan(self.ceiling_lower).any():
            said.append(
                f"Ceilings are missing: {self.measure} of two subjects is not defined here, with so "
                f"many units for {self.n_items} items. Use fewer of them (steps='pca:5'), or another measure."
            )
        if not self.has_item_ranges:
            why = "only measures that do not move with the number of items have one (docs/certainty.md)"
            if self.measure == "features":
                why = "no items were left out (resamples)"
            elif self.n_items < FEWEST_ITEMS:
                why = f"there are fewer than {FEWEST_ITEMS}"
            said.append(f"{self.measure} has no range over other items: {why}.")
        if self.least_p is None:
            return tuple(said)
        if np.isnan(self.least_p).all():
            said.append(
                f"{self.measure} does not ask which item is which, so nothing is held against chance."
            )
        stuck = {
            row_name(row) for row, p in zip(self.rows, self.least_p.max(axis=0), strict=True) if p > 0.05
        }
        if stuck:
            said.append(
                f"No p of {listed(sorted(stuck))} could be 0.05 with these items, whatever the score: more "
                "items are needed, or a model that tells more of them apart (limits())."
            )
        return tuple(said)

    def plot(self, *, rows: Sequence[Row] | None = None, theme: str = "light") -> alt.HConcatChart:
        """Scores with their ranges and ceilings; over regions in their order, as times, where they are many.

        Parameters
        ----------
        rows : layers of models to show. When None all, or over many regions the eight that score best.
        """
        from thinkalike.comparison.plots import draw, group_chart

        shown = None if rows is None else [find_row(self.rows, *row) for row in rows]
        return draw(partial(group_chart, shown=shown), self, theme=theme)

    @property
    def chance(self) -> Floats:
        """(n_regions, n_rows) what unrelated models score: the mean over other orders of the items.

        NaN where other orders change nothing, and for "features", whose chance is that of strengths.
        """
        if self.measure == "features":
            return np.full(self.p_items.shape, np.nan)
        sign = -1.0 if self.kind == "distance" else 1.0
        return np.asarray((self.scores - sign * self.above).mean(axis=0))

    @property
    def has_item_ranges(self) -> bool:
        """Whether there are ranges over other items."""
        return self.without is not None or self.noisy is not None

    @property
    def widest(self) -> str:
        """What the widest ranges that there are speak of: "both", "subjects", or "items" for one subject."""
        if len(self.subjects) < 2:
            return "items"
        return "both" if self.has_item_ranges else "subjects"

    def table(self, *, over: str = BOTH) -> pd.DataFrame:
        """A row per region and layer: the mean score with its range, ceilings, and p over both and each.

        `q_both` is `p_both` corrected for the number of rows (Benjamini and Hochberg).

        Parameters
        ----------
        over : {"both", "subjects", "items"}
            What the 95 % range is about: other subjects, other items, or both.
        """
        check_over(over)
        mean = self.scores.mean(axis=0)
        low = high = np.full_like(mean, np.nan)
        if over == "subjects" or self.has_item_ranges:
            low, high = self._range(mean, over)
        p_subjects = p_over_subjects(self.above)
        p_both = np.maximum(p_subjects, self.p_items).ravel()
        columns = {
            "region": np.repeat(np.array(self.regions, dtype=object), len(self.rows)),
            "model": [row_name(row) for row in self.rows] * len(self.regions),
            "score": mean.ravel(),
            "low": low.ravel(),
            "high": high.ravel(),
            "chance": self.chance.ravel(),
            "ceiling_lower": self.ceiling_lower.ravel(),
            "ceiling_upper": self.ceiling_upper.ravel(),
            "p_subjects": p_subjects.ravel(),
            "p_items": self.p_items.ravel(),
            "p_both": p_both,
            "q_both": corrected(p_both),
        }
        return pd.DataFrame(columns)

    def to_frame(self) -> pd.DataFrame:
        """A row per subject, region and layer."""
        index = pd.MultiIndex.from_product(
            [self.subjects, self.regions, [row_name(row) for row in self.rows]],
            names=["subject", "region", "model"],
        )
        return pd.DataFrame({"score": self.scores.ravel()}, index=index).reset_index()

    def _tables(self) -> dict[str, pd.DataFrame]:
        limits = {} if self.threshold is None else {"limits": self.limits()}
        return {"group": self.table(), "subjects": self.to_frame(), **limits}

    def _about(self) -> Json:
        return {
            "measure": self.measure,
            "subjects": self.subjects,
            "regions": self.regions,
            "rows": self.rows,
            "settings": dict(self.settings),
            "versions": dict(self.versions),
        }

    def difference(self, first: Row, second: Row, *, over: str = BOTH) -> pd.DataFrame:
        """By how much the first of two layers of models scores higher: mean, range, and p (two-sided).

        The same subjects and items are in both, so that what they share cancels.
        """
        a, b = find_row(self.rows, *first), find_row(self.rows, *second)

        def apart(values: Floats) -> Floats:
            return values[..., a] - values[..., b]

        found, mean = self._spread(over, apart), apart(self.scores).mean(axis=0)
        low, high = found.range(mean)
        p = 2 * student.sf(np.abs(mean) / np.maximum(found.error, 1e-300), found.freedom)
        return pd.DataFrame(
            {"region": list(self.regions), "difference": mean, "low": low, "high": high, "p": p}
        )

    def _spread(self, over: str, of: Callable[[Floats], Floats]) -> Spread:
        """Of a function of the scores of the rows, which are the last axis."""
        if self.noisy is not None and self.freedom is not None:
            scores, noisy = of(self.scores), of(self.noisy)
            return spread_of_noise(scores, noisy, over=over, step=STEP, freedom=self.freedom)
        without = None if self.without is None else of(self.without)
        return spread(of(self.scores), without, over=over, parts=self.parts)

    def _range(self, mean: Floats, over: str) -> tuple[Floats, Floats]:
        low, high = self._spread(over, lambda values: values).range(mean)
        least, most = (-1.0, 1.0) if self.measure == "features" else MEASURES[self.measure].range
        return np.clip(low, least, most), np.clip(high, least, most)

    def limits(self) -> pd.DataFrame:
        """A row per region and layer: what so few items can show, and how many would show the score found.

        `threshold` is the mean score from which p over items is 0.05 or less. By chance RSA and CKA vary as
        one over the number of items, so that a score that is s above chance would reach a threshold t above
        chance with about n · t / s items (`items_needed`; infinite if s is not above 0, NaN for measures that
        vary in other ways).
        """
        if self.threshold is None or self.least_p is None:
            raise InvalidInput(f"{self.measure} is not held against other orders of the items: no limits.")
        mean = self.scores.mean(axis=0)
        above = mean - self.chance
        ratio = np.divide(
            self.threshold - self.chance, above, out=np.full_like(mean, np.inf), where=above > 0
        )
        if self.kind == "distance" or not self.measure.startswith(("rsa", "cka")):
            ratio = np.full_like(mean, np.nan)
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
        """Neighbouring regions, in their order (times), where subjects score better than chance with a layer.

        Corrected for having looked everywhere, by flipping the signs of whole subjects.
        """
        found = self.above[:, :, find_row(self.rows, system, layer)]
        if np.isnan(found).any():
            raise InvalidInput(
                f"{self.measure} of {system}:{layer} cannot be held against chance in every region, so there "
                "are no clusters: use another measure, or fewer regions."
            )
        return cluster_test(found, n_flips=n_flips, seed=seed)
