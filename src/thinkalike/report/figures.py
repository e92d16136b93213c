"""Every chart of the report by name: as specifications for the page, or written as PNG, SVG or PDF."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import altair as alt
import pandas as pd

from thinkalike.addresses import place
from thinkalike.charts.block_charts import UNTRAINED, system_pairs
from thinkalike.charts.drawing import figure_file
from thinkalike.charts.heatmap import feature_correlations
from thinkalike.charts.map_charts import word_map
from thinkalike.charts.pair import contribution_bars, importance_scatter
from thinkalike.charts.theme import LIGHT, Data, Theme, themed
from thinkalike.comparison import chart_tables, plots
from thinkalike.comparison.comparison import Comparison
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.files import write_bytes
from thinkalike.labels import find_row, parse_row, row_name
from thinkalike.progress import progress
from thinkalike.report import frames
from thinkalike.report.pairs import Pick, picks
from thinkalike.types import Json
from thinkalike.wording import readable

FORMATS = ("png", "svg", "pdf")
COLUMNS = {"single": 89.0, "double": 183.0}
"""Millimetres: the columns of Nature, which fit most journals"""
HIGHEST = 247.0
"""Millimetres: a page of Nature"""
Chart = alt.Chart | alt.LayerChart | alt.ConcatChart | alt.VConcatChart
Frames = Mapping[str, pd.DataFrame]
Source = Callable[[str], Data]
"""From the name of a table to the table, or to its name alone for a chart whose data come later"""


def build_charts(
    comparison: Comparison, tables: Frames, *, source: Source, theme: Theme = LIGHT, bare: bool = False
) -> dict[str, Chart]:
    """The charts over all layers; `bare` without what the page writes itself, titles and legends."""
    charts: dict[str, Chart] = {}
    if "systems" in tables:
        charts["systems"] = _systems_chart(tables["systems"], source("systems"), theme, bare)
    order = frames.feature_order(comparison)
    n_systems = len(comparison.systems)
    domain = chart_tables.importance_domain([tables[f"profile-{k}"] for k in range(n_systems)])
    floor = chart_tables.score_floor([tables[f"score-{k}"] for k in range(n_systems)])
    for k, profile in enumerate(comparison.profiles.values()):
        charts[f"profile-{k}"] = plots.importance_chart(
            profile, theme, order=order, domain=domain, data=source(f"profile-{k}"), bare=bare
        )
        charts[f"score-{k}"] = plots.score_chart(
            profile, theme, floor=floor, data=source(f"score-{k}"), title="" if bare else None
        )
    for measure, matrix in comparison.matrices.items():
        name = f"matrix-{measure}"
        charts[name] = plots.matrix_chart(matrix, theme, data=source(name), bare=bare)
    for measure, layers in comparison.layer_maps.items():
        name = f"layers-{measure}"
        charts[name] = plots.layer_map_chart(layers, theme, data=source(name), bare=bare)
    if "system-map" in tables:
        charts["system-map"] = plots.system_map_chart(
            comparison.trajectories, theme, data=source("system-map"), bare=bare
        )
    features = [readable(str(name)) for name in comparison.correlations]
    charts["correlations"] = feature_correlations(source("correlations"), features=features, theme=theme)
    if comparison.tried is not None:
        charts["robustness"] = plots.robustness_chart(comparison.tried, theme)
    return charts


def _systems_chart(table: pd.DataFrame, data: Data, theme: Theme, bare: bool) -> alt.LayerChart:
    return system_pairs(
        data,
        pairs=list(dict.fromkeys(table["pair"])),
        domain=frames.block_domain(table),
        controls=UNTRAINED in set(table["kind"]),
        ranged=not bare and bool(table["low"].notna().any()),
        legend=not bare,
        theme=theme,
    )


def build_pair_charts(
    comparison: Comparison,
    *,
    names: tuple[str, str],
    domain: tuple[float, float],
    source: Source,
    theme: Theme = LIGHT,
) -> dict[str, Chart]:
    """The charts of one pair: `scatter`, `bars`, and `words-K` coloured by the K-th feature."""
    order = frames.feature_order(comparison)
    compared = [readable(name) for name in order if name in comparison.features]
    charts: dict[str, Chart] = {
        "scatter": importance_scatter(
            source("scatter"),
            names=(f"importance in {names[0]}", f"importance in {names[1]}"),
            features=compared,
            domain=domain,
            theme=theme,
        ),
        "bars": contribution_bars(
            source("bars"),
            features=compared,
            domain=frames.contribution_domain(comparison),
            total=chart_tables.TOTAL,
            theme=theme,
        ),
    }
    for k, feature in enumerate(order if comparison.word_maps is not None else []):
        assert comparison.word_maps is not None
        item = chart_tables.item_values(comparison.word_maps, comparison.stimuli, feature)
        charts[f"words-{k}"] = word_map(
            source("words"),
            feature=readable(feature),
            levels=item.levels,
            ordered=item.ordered,
            stretches=True,
            theme=theme,
        )
    return charts


def page_specs(comparison: Comparison, tables: Frames) -> dict[str, Json]:
    """The specifications that the page draws, in light; it adds the data under the charts' names."""
    charts = build_charts(comparison, tables, source=alt.NamedData, bare=True)
    # The page writes the names of the two layers and the ends of their axes over these.
    charts |= build_pair_charts(comparison, names=("{a}", "{b}"), domain=(0.0, 1.0), source=alt.NamedData)
    specs = {}
    for name, chart in charts.items():
        # The tests validate the charts; here it would only cost time.
        spec = chart.to_dict(validate=False)
        specs[name] = {key: value for key, value in spec.items() if key not in ("$schema", "config")}
    return specs


