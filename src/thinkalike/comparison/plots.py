"""What `.plot()` of each result draws. `theme` is "light", "dark", or None for a chart to be joined with others."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import altair as alt
import numpy as np
import pandas as pd

from thinkalike.charts.heatmap import similarity_matrix
from thinkalike.charts.maps import layer_map, system_map, word_map
from thinkalike.charts.pair import contribution_bars, importance_scatter
from thinkalike.charts.profiles import importance_profile, score_profile
from thinkalike.charts.theme import LIGHT, get_theme, themed
from thinkalike.comparison import chart_tables as tables
from thinkalike.comparison.rows import Layer, find_row, row_name, systems_of
from thinkalike.comparison.words import readable
from thinkalike.errors import UnknownName

if TYPE_CHECKING:
    from thinkalike.comparison.comparison import Comparison
    from thinkalike.comparison.explain import Explanation
    from thinkalike.comparison.maps import LayerMap, WordMaps
    from thinkalike.comparison.profiles import Profile
    from thinkalike.comparison.similarity import SimilarityMatrix
    from thinkalike.comparison.trajectories import TrajectoryDistances
    from thinkalike.stimuli.table import Stimuli

Chart = TypeVar("Chart", bound=alt.TopLevelMixin)


def plot_profile(profile: Profile, theme: str | None) -> alt.VConcatChart:
    """Importance over layers (Figure 3 of Salle et al. 2024), and below it ρ with its ceiling."""
    colors = LIGHT if theme is None else get_theme(theme)
    importance, scores = tables.profile_table(profile), tables.score_table(profile)
    order = tables.colour_order(profile.features, profile.mean_importance)
    above = importance_profile(
        importance,
        layers=tables.layer_labels(profile),
        features=[readable(name) for name in order],
        domain=tables.importance_domain([importance]),
        title=profile.system,
        theme=colors,
    )
    below = score_profile(
        scores,
        layers=tables.layer_labels(profile),
        low=tables.score_floor([scores]),
        ceiling="ceiling" in scores,
        theme=colors,
    )
    return _finished(alt.vconcat(above, below), theme)


def plot_matrix(matrix: SimilarityMatrix, theme: str | None) -> alt.LayerChart:
    """Every layer against every other, with the boundaries of the systems (Figure 2)."""
    chart = similarity_matrix(
        tables.cell_table(matrix),
        systems=tables.system_layers(matrix.rows),
        domain=tables.value_domain(matrix),
        label=tables.value_label(matrix.measure),
        diverging=tables.is_diverging(matrix),
        every=1 + len(matrix.rows) // 20,
        title=tables.measure_title(matrix.measure),
        theme=LIGHT if theme is None else get_theme(theme),
    )
    return _finished(chart, theme)


def plot_layer_map(layers: LayerMap, theme: str | None) -> alt.LayerChart:
    """Layers of all systems, joined in the order of their depth."""
    table = tables.layer_map_table(layers)
    chart = layer_map(
        table,
        systems=systems_of(layers.rows),
        extent=tables.map_extent(table),
        title=f"{tables.measure_title(layers.measure)} (stress {layers.stress:.2f})",
        theme=LIGHT if theme is None else get_theme(theme),
    )
    return _finished(chart, theme)


def plot_words(
    words: WordMaps, system: str, layer: Layer, stimuli: Stimuli, feature: str | None, theme: str | None
) -> alt.Chart:
    """The words of one layer, coloured by a feature of `stimuli` (its first when None)."""
    row = find_row(words.rows, system, layer)
    known = list(stimuli.features)
    if feature is not None and feature not in known:
        raise UnknownName.among("feature", feature, known)
    name = known[0] if feature is None else feature
    values = stimuli.features.loc[list(words.items), name]
    numeric = stimuli.kinds[name] == "numeric"
    labels = item_labels(words, stimuli)
    points = tables.unit_maps(words.coordinates[row])
    data = pd.DataFrame({"x": points[:, 0], "y": points[:, 1], "word": labels[0], "context": labels[1]})
    chart = word_map(
        data.assign(value=values.astype(object).where(values.notna(), None).to_numpy()),
        feature=readable(name),
        levels=None if numeric else [str(level) for level in values.cat.categories],
        ordered=stimuli.kinds[name] == "ordinal",
        title=f"{row_name(words.rows[row])} ({100 * words.explained[row].sum():.0f} % of the variance)",
        theme=LIGHT if theme is None else get_theme(theme),
    )
    return _finished(chart, theme)


def item_labels(words: WordMaps, stimuli: Stimuli) -> tuple[list[str], list[str]]:
    """The word and the sentence of each mapped item; the id where items are not words."""
    ids = list(words.items)
    if "word" not in stimuli.items:
        return ids, [""] * len(ids)
    chosen = stimuli.items.loc[ids]
    return list(chosen["word"]), list(stimuli.sentences.loc[chosen["sentence"]])


def plot_systems(distances: TrajectoryDistances, theme: str | None) -> alt.LayerChart:
    """Whole systems, by the distance of their profiles."""
    x, y = tables.centred(distances.coordinates).T
    data = pd.DataFrame({"system": distances.systems, "x": x, "y": y})
    chart = system_map(
        data,
        systems=distances.systems,
        extent=tables.map_extent(data),
        title=f"Whole systems (stress {distances.stress:.2f})",
        theme=LIGHT if theme is None else get_theme(theme),
    )
    return _finished(chart, theme)


def plot_explanation(explanation: Explanation, theme: str | None) -> alt.HConcatChart:
    """Importance in both layers (Figure 4), and what each feature adds to τ_w."""
    colors = LIGHT if theme is None else get_theme(theme)
    both = np.stack([explanation.importance_a, explanation.importance_b])
    order = [readable(name) for name in tables.colour_order(explanation.features, both)]
    names = row_name(explanation.a), row_name(explanation.b)
    scatter = pd.DataFrame(
        {"feature": [readable(f) for f in explanation.features], "a": both[0], "b": both[1]}
    )
    parts = [*explanation.contributions, explanation.tau]
    bars = pd.DataFrame({"feature": [*scatter["feature"], tables.TOTAL], "contribution": parts})
    chart = alt.hconcat(
        importance_scatter(
            scatter,
            names=(f"importance in {names[0]}", f"importance in {names[1]}"),
            features=order,
            domain=tables.scatter_domain(scatter),
            theme=colors,
        ),
        contribution_bars(
            bars,
            features=order,
            domain=(min(-0.25, float(np.nanmin(parts)) - 0.15), 1.3),
            total=tables.TOTAL,
            theme=colors,
        ),
        title=f"{names[0]} and {names[1]}",
    ).resolve_scale(color="independent")
    return _finished(chart, theme)


def plot_comparison(comparison: Comparison, theme: str | None) -> alt.HConcatChart:
    """The matrices side by side."""
    parts = [plot_matrix(matrix, None) for matrix in comparison.matrices.values()]
    if theme == "dark":
        parts = [plot_dark(matrix) for matrix in comparison.matrices.values()]
    return _finished(alt.hconcat(*parts).resolve_scale(color="independent"), theme)


def _finished(chart: Chart, theme: str | None) -> Chart:
    return chart if theme is None else themed(chart, get_theme(theme))
