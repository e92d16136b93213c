"""Comparisons whose vectors expire: each model is read and looked at in one place, and its vectors are gone
before the next is read there.

What was found of the layers waits in the run directory until all models have had their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from thinkalike.activations.expiry import expire, revive
from thinkalike.activations.store import Activations
from thinkalike.addresses import place
from thinkalike.comparison.compared_systems import ToRead
from thinkalike.comparison.layerpass import LayerTask, Look, Looked, LookedAt, OfGeometry
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.profiling import ProfilingPlan, collect_profile
from thinkalike.comparison.rundir import RunDirectory
from thinkalike.comparison.tasks import STIMULI, LayersTask, look_and_leave, look_for, with_ranks
from thinkalike.dispatch import run_all, shared_folder
from thinkalike.labels import Layer
from thinkalike.parallel import cores, engine_for, stream_in_order
from thinkalike.stimuli.table import Stimuli
from thinkalike.types import Json


@dataclass(frozen=True, eq=False)
class LookedOver:
    """A system whose layers have all been looked at, while its vectors are still there.

    Attributes
    ----------
    model, options
        By which it was read; None and nothing for arrays.
    folder
        Of the system in the run directory.
    """

    activations: Activations
    profile: Profile
    model: str | None
    options: Json
    folder: Path


LastLook = Callable[[LookedOver], None]
"""What is to be done before the vectors go: a function of a module, so that it travels"""


@dataclass(frozen=True)
class ModelTask:
    """A model to be read and looked at, and the run directory that it belongs to."""

    number: int
    folder: str
    """Where the stimuli are, and where ranks go"""
    run: str
    system: str
    model: str
    options: Json
    asked: Json
    """The settings of the plan"""
    profile: bool
    geometry: OfGeometry
    threads: int
    """Of torch: as many as the caller's, so that sums are rounded alike"""
    last_look: LastLook | None

    @property
    def is_compared(self) -> bool:
        """Rather than a copy of what is."""
        return self.geometry == "all"

    @property
    def store(self) -> Path:
        return RunDirectory(place(self.run)).activations_path(self.system)

    def of_layers(self, layers: tuple[Layer, ...]) -> LayersTask:
        """What is wanted of its layers."""
        return LayersTask(
            self.number,
            self.folder,
            str(self.store),
            layers,
            self.asked,
            self.profile,
            self.geometry,
            resampled=self.is_compared,
        )


def look_and_expire(task: ModelTask) -> list[LookedAt]:
    """Read a model, find all that is wanted of its layers, and delete its vectors; ranks are in the folder.

    A second time finds what is there, or makes it again.
    """
    import torch

    torch.set_num_threads(task.threads)
    stimuli = Stimuli.from_table(place(task.folder) / STIMULI)
    return _look_and_expire(task, stimuli, look_for(task.folder, task.asked), threads=1)


def _look_and_expire(task: ModelTask, stimuli: Stimuli, look: Look, *, threads: int) -> list[LookedAt]:
    from thinkalike.activations import extract

    run = RunDirectory(place(task.run))
    revive(task.store)
    activations = extract(task.model, stimuli, system=task.system, out=task.store, **task.options)
    activations.check_stimuli(stimuli)
    looking = partial(look_and_leave, look, activations, task.of_layers(activations.layers))
    told = f"Looking at {task.system}"
    found = list(stream_in_order(looking, activations.layers, description=told, threads=threads))
    plan = look.plan if task.is_compared else look.bare
    profile = None if task.profile else run.profile(task.system, plan.settings)
    if task.profile:  # kept at once: whoever is stopped later need not fit it again
        examined = [one.examined for one in found if one.examined is not None]
        profile = collect_profile(activations, stimuli, plan, examined)
        run.save_profile(profile)
    if task.last_look is not None and task.is_compared and profile is not None:
        folder = run.folder(task.system)
        task.last_look(LookedOver(activations, profile, task.model, task.options, folder))
    expire(task.store)
    return found


@contextmanager
def model_by_model(
    wanted: Sequence[ToRead],
    stimuli: Stimuli,
    plan: ProfilingPlan,
    run: RunDirectory,
    *,
    kept: Callable[[str, ProfilingPlan], Profile | None],
    last_look: LastLook | None = None,
) -> Iterator[Looked]:
    """Read and look at all models, on workers if there are any; in the block, what was found can be fetched.

    Parameters
    ----------
    wanted : the models, then their copies.
    kept : the profile of a system that an earlier call made, if any.
    last_look : done with each model before its vectors go.
    """
    import torch

    look = Look.of(stimuli, plan)
    with shared_folder(run.root) as folder:
        stimuli.save(folder / STIMULI)
        tasks = [
            ModelTask(
                number,
                str(folder.resolve()),
                str(run.root.resolve()),
                one.system,
                one.model,
                dict(one.options),
                dict(plan.asked),
                kept(one.system, look.bare if one.is_copy else plan) is None,
                "sample" if one.is_copy else "all",
                torch.get_num_threads(),
                last_look,
            )
            for number, one in enumerate(wanted)
        ]
        found = _all_found(tasks, stimuli, look)
        by_system = {task.system: task for task in tasks}
        yield lambda layers: _fetched(layers, by_system, found)


def _all_found(tasks: Sequence[ModelTask], stimuli: Stimuli, look: Look) -> dict[str, list[LookedAt]]:
    """What was found, by system: one model after the other here, or as many at once as there are workers."""
    engine = engine_for("extract")
    if engine is None:
        return {task.system: _look_and_expire(task, stimuli, look, threads=cores()) for task in tasks}
    names = [task.system for task in tasks]
    described = "Reading and looking at models"
    found = run_all(engine, look_and_expire, tasks, names=names, description=described)
    return dict(zip(names, found, strict=True))


def _fetched(
    layers: Sequence[LayerTask], tasks: Mapping[str, ModelTask], found: Mapping[str, Sequence[LookedAt]]
) -> Iterator[LookedAt]:
    for wanted in layers:
        one = wanted.activations
        looked = found[one.system][one.layers.index(wanted.layer)]
        yield with_ranks(looked, tasks[one.system].of_layers(one.layers), wanted.layer)


def look_last(
    last_look: LastLook,
    systems: Sequence[Activations],
    profiles: Mapping[str, Profile],
    models: Mapping[str, str],
    options: Json,
    run: RunDirectory,
) -> None:
    """At the systems whose vectors have been there all along, and are about to go."""
    for one in systems:
        if run.has_vectors(one.system):
            model, folder = models.get(one.system), run.folder(one.system)
            how = {} if model is None else options
            last_look(LookedOver(one, profiles[one.system], model, how, folder))
