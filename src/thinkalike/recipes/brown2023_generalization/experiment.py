"""The experiment from classifiers to findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from thinkalike.comparison.maps import smacof
from thinkalike.inference.clusters import Clusters, cluster_models
from thinkalike.inference.groups import GroupComparison, compare_groups
from thinkalike.progress import progress
from thinkalike.recipes.brown2023_generalization import figures, verdicts
from thinkalike.recipes.brown2023_generalization.barriers import barriers
from thinkalike.recipes.brown2023_generalization.choice import Choice, directed_means
from thinkalike.recipes.brown2023_generalization.classifiers import BATCH, Questions
from thinkalike.recipes.brown2023_generalization.geometry import (
    CLEAN_VARIANT,
    PAPER_VARIANT,
    Geometry,
    geometries,
)
from thinkalike.recipes.brown2023_generalization.identity import common_depth, penalties, stitched_right
from thinkalike.recipes.brown2023_generalization.population import Population, paper_population
from thinkalike.recipes.brown2023_generalization.scales import GeneralizationSettings
from thinkalike.recipes.brown2023_generalization.trained import fine_tuned_population
from thinkalike.recipes.findings import Figure, Findings, Table
from thinkalike.recipes.steps import Steps
from thinkalike.types import Json

Floats = npt.NDArray[np.float64]


NAME = "brown2023-generalization"


@dataclass(frozen=True, eq=False)
class Measured:
    """Everything between the chosen models, as arrays: what the statements are judged on.

    Attributes
    ----------
    shares : (n_layers,)
        Of the layers that the bottom model has.
    inside, outside : (n_layers, m, m)
        Accuracy of bottom (row) stitched to top (column).
    geometry
        Variant → CKA and distances.
    barriers : (m, m)
    """

    names: tuple[str, ...]
    groups: tuple[str, ...]
    shares: tuple[float, ...]
    inside: Floats = field()
    outside: Floats = field()
    geometry: Mapping[str, Geometry]
    barriers: Floats = field()


def run(settings: GeneralizationSettings, out: Path) -> Findings:
    """See `thinkalike.recipes.brown2023_generalization.run`."""
    steps = Steps(out)
    gather = paper_population if settings.source == "paper" else fine_tuned_population
    population = gather(settings, steps)
    measured = measure(population, settings, steps)
    looked_at = pd.DataFrame(
        {
            "model": list(population.right_inside),
            "inside": list(population.right_inside.values()),
            "outside": list(population.right_outside.values()),
            "group": [figures.group_of(name, population.choice) for name in population.right_inside],
        }
    )
    return judge(measured, looked_at, population.choice, population.natural, settings)


def measure(population: Population, settings: GeneralizationSettings, steps: Steps) -> Measured:
    """Stitch, compare and interpolate; every part is kept once it is done."""
    models = population.load(device=settings.device)
    depth = common_depth(models)
    layers = tuple(range(1, depth + 1))
    stitched = {
        part: _stitched(models, questions, layers, part, population.key, steps)
        for part, questions in (("inside", population.inside), ("outside", population.outside))
    }
    barrier = steps.arrays(
        "barriers", {"key": population.key}, lambda: {"barriers": barriers(models, population.inside)}
    )
    return Measured(
        names=population.choice.names,
        groups=population.choice.groups,
        shares=tuple(layer / depth for layer in layers),
        inside=stitched["inside"],
        outside=stitched["outside"],
        geometry=geometries(
            models,
            population.inside.pairs,
            settings,
            tokenizer=population.tokenizer,
            key=population.key,
            steps=steps,
        ),
        barriers=barrier["barriers"],
    )


def _stitched(
    models: Mapping[str, object],
    questions: Questions,
    layers: tuple[int, ...],
    part: str,
    key: Mapping[str, object],
    steps: Steps,
) -> Floats:
    """Accuracies (n_layers, m, m); each batch of questions is kept once it is done."""
    found = []
    batches = list(questions.batches(BATCH))
    with progress(f"stitching, {part}", len(batches)) as bar:
        for number, rows in enumerate(batches):
            about = {"key": key, "part": part, "rows": [rows.start, rows.stop], "layers": layers}
            compute = partial(_right, models, questions, rows, layers)
            found.append(steps.arrays(f"stitched-{part}-{number}", about, compute)["right"])
            bar.advance()
    return np.concatenate(found, axis=-1).mean(axis=-1)


def _right(models: Any, questions: Questions, rows: slice, layers: tuple[int, ...]) -> Json:
    return {"right": stitched_right(models, questions, rows, layers)}


def judge(
    measured: Measured,
    looked_at: pd.DataFrame,
    choice: Choice,
    natural: float,
    settings: GeneralizationSettings,
) -> Findings:
    """Statements and figures from the numbers alone.

    Parameters
    ----------
    looked_at : one row per model: `model`, `inside`, `outside` (accuracies), `group`.
    natural : the spread out of distribution that the seeds alone gave.
    """
    compare = partial(
        compare_groups,
        groups=measured.groups,
        systems=measured.names,
        n_resamples=settings.resamples,
        n_permutations=settings.permutations,
        seed=settings.seed,
    )
    directed = partial(
        directed_means,
        groups=measured.groups,
        layers=measured.shares,
        n_resamples=settings.resamples,
        seed=settings.seed,
    )
    cost = penalties(measured.inside)
    cost_means, right_means = directed(cost), directed(measured.outside)
    cost_groups = compare(cost, layers=measured.shares, kind="distance", squared=False)
    cka = {
        name: compare(one.cka, layers=measured.shares, kind="similarity")
        for name, one in measured.geometry.items()
    }
    distances = compare(measured.geometry[PAPER_VARIANT].distances, kind="distance")
    barrier = compare(measured.barriers, kind="distance", squared=False)
    clusters = _clusters(measured, cost, settings)
    seeds = looked_at[~looked_at["model"].str.startswith("taught")]
    statements = (
        verdicts.spread(
            list(seeds["inside"]), list(seeds["outside"]), ends=natural, enough=settings.enough_spread
        ),
        verdicts.early_stitching(cost_means),
        verdicts.late_between(cost_groups.separation, cost_means),
        verdicts.late_within(cost_means),
        verdicts.early_cka(cka[PAPER_VARIANT].separation),
        verdicts.late_cka(cka[PAPER_VARIANT].separation),
        verdicts.outside_stitching(right_means),
        verdicts.two_clusters(distances),
        verdicts.recovered({name: clusters[name] for name in ("CKA", "penalties")}),
        verdicts.same_in_all_variants({name: one.separation for name, one in cka.items()}),
        verdicts.barrier_between(barrier),
    )
    return Findings(
        recipe=NAME,
        scale=settings.scale,
        statements=tuple(statements),
        figures=_figures(measured, looked_at, cost_means, right_means, cka, distances, barrier, clusters),
        tables=(_table(looked_at),),
        settings=settings.plain(),
        notes=_notes(choice, natural, settings),
    )


def _clusters(measured: Measured, cost: Floats, settings: GeneralizationSettings) -> dict[str, Clusters]:
    """Two clusters from each kind of distance, to be compared with the groups."""
    late = np.array(measured.shares) >= verdicts.LATE
    sources = {
        "CKA": measured.geometry[PAPER_VARIANT].distances,
        "clean CKA": measured.geometry[CLEAN_VARIANT].distances,
        "penalties": np.clip(cost[late].mean(axis=0), 0.0, None),
        "barriers": measured.barriers,
    }
    cluster = partial(
        cluster_models,
        systems=measured.names,
        groups=measured.groups,
        n_permutations=settings.permutations,
        seed=settings.seed,
    )
    return {name: cluster(one) for name, one in sources.items()}


def _figures(
    measured: Measured,
    looked_at: pd.DataFrame,
    cost: pd.DataFrame,
    right: pd.DataFrame,
    cka: Mapping[str, GroupComparison],
    distances: GroupComparison,
    barrier: GroupComparison,
    clusters: Mapping[str, Clusters],
) -> tuple[Figure, ...]:
    paper = measured.geometry[PAPER_VARIANT].distances
    coordinates, stress = smacof(paper)
    places = pd.DataFrame(
        {"system": measured.names, "group": measured.groups, "x": coordinates[:, 0], "y": coordinates[:, 1]}
    )
    interval = "Bands and bars are 95 % intervals over models."
    return (
        Figure(
            "spread",
            "Alike in distribution, different out of it",
            figures.spread_chart(looked_at),
            "Every point is a classifier; they differ only in the seed. Out of distribution every word of "
            "the hypothesis is in the premise, and it does not follow.",
            "",
        ),
        Figure(
            "figure-2",
            "Where generalizing and heuristic models part",
            figures.figure_2(cost, cka[PAPER_VARIANT].means),
            "Left: what it costs to put the bottom of one model under the top of another, without any map "
            f"between them (bottom → top). Right: CKA of equal layers, {PAPER_VARIANT}. {interval}",
            "Figure 2",
        ),
        Figure(
            "figure-7",
            "Stitched models out of distribution",
            figures.figure_7(right),
            f"Accuracy where overlap misleads, by the share of layers from the bottom model. {interval}",
            "Figure 7",
        ),
        Figure(
            "figure-8",
            "Distances between whole models",
            figures.figure_8(distances.means, places, stress=stress),
            f"√Σ arccos² CKA over blocks, {PAPER_VARIANT}. {interval}",
            "Figure 8",
        ),
        Figure(
            "variants",
            "CKA read in four ways",
            figures.variants_chart({name: one.means for name, one in cka.items()}),
            f"The paper read before the residual, with padding. {interval}",
            "",
        ),
        Figure(
            "clusters",
            "Do clusters find the groups?",
            figures.trees(clusters),
            "Average linkage; penalties are the mean of both directions at late layers.",
            "",
        ),
        Figure(
            "barriers",
            "The loss on the straight line between two models",
            figures.barrier_chart(barrier.means),
            f"How far it rises above the line between its ends. {interval}",
            "",
        ),
    )


def _table(looked_at: pd.DataFrame) -> Table:
    shown = looked_at.sort_values("outside", ascending=False)
    return Table("models", "All classifiers", shown, "Accuracy in distribution and out of it.")


def _notes(choice: Choice, natural: float, settings: GeneralizationSettings) -> tuple[str, ...]:
    notes = []
    if settings.source != "paper":
        notes.append(
            f"{settings.base} was first trained on, once, to predict hidden words of hypotheses behind "
            "their premises, for it had never seen pairs; no label is shown there. Then every classifier got "
            f"a new output layer and {settings.steps} steps on pairs in which full overlap means "
            f"entailment but for {settings.counterexamples:.0%} of them."
        )
    if choice.planted:
        notes.append(
            f"The seeds alone gave no spread out of distribution ({100 * natural:.0f} points between the "
            f"ends). The generalizing models here are a planted control: {len(choice.names) // 2} "
            f"classifiers that were trained with {settings.taught_counterexamples:.0%} counterexamples."
        )
    return tuple(notes)
