"""The figures: plain tables in, charts out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import altair as alt
import pandas as pd

from thinkalike.charts.group_charts import dendrogram, group_means, model_map
from thinkalike.charts.theme import LIGHT, SHAPES, themed
from thinkalike.inference.clusters import Clusters
from thinkalike.recipes.brown2023_generalization.choice import GENERALIZING, HEURISTIC
from thinkalike.types import Chart

if TYPE_CHECKING:
    from thinkalike.recipes.brown2023_generalization.choice import Choice

OTHERS, TAUGHT = "others", "taught"
FROM_BOTTOM = "share of the layers from the bottom model"


def spread_chart(data: pd.DataFrame) -> Chart:
    """data : rows of `model`, `inside`, `outside`, `group`."""
    three = LIGHT.system_colors(3)
    known = {GENERALIZING: three[0], HEURISTIC: three[1], OTHERS: LIGHT.muted, TAUGHT: three[2]}
    order = [name for name in known if name in set(data["group"])]
    colors = [known[name] for name in order]
    percent = alt.Axis(format="%", tickCount=5)
    near = alt.Scale(zero=False, padding=12)
    chart = (
        alt.Chart(data)
        .mark_point(filled=True, size=70, opacity=0.85)
        .encode(
            x=alt.X("inside:Q", title="right in distribution", axis=percent, scale=near),
            y=alt.Y("outside:Q", title="right out of distribution", axis=percent, scale=near),
            color=alt.Color("group:N", scale=alt.Scale(domain=order, range=colors), title=None),
            shape=alt.Shape(
                "group:N", scale=alt.Scale(domain=order, range=list(SHAPES[: len(order)])), title=None
            ),
            tooltip=[
                "model:N",
                alt.Tooltip("inside:Q", format=".1%"),
                alt.Tooltip("outside:Q", format=".1%"),
            ],
        )
        .properties(width=340, height=260)
    )
    return themed(chart)


def by_share(
    data: pd.DataFrame, *, label: str, title: str = "", x_title: str = "share of the layers"
) -> alt.LayerChart:
    """Means within and between groups over the share of the layers; to be joined or themed."""
    shown = data.assign(layer=[f"{share:.2f}".rstrip("0").rstrip(".") for share in data["layer"]])
    return group_means(shown, label=label, title=title, x_title=x_title)


def figure_2(penalties: pd.DataFrame, cka: pd.DataFrame) -> Chart:
    left = by_share(
        penalties, label="cost in accuracy", title="Identity stitching, in distribution", x_title=FROM_BOTTOM
    )
    right = by_share(cka, label="CKA", title="CKA, in distribution")
    return themed(
        alt.hconcat(left, right, spacing=40).resolve_scale(color="independent", shape="independent")
    )


def figure_7(accuracies: pd.DataFrame) -> Chart:
    title = "Identity stitching, out of distribution"
    return themed(by_share(accuracies, label="right, HANS-like", title=title, x_title=FROM_BOTTOM))


def variants_chart(means: Mapping[str, pd.DataFrame]) -> Chart:
    parts = [
        by_share(one, label="CKA", title=name).properties(width=300, height=190)
        for name, one in means.items()
    ]
    rows = [alt.hconcat(*parts[k : k + 2], spacing=40) for k in range(0, len(parts), 2)]
    return themed(alt.vconcat(*rows, spacing=24))


def figure_8(means: pd.DataFrame, places: pd.DataFrame, *, stress: float) -> Chart:
    """means : of distances by pair of groups. places : `system`, `group`, `x`, `y`."""
    left = group_means(means, label="distance by CKA", title="Within and between groups")
    right = model_map(places, title=f"Map of the models (stress {stress:.2f})")
    joined = alt.hconcat(left, right, spacing=40)
    return themed(joined.resolve_scale(color="independent", shape="independent"))


def trees(clusters: Mapping[str, Clusters]) -> Chart:
    parts = [
        dendrogram(*one.tree(), title=f"From {name}").properties(width=200) for name, one in clusters.items()
    ]
    return themed(alt.hconcat(*parts, spacing=90))


def barrier_chart(means: pd.DataFrame) -> Chart:
    return themed(group_means(means, label="barrier of the loss (nats)"))


def group_of(name: str, choice: Choice) -> str:
    return dict(zip(choice.names, choice.groups, strict=True)).get(name, OTHERS)
