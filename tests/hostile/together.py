"""Two runs in one folder at the same time.

Equal ones: both succeed, or one is told to wait; the results are those of one. Different ones: one is refused
with a clear line, or they come one after the other; what is left is whole, one's results or the other's.
"""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

from tests.hostile.jobs import JOBS, Baseline, Job, differences, prepare, snapshot
from tests.hostile.shell import Done, Shell
from tests.hostile.verdicts import Case, complaint, error_line, fresh, shown

OTHER = {
    "extract": ("--pooling", "mean"),
    "compare": ("--seed", "1"),
    "cka": ("--seed", "1", "--max-batches", "20"),
    "stitch": ("--seed", "1"),
    "stitch --fit task": ("--seed", "1"),
}
"""What makes another run of a job, for the same folder"""


def pairs() -> list[tuple[Job, tuple[str, ...]]]:
    equal = [(job, ()) for job in JOBS if job.name in (*OTHER, "profile", "stimuli", "reproduce")]
    return equal + [(job, OTHER[job.name]) for job in JOBS if job.name in OTHER]


def try_together(
    shell: Shell,
    folder: Path,
    job: Job,
    extra: tuple[str, ...],
    alone: tuple[Baseline, Baseline],
    seed: int,
    number: int,
) -> Case:
    """Start two runs, the second a random moment after the first; `alone` is what each leaves by itself."""
    rng = random.Random(f"{seed} together {number}")
    kind = f"another with {' '.join(extra)}" if extra else "an equal one"
    delay = rng.uniform(0, 0.7) * alone[0].done.seconds
    name = f"{job.name} and {kind}, {delay:.2f} s later"
    place = fresh(folder, f"{number}-{job.name}")
    prepare(place)
    ends: dict[int, Done] = {}

    def run(which: int, arguments: tuple[str, ...]) -> None:
        ends[which] = shell.run(arguments, place, limit=job.limit)

    threads = [threading.Thread(target=run, args=(0, job.arguments))]
    threads[0].start()
    time.sleep(delay)
    threads.append(threading.Thread(target=run, args=(1, (*job.arguments, *extra))))
    threads[1].start()
    for thread in threads:
        thread.join()
    for done in ends.values():
        if done.code and error_line(done) is None:
            return Case(name, "bad", complaint(done), shown(done))
    if all(done.code for done in ends.values()):
        return Case(name, "bad", f"both are refused: {error_line(ends[0])}", shown(ends[0]))
    if any(
        done.code == 0 for done in ends.values()
    ):  # whole: one's results or the other's, never some of each
        found = snapshot(place / "out")
        other = [
            differences(alone[which].files, found, ignore=job.is_page)
            for which in (0, 1)
            if ends[which].code == 0
        ]
        if all(other):
            return Case(name, "bad", f"results of neither: {min(other, key=len)[:5]}", shown(ends[0]))
    verdict = "clear" if any(done.code for done in ends.values()) else "right"
    return Case(name, verdict, "; ".join(filter(None, map(error_line, ends.values())))[:200], shown(ends[1]))
