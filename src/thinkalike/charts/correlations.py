"""The correlations among the features of a set of stimuli, as a figure of its own."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from thinkalike.charts.heatmap import feature_correlations
from thinkalike.charts.theme import LIGHT, Theme, themed


def correlation_chart(frame: pd.DataFrame, *, order: Sequence[str], theme: Theme = LIGHT) -> alt.LayerChart:
    """The matrix of correlations (Figure S5 of Salle et al. 2024), ready to be saved.

    Parameters
    ----------
    frame : columns `feature`, `other`, `correlation`; a cell without a correlation stays empty.
    order : the features from top to bottom and from left to right.
    """
    data = pd.DataFrame(
        {
            "a": frame["feature"].map(_readable),
            "b": frame["other"].map(_readable),
            "correlation": frame["correlation"],
        }
    ).dropna()
    title = "Pearson correlations among feature differences"
    chart = feature_correlations(data, features=[_readable(name) for name in order], title=title, theme=theme)
    return themed(chart, theme)


def _readable(name: str) -> str:
    return str(name).replace("_", " ")
