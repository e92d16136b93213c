"""`compare_with_group`: the scores of subjects × items × units with models, by geometry or by features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations as every_order
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from thinkalike.activations.conversion import (
    as_activations,
    as_stimuli,
    check_extraction,
    named_systems,
    open_activations,
)
from thinkalike.activations.rows import counted
from thinkalike.activations.store import Activations
from thinkalike.comparison.geometry_similarity import layer_measure, layers_of
from thinkalike.comparison.group import FEWEST_ITEMS, GroupComparison
from thinkalike.comparison.group_ceilings import WORDS, measure_ceilings, way_of
from thinkalike.comparison.group_features import compare_by_features
from thinkalike.errors import InvalidInput
from thinkalike.inference.left_out import has_range, left_out_matrices
from thinkalike.inference.null_calibration import null_values, sentence_orders
from thinkalike.inference.ranges import leave_parts_out
from thinkalike.labels import row_name
from thinkalike.measures.measure import Measure
from thinkalike.options import MOST_PERMUTATIONS, whole_number
from thinkalike.pairs.preprocessing import Preprocessing, prepare_steps
from thinkalike.stimuli.table import Stimuli
from thinkalike.systems.names import is_array_file
from thinkalike.types import Value

ENUMERATED = 8
"""Up to so many items all orders are tried (8! = 40,320); with more, orders are drawn"""


def compare_with_group(
    subjects: Any,
    models: Sequence[object] | Mapping[str, object],
    stimuli: Stimuli | pd.DataFrame | None = None,
    *,
    measure: str = "rsa",
    steps: str | Sequence[str] | None = None,
    permutations: int = 1_000,
    seed: int = 0,
    extraction: Mapping[str, Any] | None = None,
    **settings: Any,
) -> GroupComparison:
    """How well models stand for a group of subjects, subject by subject.

    Parameters
    ----------
    subjects : array (n_subjects, n_items, n_units), or a mapping or list of subjects, each an array
        (n_items, n_units), a mapping of regions to such, or Activations (`Activations.from_runs` for repeated
        measurements, `Activations.from_distances` for RDMs). All have the same items and regions.
    models : the same, one system each, layers as they come; or models by name, which read the `stimuli`.
    stimuli : what the items were; needed for measure="features" and for models by name, and tells words of
        one sentence together.
    measure : a name in `MEASURES`, or "features" for τ_w of importance profiles.
    steps : what the vectors of subjects and models go through first, as `["zscore", "pca:50"]`: fitted on all
        items, or for "features" on those of the training folds.
    permutations : orders of the models' items, for p over items. All of them for 8 items or fewer.
    seed : of the orders, and of the parts of the items that are left out.
    extraction : options of `extract`, for models by name.
    settings : of the encoding models, for measure="features".

    Returns
    -------
    GroupComparison

    Examples
    --------
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> rng = np.random.default_rng(0)
    >>> shared = rng.normal(size=(30, 4))
    >>> subjects = shared @ rng.normal(size=(8, 4, 10)) + rng.normal(size=(8, 30, 10))
    >>> found = ta.compare_with_group(subjects, {"good": shared, "bad": rng.normal(size=(30, 4))})
    >>> found.table().set_index("model")["p_both"].lt(0.01).to_dict()
    {'good:good': True, 'bad:bad': False}
    """
    whole_number("permutations", permutations, 19, MOST_PERMUTATIONS)
    shown = None if stimuli is None else as_stimuli(stimuli)
    people = subjects_of(subjects)
    named = named_systems(models)
    if not named:
        raise InvalidInput("No model was given: give at least one, or profile the group (profile_group).")
    check_extraction(extraction, named.values())
    systems = [_model(one, name, shown, extraction) for name, one in named.items()]
    _check_items(people[0], systems, shown)
    if measure == "features":
        if shown is None:
            raise InvalidInput("measure='features' needs the features of the items: give stimuli.")
        return compare_by_features(people, systems, shown, seed=seed, steps=steps, **settings)
    if settings:
        raise InvalidInput(f"{next(iter(settings))} is a setting of measure='features': leave it out.")
    prepared = prepare_steps(steps, shown)
    return _by_geometry(people, systems, shown, layer_measure(measure), permutations, seed, prepared)


def _model(
    given: object, name: str, stimuli: Stimuli | None, extraction: Mapping[str, Any] | None
) -> Activations:
    """Arrays as they are; a model by its name reads the stimuli."""
    if not isinstance(given, (str, Path)) or is_array_file(given):
        return open_activations(given, name)
    if stimuli is None:
        raise InvalidInput(f"{given} is a model, which must be shown something: give the stimuli.")
    from thinkalike.activations import extract

    return extract(given, stimuli, system=name, **(extraction or {}))


def _by_geometry(
    people: list[Activations],
    systems: list[Activations],
    stimuli: Stimuli | None,
    measure: Measure,
    n_orders: int,
    seed: int,
    steps: Preprocessing,
) -> GroupComparison:
    rows = tuple((one.system, layer) for one in systems for layer in one.layers)
    models = list(layers_of(systems, steps))
    names = [row_name(row) for row in rows]
    n_items, regions = people[0].n_items, people[0].layers
    by_sentence = stimuli is not None and "sentence" in stimuli.items
    clusters = stimuli.items["sentence"].to_numpy() if stimuli is not None and by_sentence else None
    orders = item_orders(clusters, n_items, n=n_orders, seed=seed)
    ranged = has_range(measure.name) and n_items >= FEWEST_ITEMS
    kept = list(leave_parts_out(clusters, n_items, seed=seed)) if ranged else []
    scores, without, p_items, ends, thresholds, least, above = [], [], [], [], [], [], []
    for region in regions:
        layers = [steps(one[region]) for one in people]
        called = [f"{one.system}:{region}" for one in people]
        if measure.matches_items:
            observed, null = null_values(measure, layers, models, orders, names=(called, names))
            sign = -1.0 if measure.kind == "distance" else 1.0
            at_least = sign * null.mean(axis=1) >= sign * observed.mean(axis=0) - 1e-6
            p_items.append((1 + at_least.sum(axis=0)) / (1 + len(orders)))
            unmoved = (np.abs(null - observed) < 1e-6).all(axis=1)  # items that a model takes for one
            least.append((1 + unmoved.sum(axis=0)) / (1 + len(orders)))
            thresholds.append(sign * np.quantile(sign * null.mean(axis=1), 0.95, axis=0))
            chance = (observed + null.sum(axis=0)) / (1 + len(orders))  # the given order is one of all
            above.append(sign * (observed - chance))
        else:
            observed = measure.matrix(layers, models, names_a=called, names_b=names)
            p_items.append(np.full(len(models), np.nan))
            thresholds.append(np.full(len(models), np.nan))
            least.append(np.full(len(models), np.nan))
            above.append(np.full_like(observed, np.nan))
        scores.append(observed)
        if kept:
            found = left_out_matrices(measure.name, [*layers, *models], kept, seed=seed)
            without.append(found.values[:, : len(people), len(people) :])
        ends.append(measure_ceilings(measure, layers, models, called))
    return GroupComparison(
        measure.name,
        tuple(one.system for one in people),
        tuple(regions),
        rows,
        np.stack(scores, axis=1),
        np.stack(above, axis=1),
        np.stack([lower for lower, _ in ends]),
        np.stack([upper for _, upper in ends]),
        np.stack(p_items),
        n_items,
        kind=measure.kind,
        without=np.stack(without, axis=2) if kept else None,
        parts=len(kept) or None,
        least_p=np.stack(least),
        threshold=np.stack(thresholds),
        settings={
            "permutations": len(orders),
            "seed": seed,
            "ceilings": WORDS[way_of(measure)],
            **({"steps": list(steps.names)} if steps else {}),
        },
    )


def item_orders(
    clusters: npt.NDArray[np.generic] | None, n_items: int, *, n: int, seed: int
) -> npt.NDArray[np.int64]:
    """Orders of the items other than the given one: all of them if the items are few, else `n` drawn."""
    if clusters is None and n_items <= ENUMERATED:
        return np.array(list(every_order(range(n_items))))[1:]
    return sentence_orders(clusters, n_items, n=n, seed=seed)


def subjects_of(subjects: Any, *, stimuli: Stimuli | None = None) -> list[Activations]:
    """The subjects of a group, checked: the same items and regions in all, answers to `stimuli` if given."""
    if not isinstance(subjects, (Mapping, Activations)) and hasattr(subjects, "ndim"):
        if subjects.ndim != 3:
            raise InvalidInput(
                f"Got subjects of shape {tuple(subjects.shape)}: give (n_subjects, n_items, n_units), or a "
                "mapping of subjects to arrays (n_items, n_units), or to Activations.from_runs for repeated "
                "measurements."
            )
        subjects = {f"subject {k + 1}": one for k, one in enumerate(subjects)}
    if isinstance(subjects, Activations):
        subjects = [subjects]
    named = named_systems(subjects)
    if not named:
        raise InvalidInput("No subject was given: give at least one.")
    people = [_regions(as_activations(one, name), name) for name, one in named.items()]
    first = people[0]
    if first.n_items < 3:
        raise InvalidInput(
            f"There are {first.n_items} condition(s): their one distance has no order. Measure at least 3."
        )
    _check_items(first, people[1:], None)
    for one in people[1:]:
        if one.layers != first.layers:
            raise InvalidInput(
                f"{one.system} has the regions {', '.join(map(str, one.layers))}, {first.system} "
                f"{', '.join(map(str, first.layers))}: all subjects need the same, in the same order."
            )
    if stimuli is not None:
        for one in people:
            one.check_stimuli(stimuli)
    return people


def _regions(one: Value, name: str) -> Activations:
    """A subject's only region is called the same in all subjects, if nothing but the subject names it."""
    if not isinstance(one, Activations):
        one = open_activations(one, name)
    if not isinstance(one, Activations):
        raise InvalidInput(f"{name} is {type(one).__name__}: give arrays or Activations for every subject.")
    of_npy = len(one.layers) == 1 and str(one.metadata.get("path", "")).endswith(".npy")
    return replace(one, layers=("all",)) if of_npy or one.layers == (name,) else one


def _check_items(first: Activations, others: Sequence[object], stimuli: Stimuli | None) -> None:
    """Refuse what has other items than the first subject, or answers to other stimuli."""
    for one in others:
        if not isinstance(one, Activations):
            raise InvalidInput(f"Got {one!r} as a model: give arrays or Activations (ta.extract).")
        bare = counted(one.item_names) or counted(first.item_names)  # unnamed rows are taken in their order
        if one.n_items != first.n_items or (one.item_names != first.item_names and not bare):
            differs = f"{one.n_items} items, {first.system} has {first.n_items}"
            if one.n_items == first.n_items:
                pairs = zip(one.item_names, first.item_names, strict=True)
                k = next(i for i, (a, b) in enumerate(pairs) if a != b)
                differs = f"item {one.item_names[k]!r} where {first.system} has {first.item_names[k]!r}"
            raise InvalidInput(f"{one.system} has {differs}: all need the same items, in the same order.")
    if stimuli is not None:
        for system in [first, *(one for one in others if isinstance(one, Activations))]:
            system.check_stimuli(stimuli)
