"""What `.plot()` of each result draws, in the notebook as in the report.

A builder takes a result and the colours. `data` stands in for the table that it would draw, where the data
come later; `bare` leaves out what a page says itself, titles and legends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import altair as alt
import numpy as np
import pandas as pd

from thinkalike.charts import heatmap, pair, specifications, subject_charts
from thinkalike.charts import map_charts as maps
from thinkalike.charts import profile_charts as profiles
from thinkalike.charts.theme import LIGHT, Data, Theme, drawable, get_theme, themed
from thinkalike.comparison import chart_tables as tables
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.labels import Layer, find_row, row_name, systems_of
from thinkalike.wording import readable

if TYPE_CHECKING:
    from thinkalike.comparison.comparison import Comparison
    from thinkalike.comparison.explaining import Explanation
    from thinkalike.comparison.group import GroupComparison
    from thinkalike.comparison.maps import LayerMap, WordMaps
    from thinkalike.comparison.profiles import Profile
    from thinkalike.comparison.robustness import Robustness
    from thinkalike.comparison.similarity_matrix import SimilarityMatrix
    from thinkalike.comparison.trajectories import TrajectoryDistances
    from thinkalike.stimuli.table import Stimuli

Chart = TypeVar("Chart", bound=alt.TopLevelMixin)
MOST_CELLS = 50
"""Layers of a matrix whose cells are marks of their own on a page; those of a larger one are a picture"""


def draw(build: Callable[..., Chart], *results: object, theme: str | None) -> Chart:
    """What `build` makes of the results: "light", "dark", or None for a chart to be joined with others."""
    if theme is None:
        return build(*results, LIGHT)
    colors = get_theme(theme)
    return themed(build(*results, colors), colors)


def profile_chart(profile: Profile, theme: Theme) -> alt.VConcatChart:
    """Importance over layers, and below it ρ with its ceiling."""
    return alt.vconcat(importance_chart(profile, theme), score_chart(profile, theme, title=""))


def importance_chart(
    profile: Profile,
    theme: Theme,
    *,
    order: Sequence[str] | None = None,
    domain: tuple[float, float] | None = None,
    data: Data | None = None,
    bare: bool = False,
) -> alt.LayerChart:
    """Importance over layers (Figure 3 of Salle et al. 2024); `order` gives the features their colours."""
    table = tables.profile_table(profile)
    order = tables.colour_order(profile.features, profile.mean_importance) if order is None else order
    domain = domain or tables.importance_domain([table])
    return profiles.importance_profile(
        tables.with_names(table, domain) if data is None else data,
        layers=tables.layer_labels(profile),
        features=[readable(name) for name in order],
        domain=domain,
        title="" if bare else profile.system,
        legend=not bare,
        theme=theme,
    )


def score_chart(
    profile: Profile,
    theme: Theme,
    *,
    floor: float | None = None,
    data: Data | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """ρ over layers, under its ceiling where that is known."""
    table = tables.score_table(profile)
    return profiles.score_profile(
        table if data is None else data,
        layers=tables.layer_labels(profile),
        low=tables.score_floor([table]) if floor is None else floor,
        ceiling="ceiling" in table,
        title=profile.system if title is None else title,
        theme=theme,
    )


def matrix_chart(
    matrix: SimilarityMatrix, theme: Theme, *, data: Data | None = None, bare: bool = False
) -> alt.LayerChart:
    """Every layer against every other, with the boundaries of the systems (Figure 2)."""
    return heatmap.similarity_matrix(
        drawable(tables.cell_table(matrix)) if data is None else data,
        systems=tables.system_layers(matrix.rows),
        domain=tables.value_domain(matrix),
        label=tables.value_label(matrix.measure),
        diverging=tables.is_diverging(matrix),
        distance=matrix.kind == "distance",
        every=1 + len(matrix.rows) // 20,
        title="" if bare else tables.measure_title(matrix.measure),
        selectable=bare,
        pictured=bare and len(matrix.rows) > MOST_CELLS,
        theme=theme,
    )


def layer_map_chart(
    layers: LayerMap, theme: Theme, *, data: Data | None = None, bare: bool = False
) -> alt.LayerChart:
    """Layers of all systems, joined in the order of their depth; if `bare`, with its shape for a page."""
    table = tables.layer_map_table(layers)
    aspect = tables.map_aspect(table)
    chart = maps.layer_map(
        table if data is None else data,
        systems=systems_of(layers.rows),
        extent=tables.map_extent(table),
        aspect=aspect,
        title="" if bare else f"{tables.measure_title(layers.measure)} (stress {layers.stress:.2f})",
        legend=not bare,
        theme=theme,
    )
    return chart.properties(usermeta={"ratio": aspect}) if bare else chart  # only a whole chart may have it


def system_map_chart(
    distances: TrajectoryDistances, theme: Theme, *, data: Data | None = None, bare: bool = False
) -> alt.LayerChart:
    """Whole systems, by the distance of their profiles."""
    table = tables.system_map_table(distances)
    return maps.system_map(
        table if data is None else data,
        systems=distances.systems,
        extent=1.3 * tables.map_extent(table),  # room for the names
        title="" if bare else f"Whole systems (stress {distances.stress:.2f})",
        theme=theme,
    )


def words_chart(
    words: WordMaps,
    stimuli: Stimuli,
    system: str,
    layer: Layer,
    feature: str | None,
    theme: Theme,
    *,
    side: int = 260,
    legend: bool = True,
) -> alt.Chart:
    """The words of one layer, coloured by a feature of `stimuli` (its first when None)."""
    row = find_row(words.rows, system, layer)
    known = list(stimuli.kinds)
    if feature is not None and feature not in known:
        raise UnknownName.among("feature", feature, known)
    item = tables.item_values(words, stimuli, known[0] if feature is None else feature)
    explained = 100 * words.explained[row].sum()
    return maps.word_map(
        tables.word_table(words, stimuli, row, item),
        feature=readable(item.feature),
        levels=item.levels,
        ordered=item.ordered,
        side=side,
        legend=legend,
        title=f"{row_name(words.rows[row])} ({explained:.0f} % of the variance)",
        theme=theme,
    )


def explanation_chart(explanation: Explanation, theme: Theme) -> alt.HConcatChart:
    """Importance in both layers (Figure 4), and what each feature adds to τ_w."""
    both = np.stack([explanation.importance_a, explanation.importance_b])
    order = [readable(name) for name in tables.colour_order(explanation.features, both)]
    names = row_name(explanation.a), row_name(explanation.b)
    features = [readable(name) for name in explanation.features]
    matters = tables.important_in_one(both[0], both[1])
    scatter = pd.DataFrame({"feature": features, "a": both[0], "b": both[1], "matters": matters})
    parts = [*explanation.contributions, explanation.tau]
    bars = pd.DataFrame(
        {"feature": [*features, tables.TOTAL], "contribution": parts, "matters": [*matters, True]}
    )
    return alt.hconcat(
        scatter_chart(scatter, names, order, theme),
        pair.contribution_bars(
            bars,
            features=order,
            domain=(min(-0.1, float(np.nanmin(parts))) - 0.02, 1.02),
            total=tables.TOTAL,
            theme=theme,
        ),
        title=f"{names[0]} and {names[1]}",
    ).resolve_scale(color="independent")


def scatter_chart(
    scatter: pd.DataFrame, names: tuple[str, str], order: Sequence[str], theme: Theme
) -> alt.LayerChart:
    """Importance in one layer against importance in the other."""
    return pair.importance_scatter(
        scatter,
        names=(f"importance in {names[0]}", f"importance in {names[1]}"),
        features=order,
        domain=tables.scatter_domain(scatter),
        theme=theme,
    )


def comparison_chart(comparison: Comparison, theme: Theme) -> alt.ConcatChart:
    """The matrices side by side."""
    parts = [matrix_chart(matrix, theme) for matrix in comparison.matrices.values()]
    return alt.concat(*parts, columns=2).resolve_scale(color="independent")


def robustness_chart(found: Robustness, theme: Theme) -> alt.VConcatChart:
    """The curve of specifications, ordered by how alike the first analysis's most alike pair is in each."""
    table = tables.specification_tables(found)
    return specifications.specification_curve(**vars(table), theme=theme)


