"""What `.plot()` of subjects beside models draws: scores, ranges and ceilings; over time, clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import altair as alt
import numpy as np
import pandas as pd

from thinkalike.charts import subject_charts
from thinkalike.charts.theme import Theme
from thinkalike.errors import InvalidInput
from thinkalike.labels import row_name

if TYPE_CHECKING:
    from thinkalike.comparison.group import GroupComparison

FEW_REGIONS = 4
"""Up to so many stand side by side; more are a line, in their order"""
MOST_LINES = 8


def group_chart(
    found: GroupComparison, theme: Theme, *, shown: Sequence[int] | None = None
) -> alt.HConcatChart:
    """A panel for each of a few regions, or one panel over many."""
    table = found.table(over=found.widest)
    many = len(found.regions) > FEW_REGIONS
    if shown is None:
        shown = best_rows(found, MOST_LINES) if many else range(len(found.rows))
    models = [row_name(found.rows[k]) for k in shown]
    table = table[table["model"].isin(models)]
    panels: list[alt.LayerChart | alt.VConcatChart]
    if many:
        panels = [
            subject_charts.scores_over_regions(
                table,
                clusters=cluster_table(found, shown),
                regions=[str(region) for region in found.regions],
                models=models,
                label=found.measure,
                theme=theme,
            )
        ]
    else:
        subjects = found.to_frame()
        panels = [
            subject_charts.scores_of_models(
                table[table["region"] == region],
                subjects=subjects[(subjects["region"] == region) & subjects["model"].isin(models)],
                models=models,
                label=found.measure,
                title=str(region) if len(found.regions) > 1 else "",
                theme=theme,
            )
            for region in found.regions
        ]
    return alt.hconcat(*panels)


def best_rows(found: GroupComparison, most: int) -> list[int]:
    """The layers of models with the best score anywhere, in the order of the models."""
    sign = -1.0 if found.kind == "distance" else 1.0
    best = (sign * found.scores.mean(axis=0)).max(axis=0)
    return sorted(np.argsort(-best, kind="stable")[:most].tolist())


def cluster_table(found: GroupComparison, shown: Sequence[int]) -> pd.DataFrame:
    """Neighbouring regions that are better than chance (p ≤ 0.05, corrected), a row for each region."""
    rows = []
    for k in shown:
        try:
            clusters = found.clusters(*found.rows[k])
        except InvalidInput:  # too few subjects, or nothing that says what chance gives
            continue
        rows += [
            {"model": row_name(found.rows[k]), "region": str(found.regions[place])}
            for cluster in clusters
            if cluster.p <= 0.05
            for place in range(cluster.start, cluster.stop)
        ]
    return pd.DataFrame(rows, columns=["model", "region"])
