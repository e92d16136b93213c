"""Stitching as tasks that travel: some stitches of one role each; text, φ and scores lie in a shared folder.

The text is tokenised once, by the caller. A task opens the two models, fits and judges its stitches as
`fit_and_judge` does here, and leaves one sealed file; if that is there already, nothing is left to do.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from thinkalike.addresses import place, remove_tree
from thinkalike.checkpoint import Checkpoint
from thinkalike.dispatch import run_all, shared_folder
from thinkalike.errors import DamagedFile
from thinkalike.files import read_arrays, write_arrays
from thinkalike.parallel import Engine
from thinkalike.stitching.evaluation import Evaluation, Scores, StateCheck
from thinkalike.stitching.examples import Examples
from thinkalike.stitching.job import Job
from thinkalike.stitching.material import Material
from thinkalike.stitching.phi import restored
from thinkalike.stitching.stitched import Stitched, Trained, Way, fit_and_judge
from thinkalike.stitching.stitches import Role, Stitch
from thinkalike.systems.batch import Batch
from thinkalike.systems.heads import Task
from thinkalike.systems.system import LoadOptions, System, open_system, untrained_copy

if TYPE_CHECKING:
    import torch

    from thinkalike.types import Json

PARTS = ("fit", "validation", "test")
AT_ONCE = 32
"""Stitches of a task where φ is solved for: the passes that they share take as long as 8 of them. By task
loss each is a task of its own: its training takes far longer than these passes"""
ARRAYS = ("ids", "mask", "targets", "units")
CHECKS = tuple(field.name for field in fields(StateCheck))


@dataclass(frozen=True)
class StitchedModels:
    """The bottom and the top by name, and how they are opened."""

    names: tuple[str, str]
    task: Task | None
    options: LoadOptions

    def open(self) -> tuple[System, System]:
        """Both; one that stands on both sides is loaded once."""
        bottom, top = self.names
        above = open_system(top, self.options, head=self.task)
        return (above if bottom == top else open_system(bottom, self.options, head=self.task)), above


@dataclass(frozen=True)
class StitchTask:
    """Stitches of one role, and where their text is."""

    number: int
    folder: str
    key: str
    """Of all that changes the numbers: an answer with another is not ours"""
    models: StitchedModels
    way: Way
    stitches: tuple[Stitch, ...]
    threads: int
    """Of torch: as many as the caller's, so that sums are rounded alike"""

    @property
    def answer(self) -> Path:
        return place(self.folder) / f"{self.number}.npz"

    @property
    def unfinished(self) -> Path:
        """Where the state of a fit by task loss lies until it is done."""
        return place(self.folder) / f"{self.number}-unfinished.npz"


def stitch_layers(task: StitchTask) -> None:
    """Fit and judge the stitches; what is there of them is kept."""
    import torch

    if _answer(task) is not None:
        return
    torch.set_num_threads(task.threads)
    (role,) = {stitch.role for stitch in task.stitches}
    bottom, top = _opened(task.models, role)
    job = Job({role: bottom}, top, task.stitches)
    saved = None if task.way.how is None else Checkpoint(task.unfinished, task.key)
    made = fit_and_judge(job, _read_material(place(task.folder)), task.way, saved)
    _write_answer(task, made)
    if saved is not None:
        saved.finish()


def stitch_on_workers(
    engine: Engine,
    job: Job,
    models: StitchedModels,
    material: Material,
    way: Way,
    key: str,
    checkpoint: str | Path | None,
) -> Stitched:
    """What `fit_and_judge` gives here. With a checkpoint, the answers of tasks outlive a caller that dies."""
    import torch

    with _folder(checkpoint) as folder:
        _write_material(material, folder, key)
        tasks = [
            StitchTask(number, str(folder.resolve()), key, models, way, stitches, torch.get_num_threads())
            for number, stitches in enumerate(_groups(job.stitches, 1 if way.how is not None else AT_ONCE))
        ]
        names = [_name(job, task.stitches) for task in tasks]
        run_all(engine, stitch_layers, tasks, names=names, description="Stitching")
        answers = [_answer(task) for task in tasks]
    return _together([one for one in answers if one is not None], job)


def folder_of_tasks(checkpoint: str | Path) -> Path:
    """Where tasks leave their answers if the call has a checkpoint."""
    return place(checkpoint).with_suffix(".tasks")


@contextmanager
def _folder(checkpoint: str | Path | None) -> Iterator[Path]:
    if checkpoint is None:
        with shared_folder(None) as folder:
            yield folder
    else:
        yield folder_of_tasks(checkpoint)


def _groups(stitches: Sequence[Stitch], at_once: int) -> list[tuple[Stitch, ...]]:
    """Few of one role together, in order."""
    found: list[tuple[Stitch, ...]] = []
    for role in dict.fromkeys(stitch.role for stitch in stitches):
        own = [stitch for stitch in stitches if stitch.role == role]
        found += [tuple(own[first : first + at_once]) for first in range(0, len(own), at_once)]
    return found


def _name(job: Job, stitches: Sequence[Stitch]) -> str:
    first, last = stitches[0], stitches[-1]
    name = f"{job.bottoms[first.role].name}:{first.layer_bottom} → {job.top.name}:{first.layer_top}"
    return name if first == last else f"{name} and {len(stitches) - 1} more"


