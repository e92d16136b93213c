"""The figures: plain tables in, charts out."""

from __future__ import annotations

import math
from textwrap import wrap

import altair as alt
import numpy as np
import pandas as pd

from thinkalike.charts.theme import LIGHT, SHAPES, themed
from thinkalike.recipes.effects import median_range
from thinkalike.recipes.findings import Figure
from thinkalike.types import Chart
from thinkalike.wording import readable

WIDTH, HEIGHT = 210, 200
KINDS = {"without": "the feature", "random": "random directions"}
"""Column of the table → what is taken out, as the figures say it"""


def causal_figures(rows: pd.DataFrame) -> list[Figure]:
    """rows : those of `measure`, with `rise`."""
    over = (
        "Dots are the feature, crosses as much along as many random directions. Marks are medians over sets "
        "of sentences, lines their 95 % ranges; 0 is the model as it is."
    )
    return [
        Figure(
            "loss",
            "What the loss gains when a feature is taken out",
            by_layer(rows, "loss", "loss above the model's own (nats per token)"),
            f"On text, by the layer that the directions are taken out of. {over}",
            "",
        ),
        Figure(
            "agreement",
            "What becomes of agreement when a feature is taken out",
            by_layer(rows, "preference", "preference above the model's own (nats)"),
            "Log-probability of the right sentence less that of the wrong one, in minimal pairs of "
            f"agreement, by layer. {over}",
            "",
        ),
        Figure(
            "importance",
            "Importance for the distances, and for the model",
            scatter(rows),
            "A point is a feature in a layer, the mean over sets. Upwards: what the loss rises without it, "
            "above the random control.",
            "",
        ),
    ]


def by_layer(rows: pd.DataFrame, column: str, title: str) -> Chart:
    """A panel for each model; layers from left to right."""
    data = _ranges(rows, column)
    features = list(dict.fromkeys(data["feature"]))
    kinds = list(KINDS.values())
    series = [f"{feature} {kind}" for feature in features for kind in kinds]
    shape = alt.Shape("kind:N", title=None, scale=alt.Scale(domain=kinds, range=["circle", "cross"]))
    zero = alt.Chart(pd.DataFrame({"y": [0.0]})).mark_rule(color=LIGHT.muted, strokeDash=[4, 3])
    panels: list[alt.LayerChart | alt.FacetChart] = []
    for model, own in data.groupby("model", sort=False):
        base = alt.Chart(own).encode(
            x=alt.X("layer:O", title="layer", axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("series:N", sort=series),
            color=_color(features),
        )
        ranges = base.mark_rule(strokeWidth=2).encode(
            y=alt.Y("low:Q", title=None if panels else wrap(title, 30)), y2="high:Q"
        )
        dots = base.mark_point(filled=True, size=60, opacity=1).encode(y="value:Q", shape=shape)
        panel = alt.layer(zero.encode(y="y:Q"), ranges, dots)
        panels.append(panel.properties(width=WIDTH, height=HEIGHT, title=str(model)))
    return themed(alt.hconcat(*panels, spacing=24).resolve_scale(y="shared"))


def _ranges(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Rows of model, layer, feature, kind, series, value, low, high: above the model's own."""
    shown = []
    for (model, layer, feature), own in rows.groupby(["model", "layer", "feature"], sort=False):
        for kind, said in KINDS.items():
            values = (own[f"{column} {kind}"] - own[f"{column} own"]).to_numpy()
            middle = float(np.median(values))
            low, high = median_range(values)
            ends = (middle, middle) if math.isnan(low) else (low, high)
            names = {"model": model, "layer": layer, "feature": readable(str(feature)), "kind": said}
            names["series"] = f"{names['feature']} {said}"
            shown.append({**names, "value": middle, "low": ends[0], "high": ends[1]})
    return pd.DataFrame(shown)


def scatter(rows: pd.DataFrame) -> Chart:
    means = (
        rows.groupby(["model", "layer", "feature"], sort=False)[["importance", "rise"]].mean().reset_index()
    )
    means["feature"] = [readable(str(name)) for name in means["feature"]]
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
