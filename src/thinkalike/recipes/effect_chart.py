"""All effects of a run with their ranges, beside what would have borne the paper out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap

import altair as alt
import pandas as pd

from thinkalike.charts.theme import LIGHT, layered, themed
from thinkalike.recipes.findings import Figure, Statement

COLORS = {"agrees": LIGHT.accent, "differs": LIGHT.negative[2], "undecided": LIGHT.muted}
WIDTH, ROW = 420, 20
LABELS, LETTER = 260, 7
"""Pixels that labels have at most, and that a letter takes"""


def effect_figure(statements: Sequence[Statement]) -> Figure:
    """A panel for each tested statement: dots are effects, lines their ranges, dashes the rule's ends."""
    tested = [one for one in statements if one.rule is not None and one.effects]
    longest = max((len(effect.about) for one in tested for effect in one.effects), default=0)
    room = min(LABELS, LETTER * longest)  # the same in all panels, so that they stand below one another
    return Figure(
        name="effects",
        title="Every effect with its range",
        chart=themed(alt.vconcat(*(_panel(one, room) for one in tested), spacing=14)),
        caption="A dot is the effect, the line through it its 95 % range. Dashed: where the rule says that "
        "the paper is borne out, on the side of the arrow. Blue agrees, brown differs, grey is undecided.",
        of_paper="",
    )


def _panel(statement: Statement, room: int) -> alt.LayerChart:
    rule = statement.rule
    assert rule is not None
    data = pd.DataFrame(
        {
            "about": one.about or "all",
            "value": one.value,
            "low": one.value if math.isnan(one.low) else one.low,
            "high": one.value if math.isnan(one.high) else one.high,
        }
        for one in statement.effects
    )
    axis = alt.Axis(labelLimit=LABELS, minExtent=room, ticks=False)
    y = alt.Y("about:N", title=None, sort=list(data["about"]), axis=axis)
    scale = alt.Scale(zero=False, nice=True)
    base = alt.Chart(data).encode(y=y)
    color = alt.value(COLORS[statement.verdict])
    ranges = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("low:Q", title=wrap(_written(rule.effect), 76), scale=scale, axis=alt.Axis(tickCount=5)),
        x2="high:Q",
        color=color,
    )
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(x="value:Q", color=color)
    ends = [
        {"x": end, "mark": mark}
        for end, mark in ((rule.at_least, "→"), (rule.at_most, "←"))
        if math.isfinite(end)
    ]
    marks = alt.Chart(pd.DataFrame(ends))
    lines = marks.mark_rule(strokeDash=[4, 3], color=LIGHT.muted).encode(x="x:Q")
    arrows = marks.mark_text(dy=-4, baseline="bottom", fontSize=13, color=LIGHT.muted).encode(
        x="x:Q", y=alt.value(0), text="mark:N"
    )
    return layered(lines, arrows, ranges, dots, width=WIDTH, height=ROW * len(data)).properties(
        title=alt.TitleParams(
            wrap(_written(statement.paper), 88), anchor="start", fontSize=12, fontWeight="normal"
        )
    )


def _written(text: str) -> str:
    """A chart has no subscripts."""
    return text.replace("τ_w", "weighted τ")
