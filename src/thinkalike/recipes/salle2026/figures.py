"""The figures of `salle2026`: which facts matter, a map with ellipses, a tree, distances of three kinds."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform

from thinkalike.charts.heatmap import similarity_matrix
from thinkalike.charts.population_charts import fact_importances, model_matrix
from thinkalike.charts.theme import themed
from thinkalike.comparison.maps import align, smacof
from thinkalike.populations.between_models import Distances, euclidean_matrix
from thinkalike.populations.charts import map_chart, tree_chart
from thinkalike.populations.model_maps import ModelMap
from thinkalike.populations.model_trees import ModelTree
from thinkalike.recipes.findings import Figure
from thinkalike.recipes.salle2026.measures import Seen


def draw(seen: Sequence[Seen]) -> list[Figure]:
    """All of them; what is of one set is of the first."""
    tree = tree_of(seen[0].warped)
    return [
        reasons(seen),
        on_a_map(seen[0]),
        as_a_tree(seen[0], tree),
        matrices(seen[0], tree),
        layers(seen[0]),
    ]


def reasons(seen: Sequence[Seen]) -> Figure:
    """Importance of facts on every set of both kinds of sentences."""
    rows = [
        {"fact": fact, "importance": value, "kind": kind, "set": k + 1}
        for k, one in enumerate(seen)
        for kind, own in (("relative clauses", one), ("clauses", one.elsewhere))
        if own is not None
        for fact, value in own.importance.items()
    ]
    data = pd.DataFrame(rows)
    first = data[data["kind"] == "relative clauses"].groupby("fact")["importance"].median()
    order = {fact: k for k, fact in enumerate(first.sort_values(ascending=False).index)}
    data = data.sort_values(
        ["fact", "kind"], key=lambda c: c.map(order) if c.name == "fact" else -c.str.len()
    )
    return Figure(
        name="reasons",
        title="Which facts go with how alike models are",
        chart=themed(fact_importances(data, label="importance: how much ρ falls without the facts")),
        caption="A dot is a set of sentences, the bar their median. The target is the warped distance of raw "
        "importances between models.",
        of_paper="metadata figure",
    )


def on_a_map(seen: Seen) -> Figure:
    """Metric MDS of the mean over folds, and of each fold turned onto it."""
    coordinates, stress = smacof(seen.warped.values)
    folds = np.stack([align(smacof(one)[0], coordinates) for one in seen.folds])
    found = ModelMap("warped importances", seen.warped.names, coordinates, stress, folds)
    return Figure(
        name="map",
        title="Models on a map",
        chart=map_chart(found, seen.facts.get("family")),
        caption="Near is alike. Ellipses are one standard deviation over the five folds, each mapped by "
        "itself "
        "and turned onto the mean. First set of sentences.",
        of_paper="MDS figure",
    )


def as_a_tree(seen: Seen, tree: ModelTree) -> Figure:
    return Figure(
        name="tree",
        title="Models as a tree",
        chart=tree_chart(tree, seen.facts.get("family")),
        caption="Average linkage of the same distances. First set of sentences.",
        of_paper="",
    )


def tree_of(distances: Distances) -> ModelTree:
    condensed = squareform(distances.values, checks=False)
    merges = optimal_leaf_ordering(linkage(condensed, "average"), condensed)
    return ModelTree(distances.by, distances.names, merges, np.full(len(merges), np.nan))


def matrices(seen: Seen, tree: ModelTree) -> Figure:
    """Distances between models as the third version has them, as we have them, and by raw geometry."""
    several = {"warped importances": seen.warped, "1 − mean weighted τ": seen.taus, "geometry": seen.geometry}
    parts = [
        model_matrix(both_ways(one), order=tree.order, label="distance", title=name)
        for name, one in several.items()
    ]
    return Figure(
        name="matrices",
        title="Distances between models, by three measures",
        chart=themed(alt.hconcat(*parts).resolve_scale(color="independent")),
        caption="Left, raw importances matched by dynamic time warping; in the middle, one less the mean "
        "τ_w over all pairs of blocks; right, √(2(1 − ρ)) of all blocks side by side. Models in the "
        "order of the tree.",
        of_paper="distance matrices",
    )


def both_ways(distances: Distances) -> pd.DataFrame:
    names = np.array(distances.names, dtype=object)
    i, j = np.indices(distances.values.shape)
    return pd.DataFrame({"a": names[i.ravel()], "b": names[j.ravel()], "distance": distances.values.ravel()})


def layers(seen: Seen) -> Figure:
    """Euclidean distances of importances between all blocks of all models, family by family."""
    means = dict(
        zip(seen.observation.models, (one.mean(axis=1) for one in seen.observation.importance), strict=True)
    )
    families = seen.facts["family"] if "family" in seen.facts else dict.fromkeys(means, "all")
    order = sorted(means, key=lambda name: str(families[name]))
    stacked = np.concatenate([means[name] for name in order])
    labels = [f"{name}:{k + 1}" for name in order for k in range(len(means[name]))]
    owner = [str(families[name]) for name in order for _ in range(len(means[name]))]
    values = euclidean_matrix(stacked, stacked)
    i, j = np.indices(values.shape)
    data = pd.DataFrame(
        {
            "i": i.ravel(),
            "j": j.ravel(),
            "value": values.ravel(),
            "a": [labels[k] for k in i.ravel()],
            "b": [labels[k] for k in j.ravel()],
        }
    )
    chart = similarity_matrix(
        data,
        systems=[(family, [""] * owner.count(family)) for family in dict.fromkeys(owner)],
        domain=(0.0, float(values.max())),
        label="Euclidean distance",
        diverging=False,
        distance=True,
        every=999,
    )
    return Figure(
        name="layers",
        title="Distances between layers",
        chart=themed(chart),
        caption="Euclidean distance of raw importances between all blocks of all models, by family. First "
        "set of "
        "sentences.",
        of_paper="layer heatmaps",
    )
