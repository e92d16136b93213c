"""Whole systems against each other: the mean similarity of their layers, beside untrained copies."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from thinkalike.charts.theme import LIGHT, Data, Theme, layered

OBSERVED, UNTRAINED = "these systems", "untrained copies"


def system_pairs(
    data: Data,
    *,
    pairs: Sequence[str],
    domain: tuple[float, float],
    controls: bool = False,
    ranged: bool = False,
    title: str = "",
    legend: bool = True,
    theme: Theme = LIGHT,
) -> alt.LayerChart:
    """Mean τ_w over all layers of two systems, with its range, and that of untrained copies.

    Parameters
    ----------
    data : rows of `pair`, `kind` (one of the two names above), `value`, `note`, and `low` and `high` where
        there is a range over resamples.
    pairs : top to bottom.
    controls : whether there are rows of untrained copies.
    ranged : whether the axis says what the bands are, as the page does beside the chart.
    """
    looks = {
        OBSERVED: (theme.accent, "circle"),
        **({UNTRAINED: (theme.negative[2], "diamond")} if controls else {}),
    }
    kinds = list(looks)
    base = alt.Chart(data).encode(
        x=alt.X(
            "value:Q",
            title="mean weighted τ, and its 95 % range with other sentences" if ranged else "mean weighted τ",
            scale=alt.Scale(domain=list(domain), nice=False),
            axis=alt.Axis(tickCount=5),
        ),
        y=alt.Y(
            "pair:N",
            sort=list(pairs),
            title=None,
            axis=alt.Axis(domain=False, ticks=False, labelLimit=260, labelColor=theme.ink, labelFontSize=12),
        ),
    )
    stems = base.transform_filter(f"datum.kind === {OBSERVED!r}").mark_bar(
        height=2, color=theme.accent, opacity=0.5
    )
    key = alt.Legend(orient="bottom", title=None, symbolStrokeWidth=2) if legend else None
    points = base.mark_point(filled=True, size=110, opacity=1, strokeWidth=2).encode(
        color=alt.Color(
            "kind:N", legend=key, scale=alt.Scale(domain=kinds, range=[looks[k][0] for k in kinds])
        ),
        shape=alt.Shape(
            "kind:N", legend=key, scale=alt.Scale(domain=kinds, range=[looks[k][1] for k in kinds])
        ),
        tooltip=["pair:N", "kind:N", alt.Tooltip("value:Q", format=".2f"), "note:N"],
    )
    ranges = (
        base.transform_filter("isValid(datum.low)")
        .mark_bar(height=9, color=theme.accent, opacity=0.3, cornerRadius=4)
        .encode(x=alt.X("low:Q"), x2="high:Q")
    )
    return layered(stems, ranges, points, width=420, height=36 * len(pairs), title=title)
