"""Tasks that travel: functions of this module with a small argument, whose data lie at addresses.

`extract_model` fills a store; `look_at_layers` says all that a comparison wants of some layers of a store,
resamples and all; `measure_layers` holds the layers of two stores against each other. All give the same
however often they run. Ranks of distances are too large for a message: they are written
into the folder that the tasks share, where the caller takes them from.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from thinkalike.activations.store import Activations
from thinkalike.addresses import place
from thinkalike.comparison.compared_systems import ToRead
from thinkalike.comparison.layerpass import LayerTask, Look, LookedAt, OfGeometry
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.profiling import ProfilingPlan, collect_profile, plan_profiles
from thinkalike.dispatch import Failure, raise_failures, run_all, run_tasks, shared_folder
from thinkalike.files import write_bytes
from thinkalike.labels import Floats, Layer
from thinkalike.measures.measure import Measure
from thinkalike.measures.measure_table import MEASURES
from thinkalike.parallel import Engine
from thinkalike.stimuli.table import Stimuli
from thinkalike.types import Facts

STIMULI = "stimuli.parquet"


@dataclass(frozen=True)
class ExtractTask:
    """A model to be read, what it is shown, and where its answers go (None: the cache directory)."""

    model: str
    system: str
    stimuli: str
    out: str | None
    options: Facts
    threads: int
    """Of torch: as many as the caller's, so that sums are rounded alike"""


def extract_model(task: ExtractTask) -> None:
    """Fill a store; what is there of it is kept."""
    import torch

    from thinkalike.activations import extract

    torch.set_num_threads(task.threads)
    stimuli = Stimuli.from_table(task.stimuli)
    extract(task.model, stimuli, system=task.system, out=task.out, **task.options)


def extract_on_workers(
    engine: Engine,
    stimuli: Stimuli,
    wanted: Sequence[ToRead],
    root: Path | None,
) -> None:
    """Fill the stores of models, and say at the end which failed."""
    import torch

    with shared_folder(root) as folder:
        stimuli.save(folder / STIMULI)
        tasks = [
            ExtractTask(
                one.model,
                one.system,
                str((folder / STIMULI).resolve()),
                None if one.out is None else str(one.out.resolve()),
                dict(one.options),
                torch.get_num_threads(),
            )
            for one in wanted
        ]
        names = [one.system for one in wanted]
        run_all(engine, extract_model, tasks, names=names, description="Reading models")


@dataclass(frozen=True)
class LayersTask:
    """Layers of one store, and what is wanted of them."""

    number: int
    folder: str
    """Where the stimuli are, and where ranks go"""
    store: str
    layers: tuple[Layer, ...]
    asked: Facts
    """The settings of the plan"""
    profile: bool
    geometry: OfGeometry
    resampled: bool

    def ranks(self, layer: Layer) -> Path:
        """The file of the ranks of a layer, and of those in halves of the sentences."""
        return place(self.folder) / "ranks" / f"{self.number}-{self.layers.index(layer)}.npz"


def look_at_layers(task: LayersTask) -> list[LookedAt]:
    """All that is wanted of the layers; their ranks are in the folder."""
    look, activations = look_for(task.folder, task.asked), Activations.open(task.store)
    return [look_and_leave(look, activations, task, layer) for layer in task.layers]


def look_and_leave(look: Look, activations: Activations, task: LayersTask, layer: Layer) -> LookedAt:
    """All that is wanted of one layer; its ranks are in the folder."""
    found = look(LayerTask(activations, layer, task.profile, task.geometry, task.resampled))
    if found.ranks is not None:
        buffer = io.BytesIO()
        np.savez(buffer, found.ranks, *(found.halves or ()))
        write_bytes(buffer.getvalue(), task.ranks(layer))
    return replace(found, ranks=None, halves=None)


def with_ranks(looked: LookedAt, task: LayersTask, layer: Layer) -> LookedAt:
    """Fetch from the folder what was left there."""
    if task.geometry == "nothing":
        return looked
    path = task.ranks(layer)
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as kept:
        ranks, *halves = (kept[name] for name in kept.files)
    path.unlink()
    return replace(looked, ranks=ranks, halves=halves or None)


_latest: dict[bytes, Look] = {}


def look_for(folder: str, asked: Mapping[str, Any]) -> Look:
    """What is done with a layer; the plan is made once for all tasks of a process."""
    key = pickle.dumps((folder, dict(asked)))
    if key not in _latest:
        _latest.clear()
        stimuli = Stimuli.from_table(place(folder) / STIMULI)
        _latest[key] = Look.of(stimuli, plan_profiles(stimuli, **asked))
    return _latest[key]


