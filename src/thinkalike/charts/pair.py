"""One pair of layers: which features matter in both, and what each adds to τ_w."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from thinkalike.charts.theme import LIGHT, Data, Theme, feature_color, layered

# Labels of points closer than this share of the axis are pushed apart.
_LABEL_GAP = 0.062
_LETTER = 0.024  # the width of a letter, as a share of a plot 240 pixels wide

_LONG = 0.6  # bars from here on have their number within


def importance_scatter(
    data: Data,
    *,
    names: tuple[str, str],
    features: Sequence[str],
    domain: tuple[float, float],
    title: str = "",
    theme: Theme = LIGHT,
) -> alt.LayerChart:
    """Importance in one layer against importance in the other; on the diagonal they agree (Figure 4).

    Square-root axes: most features are small, and τ_w is about their order.

    Parameters
    ----------
    data : rows of `feature`, `a`, `b` and `matters`: whether it is important in one of the two, or else its
        point is grey and has no name, for those pile up at 0; the bars beside it name them all.
    names : of layer a, on the horizontal axis, and of layer b.
    domain : of both axes; the parameters `low` and `high` of the chart.
    """
    ends = [alt.param(name=name, value=value) for name, value in zip(("low", "high"), domain, strict=True)]
    scale = alt.Scale(type="sqrt", domain=[alt.ExprRef("low"), alt.ExprRef("high")], nice=False, zero=False)
    x = alt.X("a:Q", scale=scale, title=names[0], axis=alt.Axis(tickCount=4, grid=False))
    y = alt.Y("b:Q", scale=scale, title=names[1], axis=alt.Axis(tickCount=4, grid=False))
    diagonal = (
        alt.Chart(pd.DataFrame({"end": [0, 1]}))
        .transform_calculate(a="datum.end ? high : low", b="datum.end ? high : low")
        .mark_line(color=theme.rule, strokeWidth=1.5)
        .encode(x=x, y=y)
    )
    color = feature_color(features, theme, legend=None)
    colored = alt.condition("datum.matters", color, alt.value(theme.muted))
    points = (
        alt.Chart(data)
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            x=x,
            y=y,
            color=colored,
            tooltip=[
                "feature:N",
                alt.Tooltip("a:Q", title=names[0], format=".3f"),
                alt.Tooltip("b:Q", title=names[1], format=".3f"),
            ],
        )
    )
    placed = _placed_labels(alt.Chart(data).transform_filter("datum.matters"))
    labels = placed.mark_text(
        align=alt.expr("datum.right ? 'left' : 'right'"), dx=alt.expr("datum.right ? 8 : -8"), fontSize=11
    ).encode(x=x, y=alt.Y("label:Q"), text="feature:N", color=color)
    leaders = placed.mark_rule(strokeWidth=0.7, opacity=0.6).encode(x=x, y=y, y2="label:Q", color=color)
    return layered(diagonal, leaders, points, labels, width=300, height=300, title=title).add_params(*ends)


def _placed_labels(chart: alt.Chart) -> alt.Chart:
    """Where to write the names so that none overlap; Vega works it out anew for every pair that is shown.

    Names stand to the right of their points where there is room, else to the left. On each side, with r the
    square root of b as on the axis, the k-th lowest name goes to the running maximum of (r − k · gap), plus
    k · gap: it moves up no further than it must.
    """
    root = "((({0}) < 0 ? -1 : 1) * sqrt(abs({0})))".format
    start, end = root("low"), root("high")
    gap = f"{_LABEL_GAP} * ({end} - {start})"
    place = f"({root('datum.a')} - {start}) / ({end} - {start})"
    return (
        chart.transform_calculate(
            right=f"{place} + {_LETTER} * (length(datum.feature) + 1.5) < 1", root=root("datum.b")
        )
        .transform_window(rank="row_number()", sort=[alt.SortField("root")], groupby=["right"])
        .transform_calculate(free=f"datum.root - datum.rank * {gap}")
        .transform_window(
            pushed="max(free)", sort=[alt.SortField("rank")], frame=[None, 0], groupby=["right"]
        )
        .transform_calculate(moved=f"datum.pushed + datum.rank * {gap}")
        .transform_calculate(label="(datum.moved < 0 ? -1 : 1) * datum.moved * datum.moved")
    )


def contribution_bars(
    data: Data,
    *,
    features: Sequence[str],
    domain: tuple[float, float],
    total: str = "weighted τ",
    title: str = "",
    theme: Theme = LIGHT,
) -> alt.LayerChart:
    """What each feature adds to τ_w, the largest first, and below them their sum.

    Parameters
    ----------
    data : rows of `feature`, `contribution` and `matters`: whether it is important in one of the two, or else
        its bar is grey. The row whose feature is `total` is the sum.
    """
    last = f"datum.feature === {total!r}"
    scale = alt.Scale(domain=[*features, total], range=[*theme.feature_colors(len(features)), theme.ink])
    base = (
        alt.Chart(data)
        .transform_filter("isValid(datum.contribution)")  # a layer against itself has nothing but the sum
        .transform_calculate(order=f"{last} ? -10 : datum.contribution", free="max(0, datum.contribution)")
        .encode(
            y=alt.Y(
                "feature:N",
                sort=alt.EncodingSortField("order", op="max", order="descending"),
                title=None,
                axis=alt.Axis(domain=False, ticks=False, labelLimit=140, labelColor=theme.ink),
            )
        )
    )
    x = alt.X(
        "contribution:Q",
        title="contribution to weighted τ",
        scale=alt.Scale(domain=list(domain), nice=False),
        axis=alt.Axis(tickCount=5),
    )
    bars = base.mark_bar(height=alt.RelativeBandSize(0.66)).encode(
        x=x,
        color=alt.condition(
            f"datum.matters || {last}",
            alt.Color("feature:N", scale=scale, legend=None),
            alt.value(theme.rule),
        ),
        tooltip=["feature:N", alt.Tooltip("contribution:Q", format="+.3f")],
    )
    # Beside the bar, or on the other side of the line, where no name of a feature is in the way; at the end
    # of a long bar within it, where alone there is room.
    said = "abs(datum.contribution) < 0.005 ? '0.00' : format(datum.contribution, '+.2f')"  # never −0.00
    numbers = base.transform_calculate(said=said).encode(x=alt.X("free:Q"), text="said:N")
    beside = numbers.transform_filter(f"datum.contribution < {_LONG}").mark_text(
        align="left", dx=4, fontSize=10, color=theme.muted
    )
    within = numbers.transform_filter(f"datum.contribution >= {_LONG}").mark_text(
        align="right", dx=-4, fontSize=10, fontWeight="bold", color=theme.surface
    )
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(color=theme.muted).encode(x="zero:Q")
    return layered(bars, zero, beside, within, width=300, height=300, title=title)
