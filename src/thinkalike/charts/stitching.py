"""What stitching costs: over layers, over all pairs of layers, and while φ is learnt."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd
from altair.utils.schemapi import UndefinedType

from thinkalike.charts.theme import LIGHT, Data, Theme, colour_bar, layered, shapes

FLOOR, CEILING = "floor: the top with itself", "ceiling: an untrained bottom"


def penalty_lines(
    data: Data,
    *,
    series: Sequence[str],
    label: str,
    x: str = "layer",
    relative: bool = False,
    quiet: Sequence[str] = (),
    title: str = "",
    theme: Theme = LIGHT,
) -> alt.LayerChart:
    """A line per series over the layers, with intervals (Figures 1 and 2 of Brown et al. 2023).

    Parameters
    ----------
    data : rows of `layer` (a number, or a share of the depth), `series`, `value`, `low`, `high`.
    series : names of the lines, in the order of their colours.
    relative : layers are shares of the depth, from 0 to 1.
    quiet : series that are only there to judge the others by: grey, dashed.
    """
    loud = [name for name in series if name not in quiet]
    colors = dict(zip(loud, theme.system_colors(len(loud)), strict=True)) | dict.fromkeys(quiet, theme.muted)
    signs = dict(zip(series, shapes(len(series)), strict=True))
    names = list(series)
    legend = alt.Legend(orient="bottom", columns=1, labelLimit=320, symbolOpacity=1, symbolStrokeWidth=2)
    axis = (
        alt.X("layer:Q", title=x, axis=alt.Axis(format="%", grid=False), scale=alt.Scale(domain=[0, 1]))
        if relative
        else alt.X("layer:Q", title=x, axis=alt.Axis(values=_whole(data), format="d", grid=False))
    )
    base = alt.Chart(data).encode(
        x=axis,
        color=alt.Color(
            "series:N",
            scale=alt.Scale(domain=names, range=[colors[name] for name in names]),
            title=None,
            legend=legend,
        ),
    )
    bands = base.mark_area(opacity=0.16).encode(y=alt.Y("low:Q", title=label), y2="high:Q")
    lines = base.mark_line(strokeWidth=2).encode(
        y="value:Q",
        # Not by a scale, which would dash the outlines of the legend's shapes too.
        strokeDash=alt.condition(
            alt.FieldOneOfPredicate("series", list(quiet)), alt.value([5, 3]), alt.value([1, 0])
        ),
    )
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        y="value:Q",
        shape=alt.Shape(
            "series:N",
            scale=alt.Scale(domain=names, range=[signs[name] for name in names]),
            title=None,
            legend=legend,
        ),
        tooltip=[
            "series:N",
            alt.Tooltip("layer:Q", title=x, format=".0%" if relative else "d"),
            *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("value", "low", "high")),
        ],
    )
    return layered(bands, lines, points, width=420, height=260, title=title)


def _whole(data: Data) -> list[int] | UndefinedType:
    """Ticks at the layers and nowhere between: few of them make Vega fill the axis with halves."""
    return (
        sorted({int(layer) for layer in data["layer"]}) if isinstance(data, pd.DataFrame) else alt.Undefined
    )


def penalty_matrix(
    data: Data,
    *,
    names: tuple[str, str],
    rows: Sequence[str],
    columns: Sequence[str],
    domain: tuple[float, float],
    label: str,
    diverging: bool = False,
    low_is_alike: bool = True,
    title: str = "",
    theme: Theme = LIGHT,
) -> alt.LayerChart:
    """Layers of the bottom (rows) by layers of the top (columns), each cell with its number.

    Parameters
    ----------
    data : rows of `i`, `j` (layers as text), `value`.
    rows, columns : layers, in their order.
    diverging : whether 0 is the middle of the colours, or their low end.
    low_is_alike : whether low values are the bluest, as of penalties, so that blue means alike everywhere.
    """
    ramp = theme.diverging if diverging else theme.sequential[::-1] if low_is_alike else theme.sequential
    low, high = domain
    reach = high - low
    strong = {
        "diverging": f"abs(datum.value - {(low + high) / 2}) > {0.3 * reach}",
        "low": f"datum.value < {low + 0.42 * reach}",
        "high": f"datum.value > {low + 0.58 * reach}",
    }["diverging" if diverging else "low" if low_is_alike else "high"]
    axis = alt.Axis(labelAngle=0, domain=False, ticks=False)
    base = alt.Chart(data).encode(
        x=alt.X("j:O", title=f"layer of {names[1]}", axis=axis, scale=alt.Scale(domain=list(columns))),
        y=alt.Y("i:O", title=f"layer of {names[0]}", axis=axis, scale=alt.Scale(domain=list(rows))),
    )
    cells = base.mark_rect().encode(
        color=alt.Color(
            "value:Q",
            scale=alt.Scale(domain=list(domain), range=list(ramp), clamp=True),
            legend=colour_bar(label, length=120, ticks=3),
        ),
        tooltip=[
            alt.Tooltip("i:O", title=names[0]),
            alt.Tooltip("j:O", title=names[1]),
            alt.Tooltip("value:Q", title=label, format=".3f"),
        ],
    )
    most = max(len(rows), len(columns))
    side = 36 if most <= 9 else max(14, 320 // most)
    parts = [cells]
    if most <= 9:
        ink = alt.condition(strong, alt.value(theme.surface), alt.value(theme.ink))
        parts.append(base.mark_text(fontSize=10).encode(text=alt.Text("value:Q", format=".2f"), color=ink))
    return layered(*parts, width=side * len(columns), height=side * len(rows), title=title)


def learning_curves(
    data: pd.DataFrame, *, series: Sequence[str], title: str = "", theme: Theme = LIGHT
) -> alt.LayerChart:
    """Loss over steps, solid on the validation text and faint on that of the fit (Figure 6 of Brown et al.).

    Parameters
    ----------
    data : rows of `step`, `series`, `split` ("train" or "validation"), `loss`.
    """
    names = list(series)
    colors = [theme.levels[k % len(theme.levels)] for k in range(len(names))]
    base = alt.Chart(data).encode(
        x=alt.X("step:Q", title="step", axis=alt.Axis(grid=False, format="d")),
        y=alt.Y("loss:Q", title="loss (nats)", scale=alt.Scale(zero=False)),
        color=alt.Color(
            "series:N",
            scale=alt.Scale(domain=names, range=colors),
            title=None,
            legend=alt.Legend(symbolOpacity=1),
        ),
        tooltip=["series:N", "split:N", "step:Q", alt.Tooltip("loss:Q", format=".3f")],
    )
    train = base.transform_filter("datum.split === 'train'").mark_line(strokeWidth=1, opacity=0.45)
    validation = base.transform_filter("datum.split === 'validation'").mark_line(strokeWidth=2, point=True)
    return layered(train, validation, width=440, height=260, title=title)
