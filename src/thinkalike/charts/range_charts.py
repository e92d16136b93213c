"""Values with their ranges: a dot and a line for each, in panels."""

from __future__ import annotations

import altair as alt
import pandas as pd

from thinkalike.charts.theme import LIGHT, Theme, get_theme, layered, themed
from thinkalike.types import Chart

NUMBERS = ("value", "low", "high")


def ranges(
    data: pd.DataFrame, *, label: str, columns: int = 3, title: str = "", theme: Theme = LIGHT
) -> alt.LayerChart | alt.FacetChart:
    """Dots with ranges, one row a name, one picture a panel.

    Parameters
    ----------
    data : rows of `name`, `value`, `low`, `high`; with `panel` one picture for each, and with `tick` a
        mark of its own, such as the most that could be reached. A range that is not known (NaN) is not drawn.
    label : what a value is.
    columns : panels side by side.
    """
    names = list(dict.fromkeys(data["name"]))
    y = alt.Y("name:N", sort=names, title=None, axis=alt.Axis(ticks=False, labelLimit=200))
    tips = [
        alt.Tooltip(f"{one}:Q", format=".3f") for one in (*NUMBERS, *(["tick"] if "tick" in data else []))
    ]
    bare = alt.Chart(data)
    base = bare.encode(y=y)
    parts = [
        bare.mark_rule(color=theme.rule).encode(x=alt.datum(0)),
        base.mark_rule(strokeWidth=2, color=theme.muted).encode(
            x=alt.X("low:Q", title=label, axis=alt.Axis(tickCount=6)), x2="high:Q"
        ),
        base.mark_point(filled=True, size=55, opacity=1, color=theme.system_colors(1)[0]).encode(
            x=alt.X("value:Q", title=label), tooltip=["name:N", *tips]
        ),
    ]
    if "tick" in data:
        tick = base.mark_tick(thickness=2, size=12, color=theme.ink).encode(x="tick:Q")
        parts.insert(1, tick)
    panels = data["panel"].nunique() if "panel" in data else 1
    if panels == 1:
        return layered(*parts, width=420, height=18 * len(names) + 20, title=title)
    order = list(dict.fromkeys(data["panel"]))
    one = layered(*parts, width=220, height=18 * len(names) + 20)
    return one.facet(facet=alt.Facet("panel:N", sort=order, title=None), columns=columns, title=title)


def range_figure(data: pd.DataFrame, *, label: str, title: str, theme: str) -> Chart:
    """The same as a figure of its own, by the name of its theme."""
    chosen = get_theme(theme)
    return themed(ranges(data, label=label, title=title, theme=chosen), chosen)