def figures(
    comparison: Comparison, pairs: list[Pick], theme: Theme = LIGHT, *, side_by_side: int = 3
) -> Iterator[tuple[str, Chart]]:
    """Every figure with the name of its file; of one with several parts, at most so many stand in a row."""
    tables = frames.chart_frames(comparison) | frames.cell_frames(comparison)
    charts = build_charts(comparison, tables, source=tables.__getitem__, theme=theme)
    for name, prefix in {"profiles": "profile-", "scores": "score-"}.items():
        parts = [charts.pop(f"{prefix}{k}") for k in range(len(comparison.systems))]
        charts[name] = alt.concat(*parts, columns=side_by_side)
    for name, chart in charts.items():
        yield name, themed(chart, theme)
    for pair in pairs:
        drawn = pair_figure(comparison, pair.i, pair.j, theme, side_by_side=min(2, side_by_side))
        yield f"pair-{file_stem(pair.label)}", themed(drawn, theme)


def pair_figure(
    comparison: Comparison, i: int, j: int, theme: Theme = LIGHT, *, side_by_side: int = 2
) -> alt.ConcatChart:
    """One pair as in Figure 4 of Salle et al. 2024: scatter, contributions, and the words of both layers.

    The words are coloured by the feature that is most important in the two layers together. In one column all
    four are lower, and one legend is for both maps, so that they fit a page.
    """
    low = side_by_side == 1
    scatter = frames.scatter_frame(comparison, i, j)
    tables = {"scatter": scatter, "bars": frames.bar_frame(comparison, i, j), "words": pd.DataFrame()}
    names = row_name(comparison.rows[i]), row_name(comparison.rows[j])
    domain = chart_tables.scatter_domain(scatter)
    charts = build_pair_charts(comparison, names=names, domain=domain, source=tables.__getitem__, theme=theme)
    parts = [charts[name].properties(height=170) if low else charts[name] for name in ("scatter", "bars")]
    if comparison.word_maps is not None:
        top = comparison.features[int((scatter["a"] + scatter["b"]).argmax())]
        parts += [
            plots.words_chart(
                comparison.word_maps,
                comparison.stimuli,
                *comparison.rows[row],
                top,
                theme,
                side=200 if low else 260,
                legend=row == j or not low,
            )
            for row in (i, j)
        ]
    title = f"{names[0]} and {names[1]}"
    return alt.concat(*parts, columns=side_by_side, title=title).resolve_scale(color="independent")


def chosen_pair(comparison: Comparison, a: str, b: str) -> Pick:
    """The pair of two layers written as `system:layer`."""
    i, j = (find_row(comparison.rows, *parse_row(text)) for text in (a, b))
    if i == j:
        raise InvalidInput(f"{a} is given twice: name two different layers.")
    return Pick(f"{a} and {b}", i, j)


def write_figures(
    comparison: Comparison,
    directory: str | os.PathLike[str],
    *,
    format: str = "png",
    width: str | None = None,
    pairs: list[Pick] | None = None,
) -> list[Path]:
    """Write every chart into `directory` as PNG, SVG or PDF.

    Of the pairs of layers those in `pairs`, which are the extremes unless given. `width` is a column of a
    journal (`COLUMNS`): single or double; without one, charts are as wide as on the page.
    """
    check_format(format)
    millimetres = None if width is None else column_width(width)
    directory = place(directory)
    written = []
    shown = picks(comparison) if pairs is None else pairs
    with progress("Figures", None) as step:
        side_by_side = 1 if width == "single" else 3  # or letters would be too small to read
        for name, chart in figures(comparison, shown, side_by_side=side_by_side):
            path = directory / f"{name}.{format}"
            write_bytes(figure_file(chart.to_dict(), format, millimetres), path)
            written.append(path)
            step.advance()
    return written


def column_width(name: str) -> float:
    """The millimetres of a column of a journal."""
    if name not in COLUMNS:
        raise UnknownName.among("width of figures", name, COLUMNS)
    return COLUMNS[name]


def check_format(format: str) -> None:
    """An error for a format of figures that is none of ours."""
    if format not in FORMATS:
        raise UnknownName.among("figure format", format, FORMATS)


def file_stem(text: str) -> str:
    """`bert:4 and a/b:8` → `bert-4-and-a-b-8`: safe as the name of a file anywhere."""
    return re.sub(r"[^\w.]+", "-", text).strip("-.")
