"""Populations of models: distances between all, what facts matter, and features over training."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from thinkalike.charts.theme import LIGHT, Theme, colour_bar, feature_color, layered


def model_matrix(
    data: pd.DataFrame, *, order: Sequence[str], label: str, title: str = "", theme: Theme = LIGHT
) -> alt.Chart:
    """Distances between all models.

    Parameters
    ----------
    data : rows of `a`, `b`, `distance`, both ways round.
    order : of the models, on both axes.
    """
    cell = max(6, min(18, 320 // len(order)))
    axis = alt.Axis(title=None, ticks=False, labelLimit=160)
    return (
        alt.Chart(data)
        .mark_rect()
        .encode(
            x=alt.X("b:N", sort=list(order), axis=axis.copy()),
            y=alt.Y("a:N", sort=list(order), axis=axis.copy()),
            color=alt.Color(
                "distance:Q",
                scale=alt.Scale(range=list(theme.sequential[::-1])),
                legend=colour_bar(label, length=140),
            ),
            tooltip=["a:N", "b:N", alt.Tooltip("distance:Q", title=label, format=".3f")],
        )
        .properties(width=cell * len(order), height=cell * len(order), title=title)
    )


def fact_importances(data: pd.DataFrame, *, label: str, theme: Theme = LIGHT) -> alt.LayerChart:
    """Facts with the importances that several sets of sentences give, and their median.

    Parameters
    ----------
    data : rows of `fact`, `importance`, `kind`; the most important fact first.
    """
    facts, kinds = list(dict.fromkeys(data["fact"])), list(dict.fromkeys(data["kind"]))
    x = alt.X("importance:Q", title=label)
    y = alt.Y("fact:N", sort=facts, title=None, axis=alt.Axis(ticks=False, labelLimit=200))
    color = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=kinds, range=theme.system_colors(len(kinds))),
        title=None,
        legend=alt.Legend(orient="bottom") if len(kinds) > 1 else None,
    )
    aside = alt.YOffset("kind:N", sort=kinds)
    base = alt.Chart(data).encode(y=y, yOffset=aside, color=color)
    dots = base.mark_point(filled=True, size=35, opacity=0.55).encode(x=x, tooltip=list(data))
    middle = base.mark_tick(thickness=3, size=14).encode(x=alt.X("median(importance):Q"))
    zero = alt.Chart(pd.DataFrame({"x": [0.0]})).mark_rule(color=theme.muted).encode(x="x:Q")
    return layered(zero, dots, middle, width=420, height=18 * len(facts) * len(kinds) + 20, title="")


def feature_lines(data: pd.DataFrame, *, theme: Theme = LIGHT) -> alt.FacetChart:
    """A line for every feature over training, one picture a layer.

    Parameters
    ----------
    data : rows of `checkpoint`, `step`, `layer`, `feature`, `strength`. The strongest features have colours.
    """
    strongest = data.groupby("feature", sort=False)["strength"].mean().sort_values(ascending=False)
    return (
        alt.Chart(data)
        .mark_line(point=True)
        .encode(
            x=alt.X("step:Q", title="training step"),
            y=alt.Y("strength:Q"),
            color=feature_color([str(name) for name in strongest.index], theme),
            tooltip=["checkpoint:N", "layer:N", "feature:N", alt.Tooltip("strength:Q", format=".3f")],
        )
        .properties(width=220, height=160)
        .facet("layer:N", columns=3)
    )
