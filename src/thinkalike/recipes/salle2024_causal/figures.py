"""The figures: plain tables in, charts out."""

from __future__ import annotations

import altair as alt
import pandas as pd

from thinkalike.charts.theme import LIGHT, SHAPES, themed
from thinkalike.recipes.effects import median_range
from thinkalike.recipes.findings import Figure
from thinkalike.types import Chart

WIDTH, HEIGHT = 210, 200


def causal_figures(rows: pd.DataFrame) -> list[Figure]:
    """rows : those of `measure`, with `rise` and `fall`."""
    over = "Dots are medians over sets of sentences, lines their 95 % ranges."
    return [
        Figure(
            "loss",
            "What the loss gains when a feature is taken out",
            by_layer(rows, "rise", "rise of the loss above random (nats per token)"),
            "Loss on text without the directions of a feature, less that with as much taken out along random "
            f"directions, layer by layer. {over}",
            "",
        ),
        Figure(
            "agreement",
            "What the preference for the right verb loses",
            by_layer(rows, "fall", "fall of the preference above random (nats)"),
            "Log-probability of the right sentence less that of the wrong one, in minimal pairs of "
            f"agreement: with as much taken out along random directions, less without the feature. {over}",
            "",
        ),
        Figure(
            "importance",
            "Importance for the distances, and for the model",
            scatter(rows),
            "A point is a feature in a layer, the mean over sets.",
            "",
        ),
    ]


def by_layer(rows: pd.DataFrame, column: str, title: str) -> Chart:
    """A panel for each model; layers from left to right."""
    shown = []
    for (model, layer, feature), own in rows.groupby(["model", "layer", "feature"], sort=False):
        low, high = median_range(own[column].to_numpy())
        middle = float(own[column].median())
        ends = (middle, middle) if low != low else (low, high)
        shown.append(
            {
                "model": model,
                "layer": layer,
                "feature": _said(feature),
                "value": middle,
                "low": ends[0],
                "high": ends[1],
            }
        )
    data = pd.DataFrame(shown)
    features = list(dict.fromkeys(data["feature"]))
    panels = []
    for model, own in data.groupby("model", sort=False):
        base = alt.Chart(own).encode(
            x=alt.X("layer:O", title="layer", axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("feature:N", sort=features),
            color=_color(features),
        )
        y = alt.Y("low:Q", title=title if not panels else None)
        ranges = base.mark_rule(strokeWidth=2).encode(y=y, y2="high:Q")
        dots = base.mark_point(filled=True, size=60, opacity=1).encode(y="value:Q", shape=_shape(features))
        zero = (
            alt.Chart(pd.DataFrame({"y": [0.0]}))
            .mark_rule(color=LIGHT.muted, strokeDash=[4, 3])
            .encode(y="y:Q")
        )
        panels.append(alt.layer(zero, ranges, dots).properties(width=WIDTH, height=HEIGHT, title=str(model)))
    return themed(alt.hconcat(*panels, spacing=24).resolve_scale(y="shared"))


def scatter(rows: pd.DataFrame) -> Chart:
    means = (
        rows.groupby(["model", "layer", "feature"], sort=False)[["importance", "rise"]].mean().reset_index()
    )
    means["feature"] = [_said(name) for name in means["feature"]]
    features = list(dict.fromkeys(means["feature"]))
    panels = [
        alt.Chart(own)
        .mark_point(filled=True, size=70, opacity=0.9)
        .encode(
            x=alt.X("importance:Q", title="importance (drop in ρ)", axis=alt.Axis(tickCount=4)),
            y=alt.Y("rise:Q", title="rise of the loss above random" if not k else None),
            color=_color(features),
            shape=_shape(features),
            tooltip=[
                "feature:N",
                "layer:O",
                alt.Tooltip("importance:Q", format=".3f"),
                alt.Tooltip("rise:Q", format=".3f"),
            ],
        )
        .properties(width=WIDTH, height=HEIGHT, title=str(model))
        for k, (model, own) in enumerate(means.groupby("model", sort=False))
    ]
    return themed(alt.hconcat(*panels, spacing=24))


def _said(feature: object) -> str:
    return str(feature).replace("_", " ")


def _color(features: list[str]) -> alt.Color:
    return alt.Color(
        "feature:N",
        title=None,
        scale=alt.Scale(domain=features, range=list(LIGHT.system_colors(len(features)))),
    )


def _shape(features: list[str]) -> alt.Shape:
    return alt.Shape(
        "feature:N", title=None, scale=alt.Scale(domain=features, range=list(SHAPES[: len(features)]))
    )
