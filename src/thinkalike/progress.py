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
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.2g}/s")


class Step:
    """One piece of long work: call `advance` as it goes."""

    def __init__(self, bar: Progress | None, task: int | None) -> None:
        self._bar, self._task = bar, task

    def advance(self, amount: float = 1.0) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, amount)  # type: ignore[arg-type]


@contextmanager
def progress(description: str, total: float | None) -> Iterator[Step]:
    """Show `description` with a bar, the count, the speed and the time left while the block runs."""
    if not sys.stderr.isatty():
        yield Step(None, None)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Step(bar, bar.add_task(description, total=total))


@contextmanager
def without_bars() -> Iterator[None]:
    """Keep the bars of transformers away while it loads and saves: ours say what takes long."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
