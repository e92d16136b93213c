"""Charts of populations: a map and a tree of models."""

from __future__ import annotations

import pandas as pd

from thinkalike.charts.group_charts import dendrogram, model_map
from thinkalike.charts.theme import get_theme, themed
from thinkalike.populations.model_maps import ModelMap
from thinkalike.populations.model_trees import ModelTree
from thinkalike.types import Chart


def map_chart(found: ModelMap, groups: pd.Series | None = None, *, theme: str = "light") -> Chart:
    """Models as points, coloured by group."""
    data = found.to_frame().rename(columns={"model": "system"})
    data["group"] = "models" if groups is None else [str(groups.get(name, "–")) for name in found.names]
    title = f"{len(found.names)} models by {found.by} (stress {found.stress:.2f})"
    return themed(model_map(data, title=title, theme=get_theme(theme)), get_theme(theme))


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
