"""Progress on stderr for everything longer than a moment; silent when stderr is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)


class Step:
    """One piece of long work: call `advance` as it goes."""

    def __init__(self, bar: Progress | None, task: int | None) -> None:
        self._bar, self._task = bar, task

    def advance(self, amount: float = 1.0) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, amount)  # type: ignore[arg-type]


@contextmanager
def progress(description: str, total: float | None) -> Iterator[Step]:
    """Show `description` with a bar, the count and the time left while the block runs."""
    if not sys.stderr.isatty():
        yield Step(None, None)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Step(bar, bar.add_task(description, total=total))
