"""The heat map of correlations among features."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

CELL = 46


def correlation_chart(frame: pd.DataFrame, *, order: Sequence[str]) -> alt.LayerChart:
    """A square of cells coloured from −1 to 1, the value written in each.

    Parameters
    ----------
    frame : columns `feature`, `other`, `correlation`.
    order : the features from top to bottom and from left to right.
    """
    table = frame.assign(
        **{axis: frame[axis].str.replace("_", " ") for axis in ("feature", "other")},
        label=[_label(value) for value in frame["correlation"]],
    )
    names = [name.replace("_", " ") for name in order]
    base = alt.Chart(table).encode(
        x=alt.X("other:N", sort=names, title=None, axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("feature:N", sort=names, title=None),
        tooltip=["feature", "other", alt.Tooltip("correlation:Q", format=".3f")],
    )
    cells = base.mark_rect(stroke="white").encode(
        color=alt.Color(
            "correlation:Q",
            scale=alt.Scale(scheme="blueorange", domain=[-1, 1]),
            legend=alt.Legend(title="Pearson r"),
        )
    )
    labels = base.mark_text(fontSize=11).encode(
        text="label:N",
        color=alt.condition("abs(datum.correlation) > 0.6", alt.value("white"), alt.value("#333")),
    )
    side = CELL * len(names)
    title = alt.TitleParams("Correlations among feature differences", anchor="start")
    return alt.layer(cells, labels).properties(width=side, height=side, title=title)


def _label(value: float) -> str:
    """Two decimals and a true minus; a dash where there is no correlation."""
    if pd.isna(value):
        return "–"
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")
