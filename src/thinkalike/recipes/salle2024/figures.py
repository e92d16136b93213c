"""Figures 2, 3, 4 and S5 of Salle et al. 2024, and which feature leads on which sentences."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd
from sklearn.manifold import smacof

from thinkalike.charts.heatmap import feature_correlations
from thinkalike.charts.theme import LIGHT, themed
from thinkalike.comparison import chart_tables, plots
from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.maps import LayerMap
from thinkalike.comparison.similarity_matrix import FEATURES
from thinkalike.labels import row_name
from thinkalike.recipes.findings import Figure
from thinkalike.recipes.salle2024.measures import POSITION, leaders
from thinkalike.recipes.salle2024.observing import Observation
from thinkalike.recipes.salle2024.work import Work
from thinkalike.report import frames
from thinkalike.report.figures import pair_figure
from thinkalike.wording import number, readable


def draw(work: Work, seen: Mapping[str, list[Observation]]) -> list[Figure]:
    """The figures of the paper from the first set, and the leading features on all."""
    comparison = work.comparison()
    first, last = extremes(comparison)
    system = work.settings.state_space or work.cast.models[-1]
    return [
        led(seen),
        similarity(comparison),
        by_kruskal(comparison),
        profiles(comparison),
        words_by_position(comparison, system),
        pair(comparison, first, "most-alike", "The most alike layers of two models"),
        pair(comparison, last, "least-alike", "The least alike layers of two models"),
        correlations(comparison),
    ]


def led(seen: Mapping[str, list[Observation]]) -> Figure:
    """Share of the layers that each feature leads, by model and kind of sentences."""
    rows = [
        {"model": name, "sentences": kind, "feature": readable(feature), "share": 1.0 / len(tops) / len(sets)}
        for kind, sets in seen.items()
        for one in sets
        for name, table in one.tables.items()
        for tops in [leaders(table)]
        for feature in tops
    ]
    data = pd.DataFrame(rows).groupby(["model", "sentences", "feature"], as_index=False)["share"].sum()
    order = list(data.groupby("feature")["share"].sum().sort_values(ascending=False).index)
    chart = (
        alt.Chart(data)
        .mark_bar(height=alt.RelativeBandSize(0.7))
        .encode(
            y=alt.Y("sentences:N", sort=list(seen), title=None, axis=alt.Axis(labelLimit=220, ticks=False)),
            x=alt.X("share:Q", title="share of the layers that it leads", axis=alt.Axis(format="%")),
            color=alt.Color(
                "feature:N",
                sort=order,
                title="leading feature",
                scale=alt.Scale(range=LIGHT.feature_colors(len(order))),
            ),
            row=alt.Row("model:N", sort=list(next(iter(seen.values()))[0].tables), title=None),
            tooltip=["model:N", "sentences:N", "feature:N", alt.Tooltip("share:Q", format=".0%")],
        )
        .properties(width=380, height=26 * len(seen))
    )
    return Figure(
        name="leaders",
        title="Which feature leads, on which sentences",
        chart=themed(chart),
        caption="Share of the layers (embeddings left out) in which each feature is the most important, mean "
        "over the sets of sentences.",
        of_paper="",
    )


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
        "distances between words (RSA, right). Below, the same on maps where near means alike (metric MDS); "
        "lines follow each model from its first layer to its last. First set of sentences.",
        of_paper="Figure 2",
    )


def by_kruskal(comparison: Comparison) -> Figure:
    """The maps of layers by non-metric MDS, which the paper cites."""
    maps = [plots.layer_map_chart(kruskal_map(comparison, m), LIGHT) for m in (FEATURES, "rsa")]
    return Figure(
        name="kruskal",
        title="The same maps by Kruskal's non-metric MDS",
        chart=themed(alt.hconcat(*maps).resolve_scale(color="independent", shape="independent")),
        caption="Only the order of the distances counts here, as in the method that the paper cites: by "
        "features (left) and by geometry (right).",
        of_paper="Figure 2",
    )


def kruskal_map(comparison: Comparison, measure: str) -> LayerMap:
    """Layers placed so that distances are in the order of 1 − similarity, from our own map on."""
    ours = comparison.layer_maps[measure]
    apart = np.maximum(1.0 - np.nan_to_num(comparison.matrices[measure].values), 0.0)
    np.fill_diagonal(apart, 0.0)
    points, stress = smacof(
        (apart + apart.T) / 2, metric=False, init=ours.coordinates, n_init=1, normalized_stress=True
    )[:2]
    return LayerMap(
        measure=ours.measure, rows=ours.rows, coordinates=np.asarray(points), stress=float(stress)
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
        "the distances of the layer, under the dashed line, about what the best of models could reach. First "
        "set of sentences.",
        of_paper="Figure 3",
    )


def words_by_position(comparison: Comparison, system: str) -> Figure:
    """The words of a low and of a high layer, coloured by their position in the sentence."""
    assert comparison.word_maps is not None
    parts = [
        plots.words_chart(comparison.word_maps, comparison.stimuli, system, layer, POSITION, LIGHT)
        for layer in low_and_high(comparison, system)
    ]
    return Figure(
        name="words-by-position",
        title=f"Words of a low and of a high layer of {system}, by their position",
        chart=themed(alt.hconcat(*parts)),
        caption="Each dot is a word in its sentence, its shade the position there. Where position separates "
        "the words, the shades lie apart.",
        of_paper="Figure 3",
    )


def low_and_high(comparison: Comparison, system: str) -> tuple[int, int]:
    """A layer of the lower and one of the upper half: at a quarter and at three quarters of the depth."""
    layers = [layer for layer in comparison.profiles[system].layers if layer != 0]
    last = len(layers) - 1
    return int(layers[round(0.25 * last)]), int(layers[round(0.75 * last)])


def extremes(comparison: Comparison) -> tuple[tuple[int, int], tuple[int, int]]:
    """The most and the least alike layers of two different models, embeddings left out."""
    values = comparison.matrices[FEATURES].values.copy()
    owners = np.array([system for system, _ in comparison.rows])
    block = np.array([layer != 0 for _, layer in comparison.rows])
    values[(owners[:, None] == owners) | ~(block[:, None] & block)] = np.nan
    values[np.tril_indices(len(values))] = np.nan
    places = [np.unravel_index(f(values), values.shape) for f in (np.nanargmax, np.nanargmin)]
    first, last = ((int(i), int(j)) for i, j in places)
    return first, last


def pair(comparison: Comparison, places: tuple[int, int], name: str, title: str) -> Figure:
    """One pair of layers: importance in both, what adds up to τ_w, and the words of both."""
    a, b = (row_name(comparison.rows[k]) for k in places)
    tau = float(comparison.matrices[FEATURES].values[places])
    return Figure(
        name=name,
        title=f"{title}: {a} and {b}",
        chart=themed(pair_figure(comparison, *places)),
        caption=f"τ_w = {number(tau)} on the first set of sentences. Features on the line matter equally in "
        "both. The words are coloured by the feature that matters most in the two layers together.",
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
