"""Figures 2, 3, 4 and S5 of Salle et al. 2024, from a comparison."""

from __future__ import annotations

import altair as alt

from thinkalike.charts.heatmap import feature_correlations
from thinkalike.charts.theme import LIGHT, themed
from thinkalike.comparison import chart_tables, plots
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.similarity_matrix import FEATURES
from thinkalike.labels import row_name
from thinkalike.recipes.findings import Figure
from thinkalike.recipes.salle2024.experiment import extremes
from thinkalike.recipes.salle2024.verdicts import POSITION
from thinkalike.report import frames
from thinkalike.report.figures import pair_figure
from thinkalike.wording import number, readable


def draw(comparison: Comparison, state_space: str, layers: tuple[int, int]) -> list[Figure]:
    """The figures of the paper; `layers` are those whose words are mapped by position."""
    first, last = extremes(comparison)
    return [
        similarity(comparison),
        profiles(comparison),
        words_by_position(comparison, state_space, layers),
        pair(comparison, first, "most-alike", "The most alike layers of two models"),
        pair(comparison, last, "least-alike", "The least alike layers of two models"),
        correlations(comparison),
    ]


def similarity(comparison: Comparison) -> Figure:
    """Both matrices, and both maps."""
    parts = [plots.matrix_chart(comparison.matrices[m], LIGHT) for m in (FEATURES, "rsa")]
    maps = [plots.layer_map_chart(comparison.layer_maps[m], LIGHT) for m in (FEATURES, "rsa")]
    rows = [
        alt.hconcat(*part).resolve_scale(color="independent", shape="independent") for part in (parts, maps)
    ]
    return Figure(
        name="similarity",
        title="How alike the layers of all models are, by features and by geometry",
        chart=themed(alt.vconcat(*rows).resolve_scale(color="independent", shape="independent")),
        caption="Above, every layer against every other: by the ranking of features (τ_w, left) and by "
        "distances between words (RSA, right). Below, the same on maps where near means alike; lines "
        "follow each model from its first layer to its last.",
        of_paper="Figure 2",
    )


def profiles(comparison: Comparison) -> Figure:
    """Importance of every feature in every layer, and ρ below."""
    found = list(comparison.profiles.values())
    order = frames.feature_order(comparison)
    domain = chart_tables.importance_domain([chart_tables.profile_table(p) for p in found])
    floor = chart_tables.score_floor([chart_tables.score_table(p) for p in found])
    columns = [
        alt.vconcat(
            plots.importance_chart(p, LIGHT, order=order, domain=domain),
            plots.score_chart(p, LIGHT, floor=floor, title=""),
        )
        for p in found
    ]
    return Figure(
        name="profiles",
        title="What each layer is organised by",
        chart=themed(alt.hconcat(*columns)),
        caption="Importance of each feature, the drop in held-out ρ when it is scrambled, from the first "
        "layer to the last; bands are the spread over folds. Below, how well all features together predict "
        "the distances of the layer, under the dashed line, about what the best of models could reach.",
        of_paper="Figure 3",
    )


def words_by_position(comparison: Comparison, system: str, layers: tuple[int, int]) -> Figure:
    """The words of a low and of a high layer, coloured by their position in the sentence."""
    assert comparison.word_maps is not None
    parts = [
        plots.words_chart(comparison.word_maps, comparison.stimuli, system, layer, POSITION, LIGHT)
        for layer in layers
    ]
    return Figure(
        name="words-by-position",
        title=f"Words of a low and of a high layer of {system}, by their position",
        chart=themed(alt.hconcat(*parts)),
        caption="Each dot is a word in its sentence, its shade the position there. Where position separates "
        "the words, the shades lie apart.",
        of_paper="Figure 3",
    )


def pair(comparison: Comparison, places: tuple[int, int], name: str, title: str) -> Figure:
    """One pair of layers: importance in both, what adds up to τ_w, and the words of both."""
    a, b = (row_name(comparison.rows[k]) for k in places)
    tau = float(comparison.matrices[FEATURES].values[places])
    return Figure(
        name=name,
        title=f"{title}: {a} and {b}",
        chart=themed(pair_figure(comparison, *places)),
        caption=f"τ_w = {number(tau)}. Features on the line matter equally in both. The words are coloured "
        "by the feature that matters most in the two layers together.",
        of_paper="Figure 4",
    )


def correlations(comparison: Comparison) -> Figure:
    """Correlations among the features of the stimuli."""
    features = [readable(str(name)) for name in comparison.correlations]
    chart = feature_correlations(frames.correlation_frame(comparison), features=features)
    return Figure(
        name="correlations",
        title="How far the features can be told apart",
        chart=themed(chart),
        caption="Correlations, over all pairs of words, between differing in one feature and differing in "
        "the other.",
        of_paper="Figure S5",
    )
