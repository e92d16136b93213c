"""What analyses of the same items conclude: each layer is read once, and judged in all of their ways."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from thinkalike.activations.rows import subset_activations
from thinkalike.activations.store import Activations
from thinkalike.comparison.analyses import Analysis
from thinkalike.comparison.profiles import importance_shares, mean_over_folds
from thinkalike.comparison.profiling import ProfilingPlan, plan_profiles
from thinkalike.comparison.rereading import chosen_items
from thinkalike.encoding.crossval import JudgedLayer
from thinkalike.encoding.settings import Settings
from thinkalike.errors import InvalidInput, ThinkalikeError
from thinkalike.inference.conclusions import Pair
from thinkalike.inference.weighted_tau import tau_matrix
from thinkalike.labels import Floats, Layer
from thinkalike.measures.rsa import RankedLayers
from thinkalike.pairs.distances import DistanceLike, make_target
from thinkalike.pairs.pairset import Pairs
from thinkalike.pairs.ranks import standardised_ranks
from thinkalike.parallel import cores, stream_in_order
from thinkalike.stimuli.table import Stimuli

GEOMETRY_PAIRS = 200_000
"""Pairs of items that the geometry of an analysis is judged on: RSA within about 0.002"""
KEPT = ("groups", "duplicates")
"""Of the structure of a plan what means the same for other items"""


@dataclass(frozen=True)
class Found:
    """What one analysis gives."""

    likeness: Mapping[Pair, float]
    geometry: Mapping[Pair, float]
    dominant: tuple[str | None, ...]
    shares: tuple[float, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class _Look:
    """What is done with a layer: judged by each plan, and its distances ranked."""

    plans: Sequence[ProfilingPlan]
    pairs: Pairs
    distance: DistanceLike

    def __call__(
        self, task: tuple[Activations, Layer]
    ) -> tuple[list[JudgedLayer | ThinkalikeError], npt.NDArray[np.float32]]:
        X = task[0][task[1]]
        changed = self.plans[0].steps(X)  # the same for all: no analysis of the grid changes them
        return [_judged(plan, task[1], X) for plan in self.plans], standardised_ranks(
            self.pairs, make_target(changed, self.distance)
        )


def _judged(plan: ProfilingPlan, label: Layer, X: np.ndarray) -> JudgedLayer | ThinkalikeError:
    try:
        return plan.judge(label, X)
    except ConvergenceWarning as warning:  # raised, for numbers of a fit that is not done are no analysis
        return InvalidInput(f"Layer {label!r}: {warning}")
    except ThinkalikeError as error:
        return error


def analyse_together(
    group: Sequence[Analysis], stimuli: Stimuli, systems: Sequence[Activations], main: Mapping[str, Any]
) -> tuple[dict[str, Found], dict[str, str]]:
    """The analyses of a group by name, and why some could not be made."""
    try:
        kept = chosen_items(stimuli, group[0])
        if kept is not None:
            stimuli = stimuli.subset(kept)
            systems = [subset_activations(one, stimuli) for one in systems]
    except ThinkalikeError as error:
        return {}, {one.name: str(error) for one in group}
    plans, failed = dict[str, ProfilingPlan](), dict[str, str]()
    for one in group:
        try:
            plans[one.name] = plan_profiles(stimuli, **plan_options(main, one.encoding))
        except ThinkalikeError as error:
            failed[one.name] = str(error)
    if not plans:
        return {}, failed
    distance = next(iter(plans.values())).encoding.settings.distance
    pairs = Pairs.of(len(stimuli), max_pairs=GEOMETRY_PAIRS, seed=main["seed"])
    tasks = [(one, layer) for one in systems for layer in one.layers]
    judged: list[list[JudgedLayer | ThinkalikeError]] = []
    try:
        with ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())  # for all threads: each cannot have its own
            warnings.simplefilter("error", ConvergenceWarning)
            ranked = stack.enter_context(RankedLayers(len(tasks), pairs))
            look = _Look(list(plans.values()), pairs, distance)
            described = group[0].name if len(group) == 1 else f"{group[0].name} and {len(group) - 1} more"
            for row, (layers, ranks) in enumerate(
                stream_in_order(look, tasks, description=f"Analysis: {described}", threads=cores())
            ):
                ranked.put(row, ranks)
                judged.append(layers)
            geometry = ranked.correlate(None).values
    except ThinkalikeError as error:
        return {}, {one.name: str(error) for one in group}
    blocks = _blocks(systems)
    found: dict[str, Found] = {}
    for k, (name, plan) in enumerate(plans.items()):
        layers = [one[k] for one in judged]
        wrong = next((one for one in layers if isinstance(one, ThinkalikeError)), None)
        if wrong is not None:
            failed[name] = str(wrong)
            continue
        values = np.stack([one.importance for one in layers])  # type: ignore[union-attr]
        scores = np.array([np.nanmean(one.scores) for one in layers])  # type: ignore[union-attr]
        found[name] = _concluded(values, scores, plan, blocks, geometry if not found else None)
    return found, failed


def _concluded(
    importance: Floats,
    scores: Floats,
    plan: ProfilingPlan,
    blocks: Mapping[str, slice],
    geometry: Floats | None,
) -> Found:
    """From the importances of all layers (n_rows, n_folds, n_features) to conclusions."""
    means = mean_over_folds(importance)
    known = np.isfinite(means).all(axis=0)
    taus = tau_matrix(means[:, known]) if known.sum() > 1 else np.full((len(means),) * 2, np.nan)
    shares = {name: importance_shares(means[rows]).mean(axis=0) for name, rows in blocks.items()}
    names = plan.encoding.names
    return Found(
        likeness=_block_means(taus, blocks),
        geometry={} if geometry is None else _block_means(geometry, blocks),
        dominant=tuple(names[int(one.argmax())] if one.max() > 0 else None for one in shares.values()),
        shares=tuple(float(one.max()) for one in shares.values()),
        scores=tuple(float(np.nanmean(scores[rows])) for rows in blocks.values()),
    )


def _block_means(values: Floats, blocks: Mapping[str, slice]) -> dict[Pair, float]:
    def mean(block: Floats) -> float:
        known = block[np.isfinite(block)]
        return float(known.mean()) if len(known) else float("nan")

    return {(a, b): mean(values[blocks[a], blocks[b]]) for a, b in combinations(blocks, 2)}


def _blocks(systems: Sequence[Activations]) -> dict[str, slice]:
    """The rows of each system in matrices over all layers."""
    ends = np.cumsum([len(one.layers) for one in systems])
    return {
        one.system: slice(int(end) - len(one.layers), int(end))
        for one, end in zip(systems, ends, strict=True)
    }


def plan_options(main: Mapping[str, Any], changes: Mapping[str, object]) -> dict[str, Any]:
    """The settings of the comparison with the changes; no resamples, for an analysis gives one number."""
    known = {f.name for f in fields(Settings)} | set(KEPT)
    options = {name: value for name, value in main.items() if name in known}
    return {**options, "alphas": tuple(main["alphas"]), "resamples": 0, **changes}
