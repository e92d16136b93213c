"""Matrices: all layers of all systems, with the boundaries between systems; all features."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from math import ceil
from typing import Any

import altair as alt
import pandas as pd

from thinkalike.charts.theme import LIGHT, Data, Theme, colour_bar, layered
from thinkalike.labels import block_of
from thinkalike.types import Json

SIDE = 380
"""Pixels of a matrix, about"""
LETTER = 6.5
"""Pixels of a letter of a system's name, about"""


def similarity_matrix(
    data: Data,
    *,
    systems: Sequence[tuple[str, Sequence[str]]],
    domain: tuple[float, float],
    label: str,
    diverging: bool,
    distance: bool = False,
    every: int = 1,
    title: str = "",
    selectable: bool = False,
    pictured: bool = False,
    theme: Theme = LIGHT,
) -> alt.LayerChart:
    """Similarity of all layers of all systems (Figure 2 of Salle et al. 2024).

    Parameters
    ----------
    data : rows of `i`, `j` (places of the two layers, from 0), `value`, and for the tooltip `a`, `b`.
    systems : name and layer labels of each system, in the order of the rows.
    label : what a value is called, e.g. "τ_w".
    diverging : whether 0 is the middle of the colours, or their low end.
    distance : whether small values are the alike ones: those are blue then.
    every : label only each so-manieth layer.
    selectable : add the parameters `row` and `column`: the cell that is outlined.
    pictured : the cells are one picture, and `data` has one row with its `url`; the page paints it, with the
        colours in `usermeta`. For matrices with more cells than a page can have marks.
    """
    n = sum(len(layers) for _, layers in systems)
    ramp = theme.diverging if diverging else theme.sequential
    if distance:
        ramp = ramp[::-1]
    colours = alt.Color(
        "value:Q",
        scale=alt.Scale(domain=list(domain), range=list(ramp), clamp=True),
        legend=colour_bar(label, length=160),
    )
    cells = _picture(data, n, colours) if pictured else _cells(data, n, colours, label)
    parts = [*cells, *_boundaries(systems, theme), *_names(systems, every, theme)]
    if selectable:
        # Two rings, so that the cell stands out from dark and from light ones.
        chosen = alt.Chart(pd.DataFrame({"chosen": [True]})).transform_calculate(i="row", j="column")
        ring = _placed(chosen.transform_filter("row >= 0"), n)
        parts += [
            ring.mark_rect(fillOpacity=0, strokeWidth=width, stroke=color)
            for color, width in ((theme.surface, 6), (theme.ink, 2.5))
        ]
    side = n * max(2, round(SIDE / n))  # whole pixels for every cell, or hairlines show between them
    chart = layered(*parts, width=side, height=side, title=title)
    if selectable:
        chart = chart.add_params(alt.param(name="row", value=-1), alt.param(name="column", value=-1))
        about: Json = {"cells": n}  # only of a chart that stands alone: within others it may have none
        if pictured and isinstance(data, alt.NamedData):
            about |= {"picture": data.name, "colours": {"domain": list(domain), "range": list(ramp)}}
        chart = chart.properties(usermeta=about)
    return chart


def _placed(chart: alt.Chart, n: int) -> alt.Chart:
    """Squares of one by one at the places `i` and `j`."""
    return chart.transform_calculate(i_end="datum.i + 1", j_end="datum.j + 1").encode(
        x=alt.X("j:Q", scale=alt.Scale(domain=[0, n], nice=False, zero=False), axis=None),
        x2="j_end:Q",
        y=alt.Y("i:Q", scale=alt.Scale(domain=[n, 0], nice=False, zero=False), axis=None),
        y2="i_end:Q",
    )


def _cells(data: Data, n: int, colours: alt.Color, label: str) -> list[alt.Chart]:
    """A mark for each cell."""
    value = alt.Tooltip("value:Q", title=label, format=".2f")
    return [
        _placed(alt.Chart(data), n)
        .mark_rect(strokeWidth=0)
        .encode(color=colours, tooltip=[alt.Tooltip("a:N"), alt.Tooltip("b:N"), value])
    ]


def _picture(data: Data, n: int, colours: alt.Color) -> list[alt.Chart]:
    """One mark for all cells, and a mark without any size, whose legend is that of the picture."""
    whole = (
        alt.Chart(data)
        .mark_image(
            aspect=False, width=alt.expr("width"), height=alt.expr("height"), align="left", baseline="top"
        )
        .encode(x=alt.value(0), y=alt.value(0), url="url:N")
    )
    nothing = alt.Chart(pd.DataFrame({"i": [0], "j": [0], "value": [0.0]}))
    return [whole, _placed(nothing, n).mark_rect(fillOpacity=0, strokeWidth=0).encode(color=colours)]


def feature_correlations(
    data: Data, *, features: Sequence[str], title: str = "", theme: Theme = LIGHT
) -> alt.LayerChart:
    """Pearson correlations among features (Figure S5 of Salle et al. 2024).

    Parameters
    ----------
    data : rows of `a`, `b`, `correlation`; one per cell that is to be shown.
    """
    order = list(features)
    base = alt.Chart(data).encode(
        x=alt.X("b:N", sort=order, title=None, axis=alt.Axis(labelAngle=-40, domain=False, ticks=False)),
        y=alt.Y("a:N", sort=order, title=None, axis=alt.Axis(domain=False, ticks=False)),
    )
    cells = base.mark_rect().encode(
        color=alt.Color(
            "correlation:Q",
            scale=alt.Scale(domain=[-1, 1], range=list(theme.diverging)),
            legend=None,
        ),
        tooltip=["a:N", "b:N", alt.Tooltip("correlation:Q", format=".3f")],
    )
    strong = alt.condition("abs(datum.correlation) > 0.55", alt.value(theme.surface), alt.value(theme.ink))
    numbers = base.mark_text(fontSize=10).encode(text=alt.Text("correlation:Q", format=".2f"), color=strong)
    side = 34 * len(order)
    return layered(cells, numbers, width=side, height=side, title=title)


