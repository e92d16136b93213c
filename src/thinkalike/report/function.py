"""The third view: what stitching found, beside the features and the geometry of the same layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from thinkalike.charts.stitching import CEILING, FLOOR, penalty_lines, penalty_matrix
from thinkalike.charts.theme import LIGHT, Data, Theme
from thinkalike.comparison.chart_tables import measure_name, value_label
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.similarity_matrix import FEATURES
from thinkalike.comparison.views import FUNCTION, ThreeViews, three_views
from thinkalike.report.figures import Chart, Source
from thinkalike.stitching.penalty_plots import LABELS, line_frame
from thinkalike.stitching.result import StitchResult
from thinkalike.types import Json
from thinkalike.wording import number

FOLDER = "stitching"
"""Of a run directory: one folder per stitching, as `StitchResult.save` writes it"""


@dataclass(frozen=True)
class ViewChart:
    """A chart of the section: its name, what stands above it, and what it shows in words."""

    name: str
    caption: str
    aside: str
    alt: str


@dataclass(frozen=True)
class View:
    """One stitched pair of models: what the page says of it."""

    title: str
    sentences: tuple[str, ...]
    charts: tuple[ViewChart, ...]
    """The three matrices"""
    lines: ViewChart
    """The penalty over depth"""
    agreements: tuple[tuple[str, str, str], ...]
    """The two views, ρ, p, and over how many pairs of layers"""
    cautions: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class FunctionSection:
    """The whole section: the words, and the tables that its charts draw."""

    views: tuple[View, ...]
    tables: dict[str, pd.DataFrame]
    results: tuple[StitchResult, ...]
    found: tuple[ThreeViews, ...]

    def specs(self, theme: Theme = LIGHT) -> Json:
        """Specifications without data, by the name of the chart."""
        charts = self.charts(source=alt.NamedData, theme=theme)
        kept = {name: chart.to_dict(validate=False) for name, chart in charts.items()}
        return {
            name: {key: value for key, value in spec.items() if key not in ("$schema", "config")}
            for name, spec in kept.items()
        }

    def charts(self, *, source: Source, theme: Theme = LIGHT) -> dict[str, Chart]:
        """Three matrices of each pair, and the penalty over its layers."""
        charts: dict[str, Chart] = {}
        for k, (views, result) in enumerate(zip(self.found, self.results, strict=True)):
            for view in views.values:
                name = f"view-{k}-{view}"
                charts[name] = _matrix(views, view, source(name), theme)
            name = f"view-{k}-lines"
            charts[name] = _lines(result, self.tables[name], source(name), theme)
        return charts


def find_stitchings(directory: Path) -> list[StitchResult]:
    """The stitchings of a run directory, in the order of their names."""
    return [StitchResult.load(path.parent) for path in stitching_files(directory)]


def stitching_files(directory: Path) -> list[Path]:
    return sorted((directory / FOLDER).glob("*/stitching.json"))


def function_section(comparison: Comparison, results: Sequence[StitchResult]) -> FunctionSection:
    """Everything the page says and draws of stitched pairs; those of other systems are left out."""
    known = set(comparison.systems)
    kept = tuple(result for result in results if {result.bottom, result.top} <= known)
    found = tuple(three_views(comparison, result) for result in kept)
    tables: dict[str, pd.DataFrame] = {}
    for k, (views, result) in enumerate(zip(found, kept, strict=True)):
        tables |= {f"view-{k}-{view}": _cells(views, view) for view in views.values}
        tables[f"view-{k}-lines"] = depth_lines(result)
    words = tuple(_view(k, v, r) for k, (v, r) in enumerate(zip(found, kept, strict=True)))
    return FunctionSection(words, tables, kept, found)


def depth_lines(result: StitchResult) -> pd.DataFrame:
    """The lines over layers of the stitches at the same relative depth, of a grid too."""
    n_bottom, n_top = result.depths
    level = {(k, round(k * n_top / n_bottom)) for k in range(n_bottom + 1)}
    keep = [
        k
        for k, stitch in enumerate(result.stitches)
        if stitch.role == "self" or (stitch.layer_bottom, stitch.layer_top) in level
    ]
    if not any(result.stitches[k].role == "pair" for k in keep):
        keep = list(range(len(result.stitches)))
    return line_frame(result, "penalty", rows=keep)


def _view(k: int, views: ThreeViews, result: StitchResult) -> View:
    frame = result.to_frame()
    best = frame.iloc[int(frame["penalty"].argmin())]
    sentences = [
        f"At its cheapest, from layer {best['layer_bottom']} of {views.a} into layer {best['layer_top']} of "
        f"{views.b}, stitching costs {_nats(best['penalty'])} nats per prediction "
        f"({_range(best)}) on top of the {number(result.own_loss)} of {views.b} by itself"
        + _baselines(best)
        + "."
    ]
    rho = result.depth_mismatch()
    if np.isfinite(rho):
        sentences.append(f"Over the pairs of layers, penalty and mismatch of depth go at ρ = {number(rho)}.")
    names = {FEATURES: "features", views.geometry: "geometry", FUNCTION: "function"}
    agreements = tuple(
        (f"{names[one.a]} and {names[one.b]}", number(one.rho), str(one.n_pairs))
        for one in views.agreements
        if np.isfinite(one.rho)
    )
    captions = {
        FEATURES: ("By features", "the same features matter: weighted τ"),
        views.geometry: (f"By geometry ({measure_name(views.geometry)})", "the same items are near"),
        FUNCTION: ("By function", "the bluer, the less is lost"),
    }
    charts = [ViewChart(f"view-{k}-{view}", *captions[view], alt=_alt(views, view)) for view in views.values]
    lines = ViewChart(
        f"view-{k}-lines",
        "Penalty over depth",
        "layers of the same relative depth",
        f"Line chart of the penalty of stitching over the layers of {views.a}.",
    )
    kind = f"{result.kind}, {result.fit}" if result.kind != "identity" else "identity"
    return View(
        title=f"{views.a} → {views.b} ({kind})",
        sentences=tuple(sentences),
        charts=tuple(charts),
        lines=lines,
        agreements=agreements,
        cautions=result.cautions,
    )


def _range(row: pd.Series) -> str:
    if not np.isfinite(row["low"]):
        return "no interval: too few documents, or too few that differ"
    return f"95 % interval {_nats(row['low'])} to {_nats(row['high'])}"


def _baselines(row: pd.Series) -> str:
    parts = []
    if np.isfinite(row["floor"]):
        parts.append(f"stitched with itself the top loses {_nats(row['floor'])}")
    if np.isfinite(row["ceiling"]):
        parts.append(f"on an untrained bottom {_nats(row['ceiling'])}")
    return "" if not parts else f"; {', '.join(parts)}"


def _nats(value: float) -> str:
    """Two digits; what rounds to nothing has no sign."""
    return number(round(float(value), 2) + 0.0)


def _alt(views: ThreeViews, view: str) -> str:
    values = views.values[view]
    label = LABELS["penalty"] if view == FUNCTION else value_label(view)
    spread = ""
    if np.isfinite(values).any():
        spread = f" from {number(float(np.nanmin(values)))} to {number(float(np.nanmax(values)))}"
    return f"Matrix of the layers of {views.a} by those of {views.b}, coloured by {label}{spread}."


def _cells(views: ThreeViews, view: str) -> pd.DataFrame:
    values = views.values[view]
    rows = [
        {"i": str(a), "j": str(b), "value": float(values[i, j])}
        for i, a in enumerate(views.layers_a)
        for j, b in enumerate(views.layers_b)
    ]
    return pd.DataFrame(rows).dropna(subset="value", ignore_index=True)


def _matrix(views: ThreeViews, view: str, data: Data, theme: Theme) -> alt.LayerChart:
    values = views.values[view][np.isfinite(views.values[view])]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    domains = {FEATURES: (-1.0, 1.0), FUNCTION: (min(0.0, low), max(high, 0.05))}
    return penalty_matrix(
        data,
        names=(views.a, views.b),
        rows=[str(layer) for layer in views.layers_a],
        columns=[str(layer) for layer in views.layers_b],
        domain=domains.get(view, (min(0.0, low), 1.0)),
        label="penalty (nats)" if view == FUNCTION else value_label(view),
        diverging=view == FEATURES,
        low_is_alike=view == FUNCTION,
        theme=theme,
    )


def _lines(result: StitchResult, table: pd.DataFrame, data: Data, theme: Theme) -> alt.LayerChart:
    present = list(dict.fromkeys(table["series"]))
    return penalty_lines(
        data,
        series=present,
        quiet=[name for name in (FLOOR, CEILING) if name in present],
        label="penalty (nats)",
        x=f"layer of {result.bottom}",
        theme=theme,
    )
