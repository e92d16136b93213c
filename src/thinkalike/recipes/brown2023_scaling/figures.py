"""Figures 3, 9 and 10 of Brown et al. 2023, and what goes beyond them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from thinkalike.charts.heatmap import similarity_matrix
from thinkalike.charts.theme import LIGHT, layered, themed
from thinkalike.labels import Floats
from thinkalike.recipes.brown2023_scaling.measures import Values
from thinkalike.recipes.findings import Figure
from thinkalike.types import Chart


def short(name: str) -> str:
    """A model's name without its owner."""
    return name.rpartition("/")[2]


def without_prefix(names: Sequence[str]) -> tuple[str, dict[str, str]]:
    """What all names begin with, up to a hyphen, and each name without it, for where there is little room."""
    shown = {name: short(name) for name in names}
    prefix = ""
    for part in next(iter(shown.values())).split("-")[:-1]:
        if not all(one.startswith(f"{prefix}{part}-") for one in shown.values()):
            break
        prefix += f"{part}-"
    return prefix, {name: one.removeprefix(prefix) for name, one in shown.items()}


def heatmap(values: Floats, *, rows: str, columns: str, title: str = "") -> alt.Chart:
    """CKA between the blocks of two models, the first layers below and left."""
    n, m = values.shape
    data = pd.DataFrame(
        {
            "row": np.repeat(np.arange(1, n + 1), m),
            "column": np.tile(np.arange(1, m + 1), n),
            "value": values.ravel(),
        }
    )
    cell = float(np.clip(220 / max(n, m), 6, 56))
    axis = alt.Axis(labelAngle=0, labelOverlap=True, grid=False, ticks=False, domain=False)
    return (
        alt.Chart(data)
        .mark_rect()
        .encode(
            x=alt.X("column:O", title=columns, axis=axis),
            y=alt.Y("row:O", title=rows, axis=axis, sort="descending"),
            color=alt.Color(
                "value:Q",
                title="CKA",
                scale=alt.Scale(domain=[0, 1], range=list(LIGHT.sequential), clamp=True),
            ),
            tooltip=["row:O", "column:O", alt.Tooltip("value:Q", format=".3f")],
        )
        .properties(width=cell * m, height=cell * n, title=title)
    )


def with_largest(values: Values, names: Sequence[str]) -> Figure:
    """Every member against the largest."""
    largest = names[-1]
    parts = [heatmap(values[name, largest], rows=short(name), columns=short(largest)) for name in names]
    return Figure(
        name="with-largest",
        title=f"Every member against the largest, {short(largest)}",
        chart=themed(alt.concat(*parts, columns=4)),
        caption="CKA between the blocks of each member (upwards) and of the largest (to the right). "
        "The last is the largest against itself.",
        of_paper="Figure 3",
    )


def family(values: Values, names: Sequence[str]) -> Figure:
    """All blocks of all members in one matrix."""
    rows = [(name, k) for name in names for k in range(len(values[name, name]))]
    matrix = np.block([[values[a, b] for b in names] for a in names])
    n = len(rows)
    labels = [f"{short(name)}:{k + 1}" for name, k in rows]
    data = pd.DataFrame(
        {
            "i": np.repeat(np.arange(n), n),
            "j": np.tile(np.arange(n), n),
            "value": matrix.ravel(),
            "a": np.repeat(labels, n),
            "b": np.tile(labels, n),
        }
    )
    prefix, shorter = without_prefix(names)
    systems = [(shorter[name], [str(k + 1) for owner, k in rows if owner == name]) for name in names]
    chart = similarity_matrix(
        data, systems=systems, domain=(0.0, 1.0), label="CKA", diverging=False, every=1 + n // 24
    )
    return Figure(
        name="family",
        title="Within and between all members of the family",
        chart=themed(chart),
        caption="Each cell is a pair of blocks: on the diagonal blocks of one model, off it of two. A "
        f"member that is unlike the others shows as a band of low CKA. Names without {prefix!r}.",
        of_paper="Figure 9",
    )


def each_with_itself(values: Mapping[str, Floats]) -> Chart:
    """CKA between the blocks of one model, a panel for each."""
    parts = [
        heatmap(own, rows=short(name), columns=short(name), title=short(name)) for name, own in values.items()
    ]
    return themed(alt.concat(*parts, columns=4))