FEW_REGIONS = 4
"""Up to so many stand side by side; more are a line, in their order"""
MOST_LINES = 8


def group_chart(
    found: GroupComparison, theme: Theme, *, shown: Sequence[int] | None = None
) -> alt.HConcatChart:
    """A panel for each of a few regions, or one panel over many."""
    table = found.table(over=found.widest)
    many = len(found.regions) > FEW_REGIONS
    if shown is None:
        shown = best_rows(found, MOST_LINES) if many else range(len(found.rows))
    models = [row_name(found.rows[k]) for k in shown]
    table = table[table["model"].isin(models)]
    panels: list[alt.LayerChart | alt.VConcatChart]
    if many:
        panels = [
            subject_charts.scores_over_regions(
                table,
                clusters=cluster_table(found, shown),
                regions=[str(region) for region in found.regions],
                models=models,
                label=found.measure,
                theme=theme,
            )
        ]
    else:
        subjects = found.to_frame()
        panels = [
            subject_charts.scores_of_models(
                table[table["region"] == region],
                subjects=subjects[(subjects["region"] == region) & subjects["model"].isin(models)],
                models=models,
                label=found.measure,
                title=str(region) if len(found.regions) > 1 else "",
                theme=theme,
            )
            for region in found.regions
        ]
    return alt.hconcat(*panels)


def best_rows(found: GroupComparison, most: int) -> list[int]:
    """The layers of models with the best score anywhere, in the order of the models."""
    sign = -1.0 if found.kind == "distance" else 1.0
    best = (sign * found.scores.mean(axis=0)).max(axis=0)
    return sorted(np.argsort(-best, kind="stable")[:most].tolist())


def cluster_table(found: GroupComparison, shown: Sequence[int]) -> pd.DataFrame:
    """Neighbouring regions that are better than chance (p ≤ 0.05, corrected), a row for each region."""
    rows = []
    for k in shown:
        try:
            clusters = found.clusters(*found.rows[k])
        except InvalidInput:  # too few subjects, or nothing that says what chance gives
            continue
        rows += [
            {"model": row_name(found.rows[k]), "region": str(found.regions[place])}
            for cluster in clusters
            if cluster.p <= 0.05
            for place in range(cluster.start, cluster.stop)
        ]
    return pd.DataFrame(rows, columns=["model", "region"])
