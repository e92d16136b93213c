"""Figures of what Salle et al. 2024 left open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from thinkalike.charts.block_charts import UNTRAINED, system_pairs
from thinkalike.charts.theme import LIGHT, layered, system_color, system_shape, themed
from thinkalike.comparison import chart_tables, plots
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.profiles import Profile
from thinkalike.inference.blocks import Floats
from thinkalike.recipes.findings import Figure
from thinkalike.report import frames
from thinkalike.wording import readable


def interactions(rows: pd.DataFrame) -> Figure:
    """What interactions add to ρ, layer by layer."""
    data = rows.assign(gain=rows["full"] - rows["diagonal"])
    systems = list(dict.fromkeys(data["system"]))
    base = alt.Chart(data).encode(
        x=alt.X("layer:O", title="layer", axis=alt.Axis(labelAngle=0, grid=False)),
        y=alt.Y("gain:Q", title="ρ(full W) − ρ(diagonal W)"),
        color=system_color(systems, LIGHT),
    )
    lines = base.mark_line(strokeWidth=1.5)
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        shape=system_shape(systems),
        tooltip=["system:N", "layer:O", alt.Tooltip("gain:Q", format="+.3f"), "needed:N"],
    )
    zero = alt.Chart(pd.DataFrame({"y": [0.0]})).mark_rule(color=LIGHT.muted).encode(y="y:Q")
    return Figure(
        name="interactions",
        title="What interactions between features add",
        chart=themed(layered(zero, lines, points, width=460, height=220)),
        caption="Held-out ρ with a full W, in which features may act together, minus ρ with the diagonal W "
        "of the paper. Above the line interactions help; below it they only fit noise.",
        of_paper="",
    )


def feature_set(same: Mapping[str, float]) -> Figure:
    """How far the matrix by features stays the same."""
    data = pd.DataFrame({"set": [readable(name) for name in same], "rho": list(same.values())})
    base = alt.Chart(data).encode(
        y=alt.Y("set:N", sort=list(data["set"]), title=None, axis=alt.Axis(labelLimit=260, ticks=False)),
        x=alt.X(
            "rho:Q",
            title="ρ with the matrix of all features",
            scale=alt.Scale(domain=[min(0.0, data["rho"].min()), 1]),
        ),
    )
    bars = base.mark_bar(color=LIGHT.accent, height=alt.RelativeBandSize(0.6))
    text = base.mark_text(align="left", dx=4).encode(text=alt.Text("rho:Q", format=".2f"))
    return Figure(
        name="feature-set",
        title="How much the answer depends on the list of features",
        chart=themed(layered(bars, text, width=360, height=24 * len(data))),
        caption="Rank correlation, over all pairs of layers, between the matrix by all features and the "
        "one with a feature left out of the rankings, or with word frequency added to the encoding models.",
        of_paper="",
    )


def untrained(comparison: Comparison) -> Figure:
    """Trained models, untrained copies and chance."""
    table = frames.block_frame(frames.blocks_between(comparison))
    chart = system_pairs(
        table,
        pairs=list(dict.fromkeys(table["pair"])),
        domain=frames.block_domain(table),
        controls=UNTRAINED in set(table["kind"]),
    )
    return Figure(
        name="untrained",
        title="Trained models against copies with random weights",
        chart=themed(chart),
        caption="A diamond to the right of the dot says that copies without any training agree even more: "
        "their likeness comes from the words and the architectures.",
        of_paper="",
    )


def checkpoints(found: Sequence[Profile]) -> Figure:
    """Profiles at several steps of training."""
    order = chart_tables.colour_order(found[0].features, np.concatenate([p.mean_importance for p in found]))
    domain = chart_tables.importance_domain([chart_tables.profile_table(p) for p in found])
    parts = [plots.importance_chart(p, LIGHT, order=order, domain=domain) for p in found]
    return Figure(
        name="checkpoints",
        title="Profiles while a model trains",
        chart=themed(alt.hconcat(*parts)),
        caption="The same model after few steps, after more, and finished.",
        of_paper="",
    )


def positions(kept: Mapping[str, Floats], removed: Mapping[str, Floats]) -> Figure:
    """Importance of word position in models that are told where a word stands, and that are not."""
    data = pd.concat(
        [
            pd.DataFrame(
                {"system": name, "positions": which, "layer": np.arange(len(v[name])), "value": v[name]}
            )
            for name in kept
            for which, v in (("kept", kept), ("set to 0", removed))
        ]
    )
    chart = (
        alt.Chart(data)
        .mark_line(point=alt.OverlayMarkDef(filled=True, size=40), strokeWidth=2)
        .encode(
            x=alt.X("layer:O", title="layer", axis=alt.Axis(labelAngle=0, grid=False)),
            y=alt.Y("value:Q", title="importance of word position"),
            color=alt.Color(
                "positions:N",
                title="positions",
                scale=alt.Scale(domain=["kept", "set to 0"], range=[LIGHT.accent, LIGHT.negative[2]]),
            ),
            strokeDash=alt.StrokeDash("positions:N", legend=None),
            column=alt.Column("system:N", title=None, sort=list(kept)),
        )
        .properties(width=240, height=200)
    )
    return Figure(
        name="positions",
        title="Without positions",
        chart=themed(chart),
        caption="Importance of word position in every layer, with the position embeddings or rotations as "
        "they are, and set to 0 in the finished model.",
        of_paper="",
    )
