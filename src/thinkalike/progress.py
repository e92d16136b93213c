"""Progress for everything longer than a moment: on a terminal, and in a notebook; silent elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text


def in_notebook() -> bool:
    """Whether what is displayed goes to the page of a notebook: whether this process is its kernel."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


class Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.2g}/s")


class Step(Protocol):
    """One piece of long work: call `advance` as it goes."""

    def advance(self, amount: float = 1.0) -> None: ...


class _Silent:
    def advance(self, amount: float = 1.0) -> None:
        pass


@dataclass
class _Terminal:
    bar: Progress
    task: TaskID

    def advance(self, amount: float = 1.0) -> None:
        self.bar.advance(self.task, amount)


class _Notebook:
    """A bar of the page's own, drawn anew a few times a second and gone at the end."""

    SECONDS = 0.25
    """Between two drawings: each is a message to the page, and stays in no file"""

    def __init__(self, description: str, total: float | None) -> None:
        from IPython.display import HTML, display

        self._html, self._description, self._total = HTML, description, total
        self._done, self._drawn = 0.0, time.monotonic()
        self._place = display(HTML(self._bar()), display_id=True)

    def _bar(self) -> str:
        full = "" if self._total is None else f' value="{self._done:g}" max="{self._total:g}"'
        count = "" if self._total is None else f" {self._done:,.0f} of {self._total:,.0f}"
        return f"{escape(self._description)} <progress{full}></progress>{count}"

    def advance(self, amount: float = 1.0) -> None:
        self._done += amount
        if time.monotonic() - self._drawn >= self.SECONDS:
            self._drawn = time.monotonic()
            self._place.update(self._html(self._bar()))

    def clear(self) -> None:
        self._place.update(self._html(""))


LOGGER = logging.getLogger("thinkalike")


def is_heard() -> bool:
    """Whether anyone would see what `say` says."""
    return in_notebook() or sys.stderr.isatty() or LOGGER.isEnabledFor(logging.INFO)


def say(text: str) -> None:
    """One line on a terminal or in a notebook, and for whoever listens to the logger `thinkalike`."""
    LOGGER.info(text)
    if in_notebook():  # not on stderr, which notebooks paint as an error
        from IPython.display import HTML, display

        display(HTML(f"<small>{escape(text)}</small>"))
    elif sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)


@contextmanager
def progress(description: str, total: float | None) -> Iterator[Step]:
    """Show `description` with a bar, the count, the speed and the time left while the block runs.

    How long it took goes to the log of the package.
    """
    start = time.monotonic()
    with _shown(description, total) as step:
        yield step
    count = "" if total is None else f" ({total:,.0f})"
    logging.getLogger("thinkalike").info("%s%s: %.1f s", description, count, time.monotonic() - start)


@contextmanager
def _shown(description: str, total: float | None) -> Iterator[Step]:
    if in_notebook():
        page = _Notebook(description, total)
        try:
            yield page
        finally:
            page.clear()
        return
    if not sys.stderr.isatty():
        yield _Silent()
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
        yield _Terminal(bar, bar.add_task(description, total=total))


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
