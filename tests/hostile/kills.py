"""kill −9 at any moment, then the same command again: the results must be those of an undisturbed run.

Half of the kills come after a random part of the undisturbed run's time, half right before a random change to
a file, where a run that is not careful leaves something half done.
"""

from __future__ import annotations

import random
import shlex
from pathlib import Path
from typing import NamedTuple

from tests.hostile.jobs import Baseline, Job, differences, finish, prepare, snapshot
from tests.hostile.shell import Shell
from tests.hostile.verdicts import Case, complaint, fresh


class Kill(NamedTuple):
    """One death: after a part of the time, or before a change to a file."""

    part: float | None = None
    event: int | None = None


def plan_kills(job: Job, events: int, seed: int) -> list[list[Kill]]:
    """The trials of a job: mostly one kill each, and one trial of several kills in a row."""
    rng = random.Random(f"{seed} {job.name}")
    kills = [
        Kill(event=rng.randint(1, max(events, 1))) if k % 2 else Kill(part=rng.uniform(0.02, 0.98))
        for k in range(job.kills)
    ]
    in_a_row = min(4, job.kills // 2)
    return [[kill] for kill in kills[in_a_row:]] + ([kills[:in_a_row]] if in_a_row else [])


def try_kills(
    shell: Shell, folder: Path, job: Job, number: int, kills: list[Kill], baseline: Baseline
) -> list[Case]:
    """Kill a job as planned, finish it, and compare; one case for each kill."""
    place = fresh(folder, f"{job.name}-{number}")
    prepare(place)
    for arguments in job.first:
        finish(shell, arguments, place, limit=job.limit)
    told, complaints = [], []
    for kill in kills:
        after = None if kill.part is None else kill.part * baseline.done.seconds
        done = shell.run(job.arguments, place, limit=job.limit, after=after, fatal_event=kill.event)
        told.append(f"before change {kill.event}" if after is None else f"after {after:.2f} s")
        if not done.killed and done.code:
            complaints.append(f"after the kills {', '.join(told[:-1])}: {complaint(done)}")
    done = shell.run(job.arguments, place, limit=job.limit)
    if done.code:
        complaints.append(complaint(done))
    else:
        other = differences(baseline.files, snapshot(place / "out"), ignore=job.is_page)
        if other:
            complaints.append(f"other results than undisturbed: {', '.join(other[:6])} ({len(other)} files)")
    name = f"{job.name}, killed {' and '.join(told)}"
    command = shlex.join(["thinkalike", *job.arguments])
    verdict = "bad" if complaints else "right"
    return [
        Case(f"{name} ({k + 1} of {len(kills)})", verdict, "; ".join(complaints), command)
        for k in range(len(kills))
    ]
