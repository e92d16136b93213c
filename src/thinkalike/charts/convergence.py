"""How an estimate settles as batches come in."""

from __future__ import annotations

import altair as alt
import pandas as pd

from thinkalike.charts.theme import LIGHT, Theme, layered


def convergence(
    trace: pd.DataFrame, *, precision: float | None = None, theme: Theme = LIGHT
) -> alt.VConcatChart:
    """Mean CKA over batches, and below it the largest standard error with the precision that was asked for.

    Parameters
    ----------
    trace : rows of `batches`, `mean`, `standard_error`.
    """
    x = alt.X("batches:Q", title="batches", axis=alt.Axis(grid=False, format="d", tickMinStep=1))
    base = alt.Chart(trace).encode(x=x)
    mean = base.mark_line(color=theme.systems[0], strokeWidth=2).encode(
        y=alt.Y("mean:Q", title="mean CKA", scale=alt.Scale(zero=False))
    )
    error = base.mark_line(color=theme.systems[1], strokeWidth=2).encode(
        y=alt.Y("standard_error:Q", title="largest standard error")
    )
    parts = [error]
    if precision is not None:
        asked = alt.Chart(pd.DataFrame({"precision": [precision]}))
        parts.append(asked.mark_rule(strokeDash=[4, 3]).encode(y="precision:Q"))
    return alt.vconcat(layered(mean, width=420, height=120), layered(*parts, width=420, height=120))
