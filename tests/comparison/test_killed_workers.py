"""What fails on workers: killed in the middle of every kind of task."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.engines import OPTIONS, dask, files, processes

import thinkalike as ta
from thinkalike.comparison.tasks import extract_model, look_at_layers, measure_layers
from thinkalike.parallel import guarded
from thinkalike.stimuli.table import Stimuli

pytestmark = [
    pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning"),
    pytest.mark.filterwarnings("default"),  # of the engines
    pytest.mark.whole_runs,
]

MIDDLE = {
    extract_model: ("os.rename", "activations.zarr", 8),
    look_at_layers: ("os.mkdir", "ranks", 1),
    measure_layers: ("open", "layers/", 3),
}
"""Where the middle of a task is: an event, a part of the path that it is about, and how many of them"""


@dataclass
class Deadly:
    """Has the first worker that gets to the middle of such a task killed; the marker says that it was."""

    engine: Any
    function: Callable[..., Any]
    marker: Path

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        if arguments[0] is not self.function:
            return self.engine.submit(function, *arguments)
        return self.engine.submit(die_in_the_middle, str(self.marker), *arguments)


def die_in_the_middle(marker: str, function: Callable[[Any], Any], task: Any, attempt: int = 0) -> Any:
    wanted, part, fatal = MIDDLE[function]
    seen = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == wanted and part in str(arguments[0]) and not os.path.exists(marker):
            seen.append(event)
            if len(seen) == fatal:
                os.close(os.open(marker, os.O_CREAT))
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return guarded(function, task, attempt)


@pytest.mark.parametrize("function", list(MIDDLE), ids=lambda one: one.__name__)
@pytest.mark.parametrize("engine", [processes, dask], ids=lambda one: one.__name__)
def test_a_worker_that_is_killed_in_the_middle(
    engine: Any,
    function: Callable[..., Any],
    two_models: dict[str, str],
    small_stimuli: Stimuli,
    run_here: Path,
    tmp_path: Path,
) -> None:
    with engine(tmp_path) as own, ta.workers(Deadly(own, function, tmp_path / "killed")):
        ta.compare(two_models, small_stimuli, out=tmp_path / "run", **OPTIONS)
    assert (tmp_path / "killed").exists()
    assert files(tmp_path / "run") == files(run_here)
