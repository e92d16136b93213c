"""Maps: words of a layer, layers of all systems, whole systems. Both axes always have the same scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from thinkalike.charts.theme import LIGHT, Data, Theme, layered, system_color, system_shape


def word_map(
    data: Data,
    *,
    feature: str,
    levels: Sequence[str] | None,
    ordered: bool = False,
    extent: float = 1.0,
    side: int = 260,
    stretches: bool = False,
    title: str = "",
    legend: bool = True,
    theme: Theme = LIGHT,
) -> alt.Chart:
    """The words of one layer, coloured by a feature.

    Parameters
    ----------
    data : rows of `x`, `y`, `word`, `context`, `value` (of the feature; null where it is missing).
    levels : the values of a feature with levels; None for a numeric one.
    ordered : whether the levels are steps of one ramp.
    extent : the map shows −extent … extent on both axes.
    side : of the map, in pixels.
    stretches : whether a page makes it wider or narrower; the legend has as many columns as it has room for.
    """
    legend_of = _legend(feature, levels or (), None if stretches else side) if legend else None
    if levels is None:
        gradient = alt.Legend(title=feature, orient="bottom", gradientLength=140, gradientThickness=8)
        color = alt.Color(
            "value:Q",
            scale=alt.Scale(range=list(theme.sequential[2:])),
            legend=gradient if legend else None,
        )
    else:
        colors = _steps(theme, len(levels)) if ordered else theme.level_colors(len(levels))
        color = alt.Color(
            "value:N", scale=alt.Scale(domain=list(levels), range=colors), sort=None, legend=legend_of
        )
    known = alt.condition("isValid(datum.value)", color, alt.value(theme.rule))
    return (
        alt.Chart(data)
        .mark_point(filled=True, size=22, opacity=0.8)
        .encode(
            **_free_axes(extent),
            color=known,
            tooltip=["word:N", alt.Tooltip("value:N", title=feature), "context:N"],
        )
        .properties(width=side, height=side, title=title)
    )


def layer_map(
    data: Data,
    *,
    systems: Sequence[str],
    extent: float,
    aspect: float = 1.0,
    title: str = "",
    legend: bool = True,
    theme: Theme = LIGHT,
) -> alt.LayerChart:
    """Layers of all systems, joined in the order of their depth; of parts of blocks, the blocks are.

    Parameters
    ----------
    data : rows of `system`, `layer`, `block` (of a part; else the layer itself), `place` (depth from 0), `x`,
        `y`, `end` (whether the name of its block is written).
    extent : the map shows −extent … extent from left to right.
    aspect : height ÷ width.
    """
    below = alt.Legend(orient="bottom", symbolSize=80, symbolOpacity=1) if legend else None
    color = system_color(systems, theme, legend=below)
    base = alt.Chart(data).encode(**_free_axes(extent, aspect), color=color)
    # The middle of the parts of a block, which of a whole layer is the layer.
    blocks = base.transform_aggregate(
        x="mean(x)", y="mean(y)", place="min(place)", groupby=["system", "block", "end"]
    )
    path = blocks.mark_line(strokeWidth=1.5, opacity=0.5).encode(order="place:Q", detail="system:N")
    points = base.mark_point(filled=True, opacity=1).encode(
        shape=system_shape(systems, legend=below),
        size=alt.condition("datum.block !== datum.layer", alt.value(26), alt.value(70)),
        tooltip=["system:N", "layer:N"],
    )
    labels = (
        blocks.transform_filter("datum.end")
        .mark_text(align="left", dx=8, dy=-6, fontSize=11)
        .encode(text="block:N")
    )
    return layered(path, points, labels, width=320, height=round(320 * aspect), title=title)


def system_map(
    data: Data, *, systems: Sequence[str], extent: float, title: str = "", theme: Theme = LIGHT
) -> alt.LayerChart:
    """Whole systems by the distance of their profiles.

    Parameters
    ----------
    data : rows of `system`, `x`, `y`.
    """
    base = alt.Chart(data).encode(**_free_axes(extent), color=system_color(systems, theme, legend=None))
    points = base.mark_point(filled=True, size=120, opacity=1).encode(
        shape=system_shape(systems, legend=None)
    )
    names = base.mark_text(dy=-14).encode(text="system:N")
    return layered(points, names, width=320, height=320, title=title)


def _free_axes(extent: float, aspect: float = 1.0) -> dict[str, Any]:
    """Axes without numbers: on a map only distances mean anything."""
    across, down = (alt.Scale(domain=[-reach, reach], nice=False) for reach in (extent, extent * aspect))
    return {"x": alt.X("x:Q", scale=across, axis=None), "y": alt.Y("y:Q", scale=down, axis=None)}


def _legend(title: str, levels: Sequence[str], width: int | None) -> alt.Legend:
    """Under the map, in as many columns as have room for the longest level; None for the width that it has.

    Beside others a chart does not know its own width.
    """
    widest = 24 + 6 * max((len(level) for level in levels), default=0)
    own = alt.ExprRef(f"max(1, floor(width / {widest}))")
    columns = own if width is None else max(1, width // widest)
    return alt.Legend(title=title, orient="bottom", columns=columns, symbolSize=60)


def _steps(theme: Theme, n: int) -> list[str]:
    """`n` colours along the ramp, its faint end left out."""
    ramp = theme.sequential[2:]
    last = len(ramp) - 1
    return [ramp[round(k * last / max(1, n - 1))] for k in range(n)]
