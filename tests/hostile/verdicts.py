"""What may come of a case, and what came: tried, right, clear, bad."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.hostile.shell import Done

Verdict = Literal["right", "clear", "bad"]
WAY_OUT = re.compile(
    r"\b(run|delete|remove|choose|give|free|use|extract|stitch|save|make|write|try|install|repair|check|name|"
    r"set|add|start|begin|download|export|convert|list|pass|lower|raise|leave|copy|wait|drop)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Case:
    """One attempt, what became of it, and why if it is bad."""

    name: str
    verdict: Verdict
    reason: str = ""
    command: str = ""


def error_line(done: Done) -> str | None:
    """The one line of an error of ours, or the words of a wrong usage; None for anything else."""
    if done.code != 2 or "Traceback" in done.err + done.out:
        return None
    lines = [line for line in done.err.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error: ")]
    if len(errors) == 1 and lines[-1] == errors[0]:
        return errors[0]
    if not errors and lines and lines[0].startswith(("Usage: ", "╭─ Error ")):
        return " ".join(lines)
    return None


def complaint(done: Done) -> str:
    """Why an end that is neither success nor a clear error is bad."""
    last = (done.err.strip().splitlines() or [""])[-1][:300]
    if done.hung:
        return f"hangs; {last}"
    if "Traceback" in done.err + done.out:
        return f"traceback, exit {done.code}: {last}"
    return f"exit {done.code}: {last or 'without a word'}"


def refused(name: str, done: Done, *, names: Sequence[str] = (), found: str = "exit 0: accepted") -> Case:
    """Clear, or bad: the error must also hold one of `names`, and a way out if there are any."""
    line = error_line(done)
    if line is None:
        return Case(name, "bad", found if done.code == 0 else complaint(done), shown(done))
    if names and not any(one in line for one in names):
        return Case(name, "bad", f"the error does not name the file: {line[:300]}", shown(done))
    if names and not WAY_OUT.search(line):
        return Case(name, "bad", f"the error names no way out: {line[:300]}", shown(done))
    return Case(name, "clear", line[:200], shown(done))


def shown(done: Done) -> str:
    return shlex.join(["thinkalike", *done.arguments])


def all_of(
    tasks: Iterable[tuple[Any, ...]], work: Callable[..., Case | list[Case]], *, workers: int
) -> list[Case]:
    """Every task's cases, several at a time, in the order of the tasks."""

    def run(task: tuple[Any, ...]) -> list[Case]:
        found = work(*task)
        cases = [found] if isinstance(found, Case) else list(found)
        for case in cases:
            if case.verdict == "bad":
                print(f"bad: {case.name}: {case.reason}\n     {case.command}", file=sys.stderr, flush=True)
        return cases

    with ThreadPoolExecutor(workers) as pool:
        return [case for cases in pool.map(run, tasks) for case in cases]


def counts(cases: Sequence[Case]) -> dict[str, int]:
    found = {"tried": len(cases)}
    for verdict in ("right", "clear", "bad"):
        found[verdict] = sum(case.verdict == verdict for case in cases)
    return found


def table(areas: Mapping[str, Mapping[str, int]]) -> str:
    """The figures as a Markdown table."""
    lines = ["| area | tried | right | clear | bad |", "|---|---|---|---|---|"]
    lines += [
        f"| {area} | {found['tried']} | {found['right']} | {found['clear']} | {found['bad']} |"
        for area, found in areas.items()
    ]
    total = {key: sum(found[key] for found in areas.values()) for key in ("tried", "right", "clear", "bad")}
    return "\n".join(
        [*lines, f"| all | {total['tried']} | {total['right']} | {total['clear']} | {total['bad']} |"]
    )


def fresh(folder: Path, name: str) -> Path:
    """A new folder for one case."""
    place = folder / re.sub(r"[^\w.-]+", "-", name)[:80]
    place.mkdir(parents=True, exist_ok=False)
    return place