def look_on_workers(
    engine: Engine,
    stimuli: Stimuli,
    plan: ProfilingPlan,
    tasks: Sequence[LayerTask],
    folder: Path,
) -> Iterator[LookedAt | Failure]:
    """The same as the look itself gives, task by task in order; a failure stands for each of its layers."""
    stimuli.save(folder / STIMULI)
    addresses = _addresses([task.activations for task in tasks], folder)
    by_job = hasattr(engine, "map_array")  # a job takes long to start: all layers of a system in one
    groups: list[list[LayerTask]] = []
    for task in tasks:
        if by_job and groups and groups[-1][0].activations is task.activations:
            groups[-1].append(task)
        else:
            groups.append([task])
    sent = [
        LayersTask(
            number,
            str(folder.resolve()),
            addresses[id(group[0].activations)],
            tuple(task.layer for task in group),
            plan.asked,
            group[0].profile,
            group[0].geometry,
            group[0].resampled,
        )
        for number, group in enumerate(groups)
    ]
    outcomes = run_tasks(engine, look_at_layers, sent, description="Looking at layers")
    for group, one, outcome in zip(groups, sent, outcomes, strict=True):
        if isinstance(outcome, Failure):
            yield from [outcome] * len(group)
            continue
        for task, looked in zip(group, outcome, strict=True):
            yield with_ranks(looked, one, task.layer)


def _addresses(systems: Sequence[Activations], folder: Path) -> dict[int, str]:
    """Where workers find each of them, by identity; what is in memory is saved in the folder that all see."""
    stores = {id(one): one for one in systems}
    return {
        key: str(place(one.address or one.save(folder / f"{number}.zarr")).resolve())
        for number, (key, one) in enumerate(stores.items())
    }


@dataclass(frozen=True)
class MeasureTask:
    """Two stores, every layer of the one to be held against every layer of the other."""

    measure: str
    first: str
    second: str
    names: tuple[str, str]


def measure_layers(task: MeasureTask) -> Floats:
    """(n_layers of the first, n_layers of the second); of one store with itself as in a whole matrix."""
    measure = MEASURES[task.measure]
    first = Activations.open(task.first)
    layers = [first[layer] for layer in first.layers]
    names = [f"{task.names[0]}:{layer}" for layer in first.layers]
    if task.first == task.second:
        return measure.matrix(layers, names_a=names)
    second = Activations.open(task.second)
    return measure.matrix(
        layers,
        [second[layer] for layer in second.layers],
        names_a=names,
        names_b=[f"{task.names[1]}:{layer}" for layer in second.layers],
    )


def measure_on_workers(
    engine: Engine, measure: Measure, systems: Sequence[Activations], root: Path | None
) -> Floats:
    """The matrix that `measure.matrix` gives here, a task for every pair of systems."""
    ends = np.cumsum([0, *(len(one.layers) for one in systems)])
    both_ways = not measure.symmetric
    pairs = [(i, j) for i in range(len(systems)) for j in range(len(systems)) if i <= j or both_ways]
    with shared_folder(root) as folder:
        addresses = _addresses(systems, folder)
        tasks = [
            MeasureTask(
                measure.name,
                addresses[id(systems[i])],
                addresses[id(systems[j])],
                (systems[i].system, systems[j].system),
            )
            for i, j in pairs
        ]
        names = [" and ".join(task.names) for task in tasks]
        described = f"Measuring {measure.name}"
        blocks = run_all(engine, measure_layers, tasks, names=names, description=described)
    values = np.empty((ends[-1], ends[-1]))
    for (i, j), block in zip(pairs, blocks, strict=True):
        values[ends[i] : ends[i + 1], ends[j] : ends[j + 1]] = block
        if i != j and not both_ways:
            values[ends[j] : ends[j + 1], ends[i] : ends[i + 1]] = np.transpose(block)
    return values


def profile_on_workers(
    engine: Engine, activations: Activations, stimuli: Stimuli, plan: ProfilingPlan
) -> Profile:
    """As `profile` makes it here."""
    tasks = [LayerTask(activations, layer, True, "nothing", True) for layer in activations.layers]
    with shared_folder(None) as folder:
        found = dict(
            zip(activations.layers, look_on_workers(engine, stimuli, plan, tasks, folder), strict=True)
        )
    failures = {
        f"{activations.system}:{k}": one.reason for k, one in found.items() if isinstance(one, Failure)
    }
    raise_failures(failures, len(found))
    examined = [one.examined for one in found.values() if isinstance(one, LookedAt) and one.examined]
    return collect_profile(activations, stimuli, plan, examined)
