"""The areas of attack: a name, and the cases that were tried there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.hostile.damages import TARGETS, Target, Whole, make_whole, try_damage
from tests.hostile.interrupts import import_seconds, try_interrupt
from tests.hostile.jobs import JOBS, Baseline, Job, undisturbed
from tests.hostile.kills import plan_kills, try_kills
from tests.hostile.malformed.commands import SOUND, command_cases
from tests.hostile.malformed.run import malformed_inputs, try_malformed
from tests.hostile.places import (
    DISKS,
    LIMITS,
    can_mount,
    make_run,
    read_only_kinds,
    try_cache,
    try_disk,
    try_limit,
    try_read_only,
    writing_commands,
)
from tests.hostile.shell import Shell
from tests.hostile.together import pairs, try_together
from tests.hostile.verdicts import Case, all_of, fresh


class Bench:
    """The place, the seed, the server of commands, and what undisturbed runs leave behind."""

    def __init__(self, folder: Path, *, seed: int, workers: int, only: str = "") -> None:
        self.folder, self.seed, self.workers, self.only = folder, seed, workers, only
        self.shell = Shell()
        self._baselines: dict[str, Baseline] = {}

    def __enter__(self) -> Bench:
        """A first run of every short command, so that the server has imported what they need."""
        for job in JOBS[:3]:
            self.baseline(job.name)
        return self

    def __exit__(self, *_: object) -> None:
        self.shell.__exit__()

    def baseline(self, name: str) -> Baseline:
        """What an undisturbed run of this job leaves behind; run once."""
        if name not in self._baselines:
            job = next(job for job in JOBS if job.name == name)
            self._baselines[name] = undisturbed(
                self.shell, job, self.folder / "undisturbed" / name.replace(" ", "-")
            )
        return self._baselines[name]

    def baselines(self, names: Iterable[str]) -> None:
        """Several at once; those that were run are kept."""
        with ThreadPoolExecutor(self.workers) as pool:
            list(pool.map(self.baseline, dict.fromkeys(names)))

    def variant(self, job: Job, extra: tuple[str, ...]) -> Baseline:
        """The same of a job with other options."""
        other = replace(job, name=f"{job.name} {' '.join(extra)}", arguments=(*job.arguments, *extra))
        return undisturbed(self.shell, other, self.folder / "undisturbed" / other.name.replace(" ", "-"))

    def all_of(self, tasks: Any, work: Any) -> list[Case]:
        return all_of(tasks, work, workers=self.workers)


def kills(bench: Bench) -> list[Case]:
    """kill -9 of every writing command, then the same command to its end."""
    jobs = [job for job in JOBS if bench.only in job.name]
    bench.baselines(job.name for job in jobs)
    tasks = []
    for job in jobs:
        baseline = bench.baseline(job.name)
        trials = plan_kills(job, baseline.done.events, bench.seed)
        tasks += [(job, number, trial, baseline) for number, trial in enumerate(trials)]
    return bench.all_of(tasks, partial(try_kills, bench.shell, bench.folder / "kills"))


def damages(bench: Bench) -> list[Case]:
    """Damage to what was written, then the commands that read it."""
    targets = [target for target in TARGETS if bench.only in target.name]

    def whole(target: Target) -> Whole:
        return make_whole(bench.shell, bench.folder / "whole" / target.name.replace(" ", "-"), target)

    with ThreadPoolExecutor(bench.workers) as pool:
        made = list(pool.map(whole, targets))
    tasks = [
        (target, one, bench.seed, number)
        for target, one in zip(targets, made, strict=True)
        for number in range(target.trials)
    ]
    return bench.all_of(tasks, partial(try_damage, bench.shell, bench.folder / "damages"))


def malformed(bench: Bench) -> list[Case]:
    """Inputs that are wrong."""
    bench.baselines(("stitch", "cka", "compare"))
    tasks = [(k, case) for k, case in enumerate(malformed_inputs()) if bench.only in case.name]
    return bench.all_of(tasks, partial(try_malformed, bench.shell, bench.folder / "malformed"))


def on_many(bench: Bench) -> list[Case]:
    """The same for commands on many models, on subjects and on runs."""
    place = bench.folder / "on-many"
    warm = fresh(place, "first")
    next(command_cases()).make(warm)
    for words in SOUND.strip().splitlines():
        bench.shell.run(words.split(), warm, learn=True)
    tasks = [(k, case) for k, case in enumerate(command_cases()) if bench.only in case.name]
    return bench.all_of(tasks, partial(try_malformed, bench.shell, place))


def full(bench: Bench) -> list[Case]:
    """Every writing command where there is not enough space."""
    made = make_run(bench.shell, bench.folder / "full-made")
    names = [name for name in writing_commands() if bench.only in name]
    tasks: list[tuple[Any, ...]] = [(try_limit, name, limit) for name in names for limit in LIMITS]
    if can_mount():
        tasks += [(try_disk, name, size) for name in names for size in DISKS]

    def work(attempt: Callable[..., Case], *which: Any) -> Case:
        return attempt(bench.shell, bench.folder / "full", made, *which)

    return bench.all_of(tasks, work)


def unwritable(bench: Bench) -> list[Case]:
    """Every writing command where nothing may be written."""
    made = make_run(bench.shell, bench.folder / "unwritable-made")
    names = [name for name in writing_commands() if bench.only in name]
    tasks: list[tuple[Any, ...]] = [
        (try_read_only, name, kind) for name in names for kind in read_only_kinds()
    ]
    tasks += [(try_cache, name, kind) for name in ("profile",) for kind in ("under a file", "in /sys")]

    def work(attempt: Callable[..., Case], *which: Any) -> Case:
        return attempt(bench.shell, bench.folder / "unwritable", made, *which)

    return bench.all_of(tasks, work)


def interrupts(bench: Bench) -> list[Case]:
    """Ctrl-C in real processes, imports included."""
    early = import_seconds(bench.folder / "interrupts" / "first")
    tasks = [(bench.seed, number, early) for number in range(16)]
    return bench.all_of(tasks, partial(try_interrupt, bench.folder / "interrupts"))


def together(bench: Bench) -> list[Case]:
    """Two runs in one folder at the same time."""
    chosen = [(number, *pair) for number, pair in enumerate(pairs()) if bench.only in pair[0].name]
    bench.baselines(job.name for _, job, _ in chosen)

    def work(number: int, job: Job, extra: tuple[str, ...]) -> Case:
        alone = bench.baseline(job.name)
        other = bench.variant(job, extra) if extra else alone
        place = bench.folder / "together"
        return try_together(bench.shell, place, job, extra, (alone, other), bench.seed, number)

    return bench.all_of(chosen, work)


AREAS: dict[str, Callable[[Bench], list[Case]]] = {
    "kill -9": kills,
    "damaged files": damages,
    "malformed inputs": malformed,
    "the same, on many models": on_many,
    "full disk": full,
    "read-only place": unwritable,
    "Ctrl-C": interrupts,
    "two runs in one folder": together,
}
