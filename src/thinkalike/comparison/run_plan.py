"""`RunPlan`: what a run will take, step by step, and whether it fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from thinkalike.addresses import place
from thinkalike.errors import InvalidInput
from thinkalike.files import read_json, reading, write_json
from thinkalike.wording import duration, size

MOMENT = 3.0
"""Seconds from which a run says beforehand what it will take"""
AGAIN = "make the plan again"
CERTAIN = 0.7
"""A run is refused if so large a share of the memory that it is planned to need is not there: plans can be
too high, and a run that would have gone through should not be stopped"""


@dataclass(frozen=True)
class Step:
    """One kind of task.

    Attributes
    ----------
    name
        What is done.
    tasks
        How many pieces it has that can go side by side.
    seconds
        Of one processor, for all tasks together; None if that is not known before the work.
    memory
        Bytes that a worker needs while it does one task, libraries included.
    disk
        Bytes that stay on disk.
    """

    name: str
    tasks: int
    seconds: float | None
    memory: int
    disk: int


@dataclass(frozen=True)
class RunPlan:
    """What a run will take.

    Attributes
    ----------
    steps
        In the order of the work.
    workers
        Tasks that run side by side.
    place
        Where files will go.
    memory_free, disk_free
        Bytes that are there now, for one worker and at the place; None if that cannot be known.
    about
        Counts: systems, layers, items, and how the times were found.

    Examples
    --------
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> stimuli = ta.Stimuli.from_grammar(30, seed=0, grammar="salle2024")
    >>> X = np.random.default_rng(0).normal(size=(len(stimuli), 8))
    >>> planned = ta.plan({"one": X, "other": 2 * X}, stimuli)
    >>> [step.name for step in planned.steps]
    ['folds, resamples and pairs', 'looking at layers', 'matrices, tests and maps']
    >>> planned.fits
    True
    """

    steps: tuple[Step, ...]
    workers: int
    place: str
    memory_free: int | None
    disk_free: int | None
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def processor_seconds(self) -> float | None:
        """Of one processor, in all; None if a step is not known."""
        known = [step.seconds for step in self.steps if step.seconds is not None]
        return sum(known) if len(known) == len(self.steps) else None

    @property
    def seconds(self) -> float | None:
        """By the clock, if nothing else runs on the machine; None if a step is not known."""
        if self.processor_seconds is None:
            return None
        return sum((step.seconds or 0.0) / max(1, min(step.tasks, self.workers)) for step in self.steps)

    @property
    def memory(self) -> int:
        """Bytes that a worker needs at most."""
        return max((step.memory for step in self.steps), default=0)

    @property
    def disk(self) -> int:
        """Bytes that will be written."""
        return sum(step.disk for step in self.steps)

    @property
    def fits(self) -> bool:
        """Whether there is room for it, as far as that can be known."""
        return not self._lacks()

    def check(self) -> None:
        """Refuse what does not fit, with the way out."""
        lacks = self._lacks()
        if lacks:
            raise InvalidInput(f"This run does not fit: it needs {' and '.join(lacks)}. {self._way_out()}")

    def _lacks(self) -> list[str]:
        found = []
        if self._lacks_memory():
            found.append(f"about {size(self.memory)} of memory, and {size(self.memory_free or 0)} are there")
        if self.disk_free is not None and self.disk > self.disk_free:
            found.append(f"about {size(self.disk)} in {self.place}, and {size(self.disk_free)} are free")
        return found

    def _lacks_memory(self) -> bool:
        return self.memory_free is not None and CERTAIN * self.memory > self.memory_free

    def _way_out(self) -> str:
        fewer = "Show fewer items (--sentences N), compare fewer models"
        if self._lacks_memory():
            fewer += ", judge fewer pairs of items (max_pairs=1_000_000 in Python), or take fewer measures"
        else:
            fewer += ", or name a place with more room (--out, THINKALIKE_CACHE)"
        return f"{fewer}."

    @property
    def line(self) -> str:
        """All of it in one line."""
        known = self.seconds
        time = "time not known beforehand" if known is None else duration(known)
        time = time if known is None or known < 1 else f"about {time}"
        n, side = self.about.get("layers"), self.workers
        copies = self.about.get("copies", 0)
        beside_copies = f" (and {copies} untrained copies of each)" if copies else ""
        layers = "" if n is None else f"{n:,} layers{beside_copies} × {self.about['items']:,} items: "
        beside = f" on {side} workers" if side > 1 else ""
        return f"{layers}{time}{beside}, {size(self.memory)} of memory, {size(self.disk)} on disk."

    def to_frame(self) -> pd.DataFrame:
        """One row per step: step, tasks, seconds (of one processor), memory and disk in bytes."""
        frame = pd.DataFrame([asdict(step) for step in self.steps]).rename(columns={"name": "step"})
        frame["seconds"] = frame["seconds"].astype(float)
        return frame

    def __str__(self) -> str:
        heads = ("step", "tasks", "processor", "memory", "disk")
        rows = [
            (
                step.name,
                f"{step.tasks:,}",
                "not known" if step.seconds is None else duration(step.seconds),
                size(step.memory),
                size(step.disk) if step.disk else "–",
            )
            for step in self.steps
        ]
        widths = [max(len(row[k]) for row in [heads, *rows]) for k in range(len(heads))]
        lines = [
            "  ".join(
                text.ljust(width) if k == 0 else text.rjust(width)
                for k, (text, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in [heads, *rows]
        ]
        there = [
            f"{size(amount)} {what}"
            for amount, what in ((self.memory_free, "of memory"), (self.disk_free, f"in {self.place}"))
            if amount is not None
        ]
        room = [f"There: {', '.join(there)}."] if there else []
        return "\n".join([*lines, "", self.line, *room])

    def save(self, path: str | Path) -> Path:
        """Write a JSON file at `path`."""
        content = {**asdict(self), "steps": [asdict(step) for step in self.steps]}
        write_json(content, place(path))
        return place(path)

    @classmethod
    def load(cls, path: str | Path) -> RunPlan:
        """What `save` wrote."""
        content = read_json(place(path), way_out=AGAIN)
        with reading(place(path), AGAIN):
            return cls(**{**content, "steps": tuple(Step(**step) for step in content["steps"])})