class _Latest(threading.local):
    """The models of the last task of this thread: two that hook into one model would disturb each other."""

    opened: tuple[tuple[StitchedModels, Role], tuple[System, System]] | None = None


_latest = _Latest()


def _opened(models: StitchedModels, role: Role) -> tuple[System, System]:
    """The bottom of this role, and the top."""
    if _latest.opened is None or _latest.opened[0] != (models, role):
        _latest.opened = None
        bottom, top = models.open()
        if role == "self":
            bottom = top
        if role == "untrained":
            bottom = untrained_copy(bottom, seed=models.options.seed)
        _latest.opened = (models, role), (bottom, top)
    return _latest.opened[1]


def _write_material(material: Material, folder: Path, key: str) -> None:
    """All examples as arrays, under the key of the call; answers of another call are in the way."""
    path = folder / "text.npz"
    with suppress(DamagedFile):  # or there is none
        if read_arrays(path)[1]["key"] == key:
            return
    remove_tree(folder)
    arrays: dict[str, np.ndarray] = {}
    about: Json = {"key": key, "unit": material.unit}
    for part in PARTS:
        one: Examples | None = getattr(material, part)
        if one is None:
            continue
        about[part] = {"mask_token": one.mask_token}
        values = (one.tokens.ids, one.tokens.mask, one.targets, one.units)
        arrays |= {f"{part}/{name}": value for name, value in zip(ARRAYS, values, strict=True)}
        if one.tokens.segments is not None:
            arrays[f"{part}/segments"] = one.tokens.segments
    write_arrays(arrays, path, about=about)


def _read_material(folder: Path) -> Material:
    arrays, about = read_arrays(folder / "text.npz")

    def part(name: str) -> Examples | None:
        if name not in about:
            return None
        ids, mask, targets, units = (arrays[f"{name}/{one}"] for one in ARRAYS)
        tokens = Batch(ids, mask, arrays.get(f"{name}/segments"))
        return Examples(tokens, targets, units, about[name]["mask_token"])

    test = part("test")
    assert test is not None
    return Material(test, part("fit"), part("validation"), about["unit"])


def _write_answer(task: StitchTask, made: Stitched) -> None:
    own = made.judged.own
    arrays: dict[str, np.ndarray] = {"own": np.stack([own.loss, own.correct, own.count])}
    trainings: list[Json] = []
    for number, stitch in enumerate(task.stitches):
        scores, check = made.judged.stitched[stitch], asdict(made.judged.checks[stitch])
        arrays[f"{number}/scores"] = np.stack([scores.loss, scores.correct, scores.count])
        arrays[f"{number}/check"] = np.array([*(check[name] for name in CHECKS), made.explained[stitch]])
        for name, tensor in made.phis[stitch].state_dict().items():
            arrays[f"{number}/phi/{name}"] = tensor.detach().cpu().numpy()
        if stitch in made.trained:
            one = made.trained[stitch]  # whose losses may be infinite, so they are kept as an array
            arrays[f"{number}/losses"] = np.array([loss for _, _, loss in one.curve])
            trainings.append({**asdict(one), "curve": [row[:2] for row in one.curve]})
    stitches = [list(stitch) for stitch in task.stitches]
    about: Json = {"key": task.key, "stitches": stitches, "trained": trainings}
    write_arrays(arrays, task.answer, about=about)


def _answer(task: StitchTask) -> Stitched | None:
    """What the task left; None if it is not there, or another's."""
    try:
        arrays, about = read_arrays(task.answer)
    except DamagedFile:
        return None
    if (about["key"], about["stitches"]) != (task.key, [list(stitch) for stitch in task.stitches]):
        return None
    made = Stitched({}, {}, {}, Evaluation(Scores(*arrays["own"]), {}, {}))
    for number, stitch in enumerate(task.stitches):
        *check, made.explained[stitch] = map(float, arrays[f"{number}/check"])
        made.judged.checks[stitch] = StateCheck(**dict(zip(CHECKS, check, strict=True)))
        made.judged.stitched[stitch] = Scores(*arrays[f"{number}/scores"])
        prefix = f"{number}/phi/"
        state = {
            name.removeprefix(prefix): _tensor(array)
            for name, array in arrays.items()
            if name.startswith(prefix)
        }
        made.phis[stitch] = restored(task.way.kind, state)
        if about["trained"]:
            one = about["trained"][number]
            losses = map(float, arrays[f"{number}/losses"])
            curve = [(step, split, loss) for (step, split), loss in zip(one["curve"], losses, strict=True)]
            made.trained[stitch] = Trained(**{**one, "curve": curve})
    return made


def _tensor(array: np.ndarray) -> torch.Tensor:
    import torch

    return torch.from_numpy(array)


def _together(answers: Sequence[Stitched], job: Job) -> Stitched:
    """All answers as one, in the order of the job."""
    judged = Evaluation(answers[0].judged.own, {}, {})
    found = Stitched({}, {}, {}, judged)
    of = {stitch: one for one in answers for stitch in one.phis}
    for stitch in job.stitches:
        one = of[stitch]
        found.phis[stitch] = one.phis[stitch].to(job.device)
        found.explained[stitch] = one.explained[stitch]
        judged.stitched[stitch], judged.checks[stitch] = (
            one.judged.stitched[stitch],
            one.judged.checks[stitch],
        )
        if stitch in one.trained:
            found.trained[stitch] = one.trained[stitch]
    return found
