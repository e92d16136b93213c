"""What each layer of one system is organised by, and how well the features predict its distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from thinkalike.charts.label_places import GAP, along
from thinkalike.charts.theme import LIGHT, Data, Theme, feature_color, layered
from thinkalike.labels import block_of, has_parts

WIDTH, HEIGHT, FONT = 300, 230, 11
"""Of a chart of importance, in pixels, and of the names in it"""
NARROW = 240
"""Pixels between the axes on a phone, for which names are placed"""
EDGE = 0.3
"""Room before the first layer and after the last, in steps from layer to layer"""


def name_places(data: pd.DataFrame, domain: tuple[float, float]) -> pd.DataFrame:
    """Where the names of features stand in an `importance_profile` whose axis of importance is `domain`.

    Parameters
    ----------
    data : its rows of `place`, `layer`, `feature`, `importance` and `matters`.

    Returns
    -------
    For each row `named`, whether the name of the feature stands there; if so, whether `above` the point, and
    how it is to `align`. It is the highest point with room, or none that is half as high or more. Parts have
    points and no lines; a rim keeps their names apart from other points.
    """
    places = pd.DataFrame({"named": False, "above": True, "align": "left"}, index=data.index)
    heights = data.pivot_table("importance", "place", "feature", sort=False, observed=False)
    heights = heights[heights.max().sort_values(ascending=False, kind="stable").index]
    x = NARROW * (np.asarray(heights.index) + EDGE) / (len(heights) - 1 + 2 * EDGE)
    y, half = (
        HEIGHT * (domain[1] - values) / (domain[1] - domain[0])
        for values in (heights.to_numpy().T, heights.max().to_numpy() / 2)
    )
    lines = np.stack([np.broadcast_to(x, y.shape), y], axis=2)
    matters = set(data["feature"][data["matters"].astype(bool)])
    parts = has_parts(list(data["layer"]))
    names = [f"{name}, {'m' * 8}" if parts else str(name) for name in heights]
    found = along(
        lines,
        names,
        wanted=[name in matters for name in heights],
        lowest=half,
        size=(NARROW, HEIGHT),
        font_size=FONT,
        joined=not parts,
    )
    rows = dict(zip(zip(data["place"], data["feature"], strict=True), data.index, strict=True))
    for name, place in zip(heights, found, strict=True):
        if place is not None:
            row = rows[heights.index[place.point], name]
            places.loc[row] = [True, place.above, place.align]
    return places


def importance_profile(
    data: Data,
    *,
    layers: Sequence[str],
    features: Sequence[str],
    domain: tuple[float, float],
    title: str = "",
    legend: bool = True,
    theme: Theme = LIGHT,
) -> alt.LayerChart:
    """Importance over layers, a line per feature with a band around it (Figure 3 of Salle et al. 2024).

    Parameters
    ----------
    data : rows of `place` (0, 1, …), `layer`, `feature`, `importance`, `low`, `high`, `strength`; `matters`,
        or else the line is grey; and of `name_places`.
    features : in the order that gives each its colour.
    domain : the axis of importance; give the same to every system, so that they can be read together.

    Parts of blocks, such as heads, have no order: they are points with a rule each for their spread.

    The chart has a parameter `focus`: the name of the one feature to show in full colour, or nothing.
    """
    joined = not has_parts(layers)
    focus = alt.param(name="focus", value="")
    matters = "datum.matters || datum.feature === focus"
    faded = alt.condition("focus === '' || datum.feature === focus", alt.value(1.0), alt.value(0.12))
    base = alt.Chart(data).encode(
        x=_layer_axis(layers),
        color=alt.condition(
            matters,
            feature_color(features, theme, legend=_legend(len(features)) if legend else None),
            alt.value(theme.muted),
        ),
    )
    y = alt.Y(
        "importance:Q", title="importance (drop in ρ)", scale=alt.Scale(domain=list(domain), nice=False)
    )
    low = alt.Y("low:Q", title="importance (drop in ρ)")
    if joined:
        band = base.mark_area(opacity=0.16, clip=True).encode(y=low, y2="high:Q", fillOpacity=faded)
    else:
        band = base.mark_rule(strokeOpacity=0.3, clip=True).encode(y=low, y2="high:Q", opacity=faded)
    lines = base.mark_line(clip=True).encode(
        y=y,
        opacity=faded,
        strokeWidth=alt.condition(matters, alt.value(2.0), alt.value(1.0)),
        order="place:Q",
        detail="feature:N",
    )
    dot = _dot_size(layers)
    points = base.mark_point(filled=True, opacity=1).encode(
        y=y,
        opacity=faded,
        size=alt.condition(matters, alt.value(dot), alt.value(dot / 3)),
        tooltip=[
            alt.Tooltip("feature:N"),
            alt.Tooltip("layer:N"),
            alt.Tooltip("importance:Q", format=".3f"),
            alt.Tooltip("low:Q", format=".3f"),
            alt.Tooltip("high:Q", format=".3f"),
            alt.Tooltip("strength:Q", format=".3f"),
        ],
    )
    label = "datum.feature" if joined else "datum.feature + ', ' + datum.layer"
    named = base.transform_filter("datum.named").transform_calculate(label=label)
    named = named.encode(y=y, text="label:N", opacity=faded)
    beside: dict[str, Any] = {
        "align": alt.expr("datum.align"),
        "dx": alt.expr("datum.align === 'left' ? -4 : datum.align === 'right' ? 4 : 0"),
        "dy": alt.expr(f"datum.above ? {-GAP} : {GAP}"),
        "baseline": alt.expr("datum.above ? 'bottom' : 'top'"),
        "fontWeight": 600,
    }
    names = named.mark_text(**beside)
    # Behind the names a rim in the colour of the surface: points of many parts would run through the letters.
    rims = named.mark_text(**beside, stroke=theme.surface, strokeWidth=4, strokeJoin="round")
    marks = (band, lines, points, names) if joined else (band, points, rims, names)
    return layered(*marks, width=WIDTH, height=HEIGHT, title=title).add_params(focus)


def score_profile(
    data: Data,
    *,
    layers: Sequence[str],
    title: str = "",
    low: float = 0.0,
    ceiling: bool = True,
    theme: Theme = LIGHT,
) -> alt.LayerChart:
    """Held-out ρ over layers, with its interval and, dashed, the ρ that a perfect model could reach.

    Parameters
    ----------
    data : rows of `place`, `layer`, `score`, `low`, `high` and, for `ceiling`, `ceiling`.
    low : where the axis begins; it ends at 1.
    """
    joined, y_title = not has_parts(layers), "ρ (held out)"
    scale = alt.Scale(domain=[low, 1.0], nice=False)
    base = alt.Chart(data).encode(x=_layer_axis(layers))
    if joined:
        band = base.mark_area(opacity=0.18, color=theme.ink, clip=True)
    else:
        band = base.mark_rule(opacity=0.35, color=theme.ink, clip=True)
    band = band.encode(y=alt.Y("low:Q", title=y_title, scale=scale, axis=alt.Axis(tickCount=4)), y2="high:Q")
    if joined:
        line = base.mark_line(strokeWidth=2, color=theme.ink, point=_dot(theme.ink, layers))
    else:
        line = base.mark_point(filled=True, opacity=1, size=_dot_size(layers), color=theme.ink)
    line = line.encode(
        y=alt.Y("score:Q", title=y_title, scale=scale),
        order="place:Q",
        tooltip=[
            alt.Tooltip("layer:N"),
            alt.Tooltip("score:Q", title="ρ", format=".3f"),
            alt.Tooltip("low:Q", format=".3f"),
            alt.Tooltip("high:Q", format=".3f"),
        ],
    )
    layers_of_chart = [band, line]
    if ceiling:
        highest = (
            base.mark_line(strokeDash=[4, 3], strokeWidth=1.2, color=theme.muted)
            if joined
            else base.mark_tick(orient="horizontal", width=4, color=theme.muted)
        )
        layers_of_chart.append(
            highest.encode(y=alt.Y("ceiling:Q", title=y_title, scale=scale), order="place:Q")
        )
    return layered(*layers_of_chart, width=300, height=110, title=title)


def _layer_axis(layers: Sequence[str]) -> alt.X:
    """A place for each layer; of the parts of a block only the first is labelled, by the block."""
    axis = alt.Axis(labelAngle=0, labelOverlap=True, grid=False, title="layer")
    first = list({block_of(layer): layer for layer in reversed(layers)}.values())[::-1]
    if len(first) < len(layers):
        axis = alt.Axis(
            labelAngle=0,
            labelOverlap=True,
            grid=True,
            title="block, and the parts of each",
            values=first,
            labelExpr="split(datum.value, '.')[0]",
        )
    return alt.X("layer:O", sort=list(layers), axis=axis, scale=alt.Scale(type="point", padding=0.3))


def _legend(n_features: int) -> alt.Legend:
    return alt.Legend(orient="right", symbolType="circle", symbolOpacity=1, columns=1 + n_features // 20)


def _dot(color: str, layers: Sequence[str]) -> alt.OverlayMarkDef:
    return alt.OverlayMarkDef(filled=True, size=_dot_size(layers), color=color)


def _dot_size(layers: Sequence[str]) -> float:
    """Of many layers small, or the dots would run together."""
    return 26 if len(layers) <= 40 else 6
