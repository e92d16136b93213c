"""A finished run of tiny models, which several commands look at."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from thinkalike.cli import app

SMALL = ("--sentences", "40", "--resamples", "3")


def _run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """`main` takes Ctrl-C for the rest of its process: give it back to pytest."""
    numbers = [signal.SIGINT, *([signal.SIGALRM] if hasattr(signal, "SIGALRM") else [])]
    kept = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def run() -> Callable[..., Any]:
    """Call a command. What it raises is raised: `main` is where errors become lines."""
    return _run


@pytest.fixture(scope="session")
def finished(tiny_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The run directory of `thinkalike compare tiny-bert decoder=tiny-gpt2`, and what it printed."""
    out = tmp_path_factory.mktemp("runs") / "two"
    two = [tiny_models["tiny-bert"], f"decoder={tiny_models['tiny-gpt2']}"]
    return out, _run("compare", *two, *SMALL, "--out", out, "--controls", "untrained").stdout
