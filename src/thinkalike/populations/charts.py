"""Charts of populations: a map and a tree of models, what goes with them, features over training."""

from __future__ import annotations

import numpy as np
import pandas as pd

from thinkalike.charts.group_charts import dendrogram, model_map
from thinkalike.charts.population_charts import fact_importances, feature_lines, model_matrix
from thinkalike.charts.range_charts import range_figure
from thinkalike.charts.theme import get_theme, themed
from thinkalike.populations.between_models import Distances
from thinkalike.populations.diffing import Difference
from thinkalike.populations.model_maps import ModelMap
from thinkalike.populations.model_trees import ModelTree
from thinkalike.populations.why import Why
from thinkalike.populations.why_sensitivity import WhySensitivity
from thinkalike.types import Chart
from thinkalike.wording import readable

CORNERS = 33
"""Of an ellipse as it is drawn"""


def map_chart(found: ModelMap, groups: pd.Series | None = None, *, theme: str = "light") -> Chart:
    """Models as points, coloured by group."""
    data = found.to_frame().rename(columns={"model": "system"})
    data["group"] = "models" if groups is None else [str(groups.get(name, "–")) for name in found.names]
    title = f"{len(found.names)} models by {found.by} (stress {found.stress:.2f})"
    rounds = None if found.folds is None else _rounds(data)
    return themed(model_map(data, ellipses=rounds, title=title, theme=get_theme(theme)), get_theme(theme))


def _rounds(data: pd.DataFrame) -> pd.DataFrame:
    """The ellipse of each model as corners of a line."""
    turn = np.linspace(0, 2 * np.pi, CORNERS)
    rows = []
    shapes = data[["x", "y", "semi_axis", "other_semi_axis", "angle"]].to_numpy(dtype=float)
    for system, (x, y, semi_axis, other_semi_axis, angle) in zip(data["system"], shapes, strict=True):
        along, across = semi_axis * np.cos(turn), other_semi_axis * np.sin(turn)
        places = {
            "x": x + along * np.cos(angle) - across * np.sin(angle),
            "y": y + along * np.sin(angle) + across * np.cos(angle),
        }
        rows.append(pd.DataFrame({"system": system, "corner": range(CORNERS), **places}))
    return pd.concat(rows, ignore_index=True)


def tree_chart(found: ModelTree, groups: pd.Series | None = None, *, theme: str = "light") -> Chart:
    """Models as leaves of a tree."""
    corners = [
        {"fork": fork, "corner": corner, "height": height, "place": place}
        for fork, places in enumerate(found.forks())
        for corner, (height, place) in enumerate(places)
    ]
    names = list(found.order)
    leaves = pd.DataFrame({"place": range(len(names)), "system": names})
    leaves["group"] = "models" if groups is None else [str(groups.get(name, "–")) for name in names]
    title = f"{len(names)} models by {found.by}, average linkage"
    chart = dendrogram(pd.DataFrame(corners), leaves, title=title, theme=get_theme(theme))
    return themed(chart, get_theme(theme))


def trace_chart(strengths: pd.DataFrame, *, theme: str = "light") -> Chart:
    """A line for every feature over training, one picture a layer."""
    named = strengths.assign(feature=strengths["feature"].map(readable))
    return themed(feature_lines(named, theme=get_theme(theme)), get_theme(theme))


def change_chart(found: Difference, *, theme: str = "light") -> Chart:
    """How strengths changed, one picture a layer."""
    data = pd.DataFrame(
        {
            "name": found.features["feature"].map(readable),
            "panel": found.features["layer"].map("layer {}".format),
            "value": found.features["change"],
            **{end: found.features[end] for end in ("low", "high")},
        }
    )
    title = f"From {found.base} to {found.tuned}"
    return range_figure(data, label="change of strength", title=title, theme=theme)


def distance_chart(found: Distances, *, theme: str = "light") -> Chart:
    """All models against all."""
    half = found.to_frame()
    both = pd.concat([half, half.rename(columns={"a": "b", "b": "a"})], ignore_index=True)
    title = f"{len(found.names)} models by {found.by}"
    chart = model_matrix(both, order=found.names, label="distance", title=title, theme=get_theme(theme))
    return themed(chart, get_theme(theme))


def why_chart(found: Why, *, theme: str = "light") -> Chart:
    """Importances of facts, with their ranges."""
    data = found.to_frame().rename(columns={"facts": "name", "importance": "value"})
    title = f"Why {found.n_models} models are alike by {found.by}"
    kept = data[["name", "value", "low", "high"]]
    return range_figure(kept, label="importance (loss of ρ)", title=title, theme=theme)


def sensitivity_chart(found: WhySensitivity, *, theme: str = "light") -> Chart:
    """The importance of every fact in all analyses."""
    order = list(found.to_frame()["fact"])
    rows = found.rows.assign(place=found.rows["fact"].map(order.index)).sort_values("place", kind="stable")
    data = rows[["fact", "importance", "choice", "analysis"]].rename(columns={"choice": "kind"})
    return themed(fact_importances(data, label="importance", theme=get_theme(theme)), get_theme(theme))