def within(values: Values, names: Sequence[str]) -> Figure:
    """Each member against itself."""
    return Figure(
        name="within",
        title="Likeness within each member, the smallest first",
        chart=each_with_itself({name: values[name, name] for name in names}),
        caption="CKA between the blocks of one model. Squares along the diagonal are blocks of layers that "
        "do much the same.",
        of_paper="Figure 10",
    )


def flattened(values: Values, names: Sequence[str]) -> Figure:
    """Each member against itself, a passage being one item."""
    return Figure(
        name="flattened",
        title="Likeness within each member, whole passages as items",
        chart=each_with_itself({name: values[name, name] for name in names}),
        caption="CKA between the blocks of one model where a passage is one vector, positions and features "
        "flattened to one dimension (footnote 6), which the paper did not evaluate.",
        of_paper="",
    )


def size_and_loss(table: pd.DataFrame) -> Figure:
    """Mean CKA within a model against its size and its loss.

    Parameters
    ----------
    table : rows of `model`, `parameters`, `loss`, `within`, `kind` ("member" or "checkpoint").
    """
    prefix, shorter = without_prefix(list(table["model"]))
    table = table.assign(label=[shorter[name] for name in table["model"]])
    kinds = ["member", "checkpoint"]
    color = alt.Color(
        "kind:N", title=None, scale=alt.Scale(domain=kinds, range=[LIGHT.accent, LIGHT.negative[2]])
    )
    y = alt.Y("within:Q", title="mean CKA between blocks", scale=alt.Scale(zero=False))
    charts = []
    for field, title, log in (("parameters", "parameters", True), ("loss", "loss (nats per token)", False)):
        x = alt.X(
            f"{field}:Q",
            title=title,
            scale=alt.Scale(type="log") if log else alt.Scale(zero=False),
            axis=alt.Axis(format="~s", tickCount=5),
        )
        base = alt.Chart(table).encode(x=x, y=y)
        points = base.mark_point(filled=True, size=90, opacity=1).encode(
            color=color,
            shape=alt.Shape("kind:N", title=None, scale=alt.Scale(domain=kinds, range=["circle", "diamond"])),
        )
        names = base.mark_text(align="left", dx=8, dy=-6, fontSize=10).encode(text="label:N")
        charts.append(layered(points, names, width=340, height=240))
    return Figure(
        name="size-and-loss",
        title="Likeness within a model, against its size and against its loss",
        chart=themed(alt.hconcat(*charts)),
        caption="Dots are finished members of the family, diamonds one member at earlier steps of its "
        f"training: the same size, a higher loss. Names without {prefix!r}.",
        of_paper="",
    )


def odd(scores: Mapping[str, float], expected: str) -> Figure:
    """How unlike the others each member is."""
    data = pd.DataFrame(
        {
            "model": [short(name) for name in scores],
            "score": list(scores.values()),
            "expected": [name == expected for name in scores],
        }
    )
    bars = (
        alt.Chart(data)
        .mark_bar(height=alt.RelativeBandSize(0.6))
        .encode(
            y=alt.Y(
                "model:N", sort=list(data["model"]), title=None, axis=alt.Axis(labelLimit=240, ticks=False)
            ),
            x=alt.X("score:Q", title="how much less alike to the others than these among themselves (CKA)"),
            color=alt.condition("datum.expected", alt.value(LIGHT.negative[2]), alt.value(LIGHT.accent)),
        )
    )
    return Figure(
        name="odd",
        title="Which member is the odd one",
        chart=themed(bars.properties(width=420, height=30 * len(data))),
        caption="Over intermediate blocks. In brown the member whose attention heads are off the family's "
        "trend.",
        of_paper="",
    )


def state_space(values: Mapping[str, Floats]) -> Figure:
    """A state-space model beside a Transformer."""
    return Figure(
        name="state-space",
        title="A state-space model beside a Transformer",
        chart=each_with_itself(values),
        caption="CKA between the blocks of one model, which the paper left to future work for state-space "
        "models.",
        of_paper="",
    )
