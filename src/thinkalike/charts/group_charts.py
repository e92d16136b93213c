"""Whole models and groups of them: means with intervals, a map, a tree."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from thinkalike.charts.label_places import beside
from thinkalike.charts.theme import LIGHT, Theme, layered, shapes

NAME_SIZE = 10
INTERVAL = ("mean", "low", "high")


def group_means(
    data: pd.DataFrame, *, label: str, title: str = "", x_title: str = "layer", theme: Theme = LIGHT
) -> alt.LayerChart:
    """Means within and between groups with their intervals (Figures 2 and 8 of Brown et al. 2023).

    Parameters
    ----------
    data : rows of `layer`, `pair`, `mean`, `low`, `high`. With one layer only, the pairs stand side by side.
    label : what a mean is of.
    """
    pairs, layers = list(dict.fromkeys(data["pair"])), list(dict.fromkeys(data["layer"]))
    over_layers = len(layers) > 1
    colors = alt.Scale(domain=pairs, range=theme.system_colors(len(pairs)))
    signs = alt.Scale(domain=pairs, range=shapes(len(pairs)))
    legend = alt.Legend(symbolOpacity=1) if over_layers else None
    x = (
        alt.X("layer:O", sort=layers, title=x_title)
        if over_layers
        else alt.X("pair:N", sort=pairs, title=None)
    )
    mean, low = (alt.Y(f"{name}:Q", title=label, scale=alt.Scale(zero=False)) for name in ("mean", "low"))
    base = alt.Chart(data).encode(
        x=x.axis(labelAngle=0), color=alt.Color("pair:N", scale=colors, title=None, legend=legend)
    )
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        y=mean,
        shape=alt.Shape("pair:N", scale=signs, title=None, legend=legend),
        tooltip=["layer:N", "pair:N", *(alt.Tooltip(f"{c}:Q", format=".3f") for c in INTERVAL)],
    )
    if not over_layers:
        bars = base.mark_rule(strokeWidth=2).encode(y=low, y2="high:Q")
        return layered(bars, points, width=150 * len(pairs), height=260, title=title)
    bands = base.mark_area(opacity=0.18).encode(y=low, y2="high:Q")
    lines = base.mark_line(strokeWidth=2).encode(y=mean)
    return layered(bands, lines, points, width=420, height=260, title=title)


def model_map(
    data: pd.DataFrame,
    *,
    ellipses: pd.DataFrame | None = None,
    size: int = 420,
    title: str = "",
    theme: Theme = LIGHT,
) -> alt.LayerChart:
    """Models as points, named, coloured and shaped by group.

    Parameters
    ----------
    data : rows of `system`, `group`, `x`, `y`; equal distances on both axes.
    ellipses : rows of `system`, `corner` (along the ellipse), `x`, `y`.
    """
    both = data if ellipses is None else pd.concat([data, ellipses])
    reach = 1.15 * max(float(both[["x", "y"]].abs().to_numpy().max()), 1e-9)
    place = alt.Scale(domain=[-reach, reach], nice=False)
    quiet = alt.Axis(labels=False, ticks=False, title=None, grid=False, domain=False)
    base = alt.Chart(_with_names(data, reach, size)).encode(
        x=alt.X("x:Q", scale=place, axis=quiet),
        y=alt.Y("y:Q", scale=place, axis=quiet),
        tooltip=["system:N", "group:N"],
    )
    color, shape = _by_group(data, theme)
    points = base.mark_point(filled=True, size=90, opacity=1).encode(color=color, shape=shape)
    side = alt.expr("datum.name_align")
    names = base.mark_text(fontSize=NAME_SIZE, color=theme.muted, baseline="middle", align=side).encode(
        x=alt.X("name_x:Q", scale=place, axis=quiet),
        y=alt.Y("name_y:Q", scale=place, axis=quiet),
        text="system:N",
    )
    names = names.transform_filter("isValid(datum.name_x)")
    parts = [points, names]
    if ellipses is not None:
        around = alt.Chart(ellipses).mark_line(filled=True, fill=theme.muted, opacity=0.15, strokeWidth=0)
        around = around.encode(
            x=alt.X("x:Q", scale=place, axis=quiet),
            y=alt.Y("y:Q", scale=place, axis=quiet),
            order="corner:Q",
            detail="system:N",
        )
        parts.insert(0, around)
    return layered(*parts, width=size, height=size, title=title)


def _with_names(data: pd.DataFrame, reach: float, size: int) -> pd.DataFrame:
    """With the places of the names, in the units of the map; none where there is no room."""
    scale = size / (2 * reach)
    pixels = (data[["x", "y"]].to_numpy(dtype=float) * (1, -1) + reach) * scale
    places = beside(pixels, [str(name) for name in data["system"]], width=size, font_size=NAME_SIZE)
    x, y, align = zip(*[one or (np.nan, np.nan, "center") for one in places], strict=True)
    return data.assign(
        name_x=np.array(x) / scale - reach, name_y=reach - np.array(y) / scale, name_align=align
    )


def dendrogram(
    tree: pd.DataFrame, leaves: pd.DataFrame, *, title: str = "", theme: Theme = LIGHT
) -> alt.LayerChart:
    """A tree from left (leaves) to right, its leaves named.

    Parameters
    ----------
    tree : rows of `fork`, `corner` (0 to 3, along the fork), `height`, `place`.
    leaves : rows of `place`, `system`, `group`.
    """
    n = len(leaves)
    down = alt.Y("place:Q", axis=None, scale=alt.Scale(domain=[-0.5, n - 0.5], reverse=True, nice=False))
    forks = alt.Chart(tree).mark_line(color=theme.muted, strokeWidth=1.5)
    forks = forks.encode(
        x=alt.X("height:Q", title="distance", axis=alt.Axis(grid=False)),
        y=down,
        detail="fork:N",
        order="corner:Q",
    )
    color, shape = _by_group(leaves, theme)
    named = alt.Chart(leaves).encode(y=down, x=alt.value(0), color=color)
    names = named.mark_text(align="right", dx=-16, fontSize=11).encode(text="system:N")
    marks = named.mark_point(filled=True, size=60, opacity=1, xOffset=-8).encode(shape=shape)
    return layered(forks, names, marks, width=320, height=max(80, 18 * n), title=title)


def _by_group(data: pd.DataFrame, theme: Theme) -> tuple[alt.Color, alt.Shape]:
    """Colour and shape of a group; a single group needs no legend."""
    groups = list(dict.fromkeys(sorted(data["group"])))
    legend = alt.Legend() if len(groups) > 1 else None
    colors = alt.Scale(domain=groups, range=theme.system_colors(len(groups)))
    signs = alt.Scale(domain=groups, range=shapes(len(groups)))
    return (
        alt.Color("group:N", scale=colors, title=None, legend=legend),
        alt.Shape("group:N", scale=signs, title=None, legend=legend),
    )