def _boundaries(systems: Sequence[tuple[str, Sequence[str]]], theme: Theme) -> list[alt.Chart]:
    """Lines between the systems, in the colour of the surface, so that the blocks stand apart."""
    edges = pd.DataFrame({"edge": _starts(systems)[1:-1]})
    rules = [alt.Chart(edges).mark_rule(color=theme.surface, strokeWidth=3)]
    blocks = pd.DataFrame({"edge": _block_edges(systems)}, dtype=float)
    if len(blocks):
        rules.append(alt.Chart(blocks).mark_rule(color=theme.surface, strokeWidth=1))
    return [
        rule.encode(**{axis: edge})
        for rule in rules
        for axis, edge in (("x", alt.X("edge:Q", axis=None)), ("y", alt.Y("edge:Q", axis=None)))
    ]


def _blocks(layers: Sequence[str]) -> list[tuple[str, int, int]]:
    """Blocks of which the layers are parts, heads say: name, first place, one past the last; none if not."""
    if all(block_of(layer) == layer for layer in layers):
        return []
    found, first = [], 0
    for name, run in groupby(layers, block_of):
        end = first + len(list(run))
        found.append((name, first, end))
        first = end
    return found


def _block_edges(systems: Sequence[tuple[str, Sequence[str]]]) -> list[int]:
    """Where a block begins within a system whose layers are parts of blocks."""
    starts = _starts(systems)[:-1]
    return [
        start + first
        for (_, layers), start in zip(systems, starts, strict=True)
        for _, first, _ in _blocks(layers)[1:]
    ]


def _names(systems: Sequence[tuple[str, Sequence[str]]], every: int, theme: Theme) -> list[alt.Chart]:
    """System names and layer labels along the top and the left edge."""
    starts = _starts(systems)
    names = pd.DataFrame(
        {
            "name": [name for name, _ in systems],
            "middle": [(a + b) / 2 for a, b in pairwise(starts)],
            "share": [(b - a) / starts[-1] for a, b in pairwise(starts)],
        }
    )
    # The first and the last layer of a system keep to its side of the boundary, or two systems' would touch.
    ticks = pd.DataFrame(
        [
            tick
            for (_, layers), start in zip(systems, starts[:-1], strict=True)
            for tick in _ticks(layers, start, every)
        ]
    )
    name = alt.Chart(names).encode(text="name:N")
    tick = alt.Chart(ticks).encode(text="name:N")
    across, down = alt.X("middle:Q", axis=None), alt.Y("middle:Q", axis=None)
    cut: dict[str, Any] = {"fontSize": 12, "limit": alt.expr("datum.share * width - 2")}
    level: dict[str, Any] = {"baseline": "bottom", "dy": -17, **cut}
    above, beside = level, {**level, "angle": 270}
    if (
        names["name"].str.len() * LETTER > names["share"] * SIDE
    ).any():  # whole, where there is no room for all
        above = {"fontSize": 12, "align": "left", "baseline": "middle", "angle": 315, "dx": 18, "dy": -4}
        beside = {"fontSize": 12, "align": "right", "baseline": "middle", "dx": -17}
    return [
        name.mark_text(**above).encode(x=across, y=alt.value(0)),
        name.mark_text(**beside).encode(y=down, x=alt.value(0)),
        tick.mark_text(
            baseline="bottom",
            align=alt.expr("datum.align"),
            dx=alt.expr("datum.shift"),
            dy=-4,
            fontSize=9,
            color=theme.muted,
        ).encode(x=across, y=alt.value(0)),
        tick.mark_text(
            align="right",
            baseline=alt.expr("datum.baseline"),
            dx=-5,
            dy=alt.expr("datum.shift"),
            fontSize=9,
            color=theme.muted,
        ).encode(y=down, x=alt.value(0)),
    ]


def _ticks(layers: Sequence[str], start: int, every: int) -> list[Json]:
    """Labels of layers; where they are parts of blocks, of the blocks."""
    blocks = _blocks(layers)
    if blocks:
        return [
            {"name": blocks[k][0], "middle": start + sum(blocks[k][1:]) / 2, **_kept_within(1, 3)}
            for k in _labelled(len(blocks), ceil(every * len(blocks) / len(layers)))
        ]
    return [
        {"name": layers[k], "middle": start + k + 0.5, **_kept_within(k, len(layers))}
        for k in _labelled(len(layers), every)
    ]


def _labelled(n: int, every: int) -> list[int]:
    """The places that have a label: each so-manieth, and the last."""
    return [k for k in range(n) if k == n - 1 or (k % every == 0 and n - 1 - k >= every)]


def _kept_within(place: int, n_layers: int) -> Json:
    """How the label of a layer stands to its place."""
    if n_layers > 1 and place == 0:
        return {"align": "left", "baseline": "top", "shift": -3}
    if n_layers > 1 and place == n_layers - 1:
        return {"align": "right", "baseline": "bottom", "shift": 3}
    return {"align": "center", "baseline": "middle", "shift": 0}


def _starts(systems: Sequence[tuple[str, Sequence[str]]]) -> list[int]:
    starts = [0]
    for _, layers in systems:
        starts.append(starts[-1] + len(layers))
    return starts
