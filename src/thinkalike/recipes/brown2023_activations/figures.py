"""The figures: plain tables in, charts out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from thinkalike.charts.heatmap import similarity_matrix
from thinkalike.charts.stitching import learning_curves, penalty_lines
from thinkalike.charts.theme import themed
from thinkalike.types import Chart

LABEL = "cost (nats per token)"


def lines(penalties: pd.DataFrame, *, quiet: Sequence[str] = ()) -> Chart:
    """A panel per size; penalties : rows of size, bottom, top, layer, penalty, low, high."""
    data = penalties.assign(series=_series(penalties), value=penalties["penalty"])
    names = list(dict.fromkeys(data["series"]))
    panels = [
        penalty_lines(
            own.drop_duplicates(["series", "layer"]),
            series=names,
            quiet=[name for name in quiet if name in names],
            label=LABEL,
            x="layer of the bottom",
            title=str(size),
        ).properties(width=330)
        for size, own in data.groupby("size", sort=False)
    ]
    return themed(panels[0] if len(panels) == 1 else alt.hconcat(*panels, spacing=40))


def curves(table: pd.DataFrame, *, layer: int) -> Chart:
    """The learning curves of one layer, a panel per size."""
    own = table[table["layer"] == layer]
    names = list(dict.fromkeys(own["series"]))
    panels = [
        learning_curves(one, series=names, title=f"{size}, layer {layer}").properties(width=330)
        for size, one in own.groupby("size", sort=False)
    ]
    return themed(panels[0] if len(panels) == 1 else alt.hconcat(*panels, spacing=40))


def cka_matrix(found: Mapping[str, object], labels: Sequence[str]) -> Chart:
    """All blocks of the models against each other."""
    values = np.asarray(found["values"])
    n = len(values)
    depth = n // len(labels)
    names = [f"{label}:{layer}" for label in labels for layer in range(1, depth + 1)]
    data = pd.DataFrame(
        {
            "i": np.repeat(np.arange(n), n),
            "j": np.tile(np.arange(n), n),
            "a": np.repeat(names, n),
            "b": np.tile(names, n),
            "value": values.ravel(),
        }
    )
    layers = [str(layer) for layer in range(1, depth + 1)]
    chart = similarity_matrix(
        data, systems=[(label, layers) for label in labels], domain=(0.0, 1.0), label="CKA", diverging=False
    )
    return themed(chart.properties(width=320, height=320))


def _series(penalties: pd.DataFrame) -> list[str]:
    return [f"{a} → {b}" for a, b in zip(penalties["bottom"], penalties["top"], strict=True)]
