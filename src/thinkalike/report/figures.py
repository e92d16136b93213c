"""Every chart of the report by name: as specifications for the page, or written as PNG, SVG or PDF."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from thinkalike.charts.blocks import system_pairs
from thinkalike.charts.heatmap import feature_correlations, similarity_matrix
from thinkalike.charts.maps import layer_map, system_map, word_map
from thinkalike.charts.pair import contribution_bars, importance_scatter
from thinkalike.charts.profiles import importance_profile, score_profile
from thinkalike.charts.theme import LIGHT, Data, Theme, themed
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.rows import find_row, parse_row, row_name
from thinkalike.comparison.similarity import FEATURES
from thinkalike.comparison.words import readable
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.progress import progress
from thinkalike.report import frames
from thinkalike.report.pairs import Pick, picks

FORMATS = ("png", "svg", "pdf")
Chart = alt.Chart | alt.LayerChart | alt.ConcatChart
Frames = Mapping[str, pd.DataFrame]
Source = Callable[[str], Data]
"""From the name of a table to the table, or to its name alone for a chart whose data come later"""


def chart_frames(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """The tables of all charts that do not depend on a chosen pair, except the cells of the matrices."""
    order = frames.feature_order(comparison)
    tables = {"correlations": frames.correlation_frame(comparison, order)}
    blocks = frames.blocks_between(comparison)
    if blocks:
        tables["systems"] = frames.block_frame(blocks)
        tables["system-map"] = frames.system_map_frame(comparison)
    for k, profile in enumerate(comparison.profiles.values()):
        tables[f"profile-{k}"] = frames.profile_frame(profile)
        tables[f"score-{k}"] = frames.score_frame(profile)
    for measure, layers in comparison.layer_maps.items():
        tables[f"layers-{measure}"] = frames.layer_map_frame(layers)
    return tables


def build_charts(
    comparison: Comparison, tables: Frames, *, source: Source, theme: Theme = LIGHT, in_page: bool = False
) -> dict[str, Chart]:
    """The charts over all layers; `in_page` leaves to the page what it writes itself: titles and legends."""
    order = [readable(name) for name in frames.feature_order(comparison)]
    systems = list(comparison.systems)
    domain, floor = frames.importance_domain(comparison), frames.score_floor(comparison)

    def titled(text: str) -> str:
        return "" if in_page else text

    charts: dict[str, Chart] = {}
    if "systems" in tables:
        blocks = frames.blocks_between(comparison)
        charts["systems"] = system_pairs(
            source("systems"),
            pairs=[frames.pair_label(block) for block in blocks],
            domain=frames.block_domain(blocks),
            controls=frames.UNTRAINED in set(tables["systems"]["kind"]),
            legend=not in_page,
            theme=theme,
        )
    for k, (name, layers) in enumerate(frames.system_layers(comparison)):
        charts[f"profile-{k}"] = importance_profile(
            source(f"profile-{k}"),
            layers=layers,
            features=order,
            domain=domain,
            title=titled(name),
            legend=not in_page,
            theme=theme,
        )
        charts[f"score-{k}"] = score_profile(
            source(f"score-{k}"),
            layers=layers,
            low=floor,
            ceiling="ceiling" in tables[f"score-{k}"],
            title=titled(name),
            theme=theme,
        )
    for measure in comparison.matrices:
        charts[f"matrix-{measure}"] = matrix_chart(comparison, measure, source, theme, in_page=in_page)
    for measure, layers_map in comparison.layer_maps.items():
        charts[f"layers-{measure}"] = layer_map(
            source(f"layers-{measure}"),
            systems=systems,
            extent=frames.map_extent(tables[f"layers-{measure}"]),
            title=titled(f"{measure_title(measure)} (stress {layers_map.stress:.2f})"),
            legend=not in_page,
            theme=theme,
        )
    if "system-map" in tables:
        charts["system-map"] = system_map(
            source("system-map"), systems=systems, extent=frames.map_extent(tables["system-map"]), theme=theme
        )
    charts["correlations"] = feature_correlations(source("correlations"), features=order, theme=theme)
    return charts


def matrix_chart(
    comparison: Comparison, measure: str, source: Source, theme: Theme, *, in_page: bool
) -> alt.LayerChart:
    matrix = comparison.matrices[measure]
    return similarity_matrix(
        source(f"matrix-{measure}"),
        systems=frames.system_layers(comparison),
        domain=frames.value_domain(matrix),
        label=value_label(measure),
        diverging=frames.is_diverging(matrix),
        every=1 + len(matrix.rows) // 20,
        title="" if in_page else measure_title(measure),
        selectable=in_page,
        theme=theme,
    )


def build_pair_charts(
    comparison: Comparison,
    *,
    names: tuple[str, str],
    source: Source,
    theme: Theme = LIGHT,
    in_page: bool = False,
) -> dict[str, Chart]:
    """The charts of one pair: `scatter`, `bars`, and `words-K` coloured by the K-th feature."""
    order = frames.feature_order(comparison)
    compared = [readable(name) for name in order if name in comparison.features]
    charts: dict[str, Chart] = {
        "scatter": importance_scatter(
            source("scatter"),
            names=(f"importance in {names[0]}", f"importance in {names[1]}"),
            features=compared,
            domain=frames.scatter_domain(comparison),
            theme=theme,
        ),
        "bars": contribution_bars(
            source("bars"),
            features=compared,
            domain=frames.contribution_domain(comparison),
            total=frames.TOTAL,
            theme=theme,
        ),
    }
    if comparison.word_maps is not None:
        for k, item in enumerate(frames.item_colours(comparison, order)):
            charts[f"words-{k}"] = word_map(
                source("words"),
                feature=readable(item.feature),
                levels=item.levels,
                ordered=item.ordered,
                theme=theme,
            )
    return charts


def page_specs(comparison: Comparison, tables: Frames, theme: Theme) -> dict[str, Any]:
    """The specifications that the page draws in one theme; it adds the data under the charts' names."""
    charts = build_charts(comparison, tables, source=alt.NamedData, theme=theme, in_page=True)
    # The page writes the names of the two layers over these placeholders.
    names = ("{a}", "{b}")
    charts |= build_pair_charts(comparison, names=names, source=alt.NamedData, theme=theme, in_page=True)
    specs = {}
    for name, chart in charts.items():
        # The tests validate the charts; here it would only cost time.
        spec = chart.to_dict(validate=False)
        specs[name] = {key: value for key, value in spec.items() if key not in ("$schema", "config")}
    return specs


