"""Models beside a group of subjects: mean scores with ranges, subjects as dots, noise ceilings as a band."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from thinkalike.charts.theme import LIGHT, Theme, layered

TOOLTIP = ("score", "low", "high", "chance", "ceiling_lower", "ceiling_upper", "q_both")


def scores_of_models(
    data: pd.DataFrame,
    *,
    subjects: pd.DataFrame,
    models: Sequence[str],
    label: str,
    title: str = "",
    theme: Theme = LIGHT,
) -> alt.LayerChart:
    """A column for each layer of a model, as in Nili et al. (2014).

    Parameters
    ----------
    data : rows of `model`, `score`, `low`, `high`, `chance`, `ceiling_lower`, `ceiling_upper`, `q_both`.
    subjects : rows of `model`, `score`, one for each subject.
    """
    x = alt.X("model:N", sort=list(models), title=None, axis=alt.Axis(labelAngle=-40, labelLimit=260))
    scale = alt.Scale(zero=False)
    base = alt.Chart(data).encode(x=x)
    band = base.mark_rect(color=theme.muted, opacity=0.25).encode(
        y=alt.Y("ceiling_lower:Q", title=label, scale=scale), y2="ceiling_upper:Q"
    )
    dots = (
        alt.Chart(subjects)
        .mark_point(filled=True, size=14, opacity=0.6, color=theme.muted, xOffset=-9)
        .encode(x=x, y=alt.Y("score:Q", scale=scale))
    )
    ranges = base.mark_rule(strokeWidth=2, color=theme.accent).encode(
        y=alt.Y("low:Q", scale=scale), y2="high:Q"
    )
    chance = base.mark_tick(color=theme.ink, thickness=1.5, size=16, strokeDash=[3, 2]).encode(
        y=alt.Y("chance:Q", scale=scale)
    )
    means = base.mark_point(filled=True, size=70, opacity=1, color=theme.accent).encode(
        y=alt.Y("score:Q", scale=scale), tooltip=["model:N", *_tooltips()]
    )
    known = "isValid(datum.chance)"
    parts = [dots, chance.transform_filter(known), ranges, means]
    if data["ceiling_lower"].notna().any() and data["ceiling_upper"].notna().any():
        parts.insert(0, band)
    width = max(34 * len(models), min(240, 80 * len(models)))  # few columns stand apart, many side by side
    return layered(*parts, width=width, height=260, title=title)


def scores_over_regions(
    data: pd.DataFrame,
    *,
    clusters: pd.DataFrame,
    regions: Sequence[str],
    models: Sequence[str],
    label: str,
    theme: Theme = LIGHT,
) -> alt.VConcatChart:
    """A line for each layer of a model over regions in their order; below, where it is better than chance.

    Parameters
    ----------
    data : as for `scores_of_models`, and `region`.
    clusters : rows of `model`, `region`.
    """
    data = data.assign(region=data["region"].astype(str))
    x = alt.X(
        "region:O",
        sort=list(regions),
        title=None,
        axis=alt.Axis(labelAngle=-40, labelOverlap=True, grid=False),
    )
    color = alt.Color(
        "model:N",
        sort=list(models),
        scale=alt.Scale(domain=list(models), range=theme.feature_colors(len(models))),
        title=None,
        legend=alt.Legend(symbolOpacity=1) if len(models) > 1 else None,
    )
    scale, width = alt.Scale(zero=False), max(360, 14 * len(regions))
    base = alt.Chart(data).encode(x=x)
    every = base.transform_aggregate(  # of models with other numbers of directions they may differ
        ceiling_lower="min(ceiling_lower)", ceiling_upper="max(ceiling_upper)", groupby=["region"]
    )
    ceilings = every.mark_area(color=theme.muted, opacity=0.25).encode(
        y=alt.Y("ceiling_lower:Q", title=label, scale=scale), y2="ceiling_upper:Q"
    )
    bands = base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q", color=color)
    lines = base.mark_line(strokeWidth=2).encode(
        y=alt.Y("score:Q", title=label, scale=scale),
        color=color,
        tooltip=["region:N", "model:N", *_tooltips()],
    )
    parts = [bands, lines]
    if data["ceiling_lower"].notna().any() and data["ceiling_upper"].notna().any():
        parts.insert(0, ceilings)
    above = layered(*parts, width=width, height=240)
    if clusters.empty:
        return alt.vconcat(above)
    title = alt.TitleParams("better than chance (p ≤ 0.05, corrected)", fontSize=11, fontWeight="normal")
    marks = alt.Chart(clusters, title=title).mark_rect(height=6)
    marks = marks.encode(
        x=alt.X("region:O", sort=list(regions), scale=alt.Scale(domain=list(regions)), axis=None),
        y=alt.Y("model:N", sort=list(models), title=None, axis=alt.Axis(domain=False, ticks=False)),
        color=color,
    )
    return alt.vconcat(above, marks.properties(width=width, height=alt.Step(16)))


def _tooltips() -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{name}:Q", format=".3f") for name in TOOLTIP]
