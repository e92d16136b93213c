"""The curve of specifications: what every analysis finds, and what it chose (Simonsohn et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from thinkalike.charts.theme import LIGHT, Theme, shapes

STEP = 22
"""Pixels of one analysis"""


def specification_curve(
    values: pd.DataFrame,
    dominant: pd.DataFrame,
    choices: pd.DataFrame,
    *,
    analyses: Sequence[str],
    pairs: Sequence[str],
    features: Sequence[str],
    rows: Sequence[str],
    theme: Theme = LIGHT,
) -> alt.VConcatChart:
    """Three panels over the same analyses: likeness of the pairs, what dominates each system, the choices.

    Parameters
    ----------
    values : rows of `analysis`, `pair`, `value`, and `main`, true for the comparison as it was.
    dominant : rows of `analysis`, `system`, `feature`, `share`.
    choices : rows of `analysis`, `choice`, and `changed`, true where it is not that of the comparison.
    analyses : left to right.
    pairs, features : in the order of their colours.
    rows : choices, top to bottom.
    """
    width = STEP * len(analyses)
    x = alt.X("analysis:N", sort=list(analyses), title=None)
    bare = x.axis(labels=False, ticks=False, domain=False)
    named = alt.Axis(labelAngle=-55, labelLimit=220, ticks=False, domain=False)
    base = alt.Chart(values)
    marks = alt.Scale(domain=list(pairs), range=theme.system_colors(len(pairs)))
    signs = alt.Scale(domain=list(pairs), range=shapes(len(pairs)))
    main = (
        base.transform_filter("datum.main")
        .mark_rule(strokeWidth=STEP - 4, opacity=0.5, color=theme.rule)
        .encode(x=bare)
    )
    y = alt.Y("value:Q", title="mean weighted τ", scale=alt.Scale(zero=False, nice=True))
    lines = base.mark_line(strokeWidth=1, opacity=0.5).encode(
        x=bare, y=y, color=alt.Color("pair:N", scale=marks, title=None)
    )
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        x=bare,
        y=y,
        color=alt.Color("pair:N", scale=marks, title=None, legend=alt.Legend(symbolOpacity=1)),
        shape=alt.Shape("pair:N", scale=signs, title=None, legend=alt.Legend(symbolOpacity=1)),
        tooltip=["analysis:N", "pair:N", alt.Tooltip("value:Q", format=".2f")],
    )
    curve = alt.layer(main, lines, points).properties(
        width=width, height=200, title=_heading("How alike the systems are, analysis by analysis")
    )
    colors = alt.Scale(domain=list(features), range=theme.feature_colors(len(features)))
    systems = alt.Y("system:N", title=None, axis=_quiet(theme, grid=False), sort=None)
    dominance = (
        alt.Chart(dominant)
        .mark_rect(width=STEP - 4, cornerRadius=2)
        .encode(
            x=bare,
            y=systems,
            color=alt.Color("feature:N", scale=colors, title="dominated by"),
            tooltip=["analysis:N", "system:N", "feature:N", alt.Tooltip("share:Q", format=".0%")],
        )
        .properties(width=width, height=alt.Step(20), title=_heading("What dominates each system"))
    )
    dots = (
        alt.Chart(choices)
        .mark_point(filled=True, size=45, opacity=1)
        .encode(
            x=x.axis(named),
            y=alt.Y("choice:N", sort=list(rows), title=None, axis=_quiet(theme)),
            color=alt.condition("datum.changed", alt.value(theme.accent), alt.value(theme.rule)),
            tooltip=["analysis:N", "choice:N"],
        )
        .properties(
            width=width,
            height=alt.Step(17),
            title=_heading("The choices (blue: changed)"),
        )
    )
    return alt.vconcat(curve, dominance, dots, spacing=14).resolve_scale(
        color="independent", shape="independent"
    )


def _quiet(theme: Theme, *, grid: bool = True) -> alt.Axis:
    return alt.Axis(
        domain=False, ticks=False, labelLimit=260, labelColor=theme.ink, grid=grid, gridColor=theme.rule
    )


def _heading(text: str) -> alt.TitleParams:
    """In line with the panel, whatever the length of its labels."""
    return alt.TitleParams(text, frame="group")