def figures(comparison: Comparison, pairs: list[Pick], theme: Theme = LIGHT) -> Iterator[tuple[str, Any]]:
    """Every figure with the name of its file."""
    tables = chart_frames(comparison)
    tables |= {f"matrix-{m}": frames.cell_frame(matrix) for m, matrix in comparison.matrices.items()}
    charts = build_charts(comparison, tables, source=tables.__getitem__, theme=theme)
    grouped = {"profiles": "profile-", "scores": "score-"}
    for name, prefix in grouped.items():
        parts = [charts.pop(f"{prefix}{k}") for k in range(len(comparison.systems))]
        charts[name] = alt.concat(*parts, columns=3)
    for name, chart in charts.items():
        yield name, themed(chart, theme)
    for pair in pairs:
        yield f"pair-{file_stem(pair.label)}", themed(pair_figure(comparison, pair.i, pair.j, theme), theme)


def pair_figure(comparison: Comparison, i: int, j: int, theme: Theme = LIGHT) -> alt.ConcatChart:
    """One pair as in Figure 4 of Salle et al. 2024: scatter, contributions, and the words of both layers.

    The words are coloured by the feature that is most important in the two layers together.
    """
    tables = {"scatter": frames.scatter_frame(comparison, i, j), "bars": frames.bar_frame(comparison, i, j)}
    names = row_name(comparison.rows[i]), row_name(comparison.rows[j])
    order = frames.feature_order(comparison)
    scatter = tables["scatter"]
    top = scatter["feature"].iloc[int((scatter["a"] + scatter["b"]).argmax())]
    k = [readable(name) for name in order].index(str(top))

    def with_words(row: int) -> dict[str, Chart]:
        words = {"words": pd.DataFrame()}
        if comparison.word_maps is not None:
            words["words"] = frames.word_frame(comparison, row, frames.item_colours(comparison, order)[k])
        return build_pair_charts(comparison, names=names, source=(tables | words).__getitem__, theme=theme)

    first, second = with_words(i), with_words(j)
    parts = [first["scatter"], first["bars"]]
    if comparison.word_maps is not None:
        parts += [
            charts[f"words-{k}"].properties(title=f"words in {name}")
            for charts, name in zip((first, second), names, strict=True)
        ]
    title = f"{names[0]} and {names[1]}"
    return alt.concat(*parts, columns=2, title=title).resolve_scale(color="independent")


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
    pairs: list[Pick] | None = None,
) -> list[Path]:
    """Write every chart into `directory` as PNG, SVG or PDF.

    Of the pairs of layers those in `pairs`, which are the extremes unless given.
    """
    if format not in FORMATS:
        raise UnknownName.among("figure format", format, FORMATS)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    with progress("Figures", None) as step:
        for name, chart in figures(comparison, picks(comparison) if pairs is None else pairs):
            path = directory / f"{name}.{format}"
            part = path.with_name(f".{path.name}")
            chart.save(str(part), format=format, **({"ppi": 200} if format == "png" else {}))
            os.replace(part, path)
            written.append(path)
            step.advance()
    return written


def file_stem(text: str) -> str:
    """`bert:4 and a/b:8` → `bert-4-and-a-b-8`: safe as the name of a file anywhere."""
    return re.sub(r"[^\w.]+", "-", text).strip("-.")


def measure_title(measure: str) -> str:
    """`By features`, `By geometry (RSA)`."""
    name = measure.upper() if len(measure) < 5 else measure
    return "By features" if measure == FEATURES else f"By geometry ({name})"


def value_label(measure: str) -> str:
    return {FEATURES: "τ_w", "rsa": "ρ (RSA)"}.get(measure, measure)
