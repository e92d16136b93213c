"""Which figures there are, and what stands under them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from thinkalike.comparison.maps import smacof
from thinkalike.inference.clusters import Clusters, cluster_models
from thinkalike.inference.groups import compare_groups
from thinkalike.recipes.brown2023_generalization import figures
from thinkalike.recipes.brown2023_generalization.choice import Choice, directed_means
from thinkalike.recipes.brown2023_generalization.classifier_cka import CLEAN_VARIANT, PAPER_VARIANT
from thinkalike.recipes.brown2023_generalization.population import SEEDS
from thinkalike.recipes.brown2023_generalization.scales import GeneralizationSettings
from thinkalike.recipes.brown2023_generalization.verdicts import Groups
from thinkalike.recipes.findings import Figure
from thinkalike.types import Chart

INTERVAL = "Bands and bars are 95 % intervals over models."
CONTROL = "The planted control: the generalizing models were taught with counterexamples."


def spread_figure(accuracies: pd.DataFrame, choices: Mapping[str, Choice]) -> Figure:
    """Every classifier, in distribution and on questions out of it that did not choose."""
    seeds = choices[SEEDS]
    own = [figures.group_of(name, seeds) for name in accuracies["model"]]
    taught = accuracies["model"].str.startswith("taught")
    shown = accuracies.assign(group=np.where(taught, figures.TAUGHT, own))
    return Figure(
        "spread",
        "Alike in distribution, different out of it?",
        figures.spread_chart(shown),
        "Every point is a classifier; but for those that were taught with counterexamples they differ only "
        "in the seed. Out of distribution every word of the hypothesis is in the premise, and it does not "
        "follow. The groups were chosen on other questions than those shown.",
        "",
    )


def group_figures(groups: Groups, settings: GeneralizationSettings, ending: str = "") -> list[Figure]:
    """The figures of one choice of groups."""
    measured = groups.measured
    shares, last = measured.shares.tolist(), measured.last_shares.tolist()
    directed = partial(directed_means, groups=groups.groups)
    compare = partial(
        compare_groups,
        groups=groups.groups,
        systems=measured.names,
        n_permutations=999,
        seed=settings.seed,
    )
    cka = {
        name: compare(one.cka.mean(axis=0), layers=shares, kind="similarity").means
        for name, one in measured.geometry.items()
    }
    distances = measured.geometry[PAPER_VARIANT].distances.mean(axis=0)
    coordinates, stress = smacof(distances)
    places = pd.DataFrame(
        {"system": measured.names, "group": groups.groups, "x": coordinates[:, 0], "y": coordinates[:, 1]}
    )
    cost = directed(measured.costs.mean(axis=0), layers=shares)
    right = directed(measured.outside.mean(axis=0), layers=last)
    figure = partial(_figure, ending)
    return [
        figure(
            "figure-2",
            "Where generalizing and heuristic models part",
            figures.figure_2(cost, cka[PAPER_VARIANT]),
            "Left: what it costs to put the bottom of one model under the top of another, without any map "
            f"between them (bottom → top). Right: CKA of equal layers, {PAPER_VARIANT}. {INTERVAL}",
            "Figure 2",
        ),
        figure(
            "figure-7",
            "Stitched models out of distribution",
            figures.figure_7(right),
            "Accuracy where overlap misleads, by the share of layers from the bottom model, at the last two "
            f"layers. {INTERVAL}",
            "Figure 7",
        ),
        figure(
            "figure-8",
            "Distances between whole models",
            figures.figure_8(compare(distances, kind="distance").means, places, stress=stress),
            f"√Σ arccos² CKA over blocks, {PAPER_VARIANT}. {INTERVAL}",
            "Figure 8",
        ),
        figure(
            "variants",
            "CKA read in four ways",
            figures.variants_chart(cka),
            f"The paper read before the residual, with padding. {INTERVAL}",
            "",
        ),
        figure(
            "clusters",
            "Do clusters find the groups?",
            figures.trees(_clusters(groups, settings)),
            "Average linkage; penalties are the mean of both directions at late layers. All sets together.",
            "",
        ),
        figure(
            "barriers",
            "The loss on the straight line between two models",
            figures.barrier_chart(compare(measured.barriers, kind="distance", squared=False).means),
            f"How far it rises above the line between its ends. {INTERVAL}",
            "",
        ),
    ]


def _figure(ending: str, name: str, title: str, chart: Chart, caption: str, of_paper: str) -> Figure:
    control = f" {CONTROL}" if ending else ""
    shown = f"{title} (control)" if ending else title
    return Figure(f"{name}{ending}", shown, chart, f"{caption}{control}", "" if ending else of_paper)


def _clusters(groups: Groups, settings: GeneralizationSettings) -> dict[str, Clusters]:
    """Two clusters from each kind of distance, to be compared with the groups."""
    measured = groups.measured
    sources = {
        "CKA": measured.geometry[PAPER_VARIANT].distances.mean(axis=0),
        "clean CKA": measured.geometry[CLEAN_VARIANT].distances.mean(axis=0),
        "penalties": np.clip(measured.costs[:, groups.late].mean(axis=(0, 1)), 0.0, None),
        "barriers": measured.barriers,
    }
    cluster = partial(
        cluster_models,
        systems=measured.names,
        groups=groups.groups,
        n_permutations=settings.permutations,
        seed=settings.seed,
    )
    return {name: cluster(one) for name, one in sources.items()}
