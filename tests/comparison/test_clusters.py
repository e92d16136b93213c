"""What fails on a cluster: workers killed in the middle of every kind of task, the scheduler too."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import thinkalike as ta
from tests.engines import OPTIONS, dask, files, processes
from tests.waiting import until
from thinkalike.cli.boundary import run as run_command
from thinkalike.comparison.tasks import extract_model, look_at_layers, measure_layers
from thinkalike.parallel import guarded
from thinkalike.stimuli.table import Stimuli
from thinkalike.stitching import TaskFit
from thinkalike.stitching.stitch_tasks import stitch_layers

pytestmark = [
    pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning"),
    pytest.mark.filterwarnings("default"),  # of the engines
    pytest.mark.whole_runs,
]

MIDDLE = {
    extract_model: ("os.rename", "activations.zarr", 8),
    look_at_layers: ("os.mkdir", "ranks", 1),
    measure_layers: ("open", "layers/", 3),
    stitch_layers: ("os.rename", "unfinished", 2),
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


@pytest.mark.parametrize(
    "function", [extract_model, look_at_layers, measure_layers], ids=lambda one: one.__name__
)
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


@pytest.mark.parametrize("engine", [processes, dask], ids=lambda one: one.__name__)
def test_a_worker_that_is_killed_in_the_middle_of_training(engine: Any, tmp_path: Path) -> None:
    """When it is about to keep its second state: the task goes on from the first."""
    text = [f"The king of {k} lands went home, and queen {k * 7} went to sleep." for k in range(60)]

    def stitched(folder: Path) -> dict[str, bytes]:
        how = TaskFit(steps=6, every=2, optimizer="adamw")
        found = ta.stitch("nano-gelu-3l", "nano-solu-3l", text, layers=[1, 2], fit=how, length=32)
        found.save(folder)
        return files(folder)

    with engine(tmp_path) as own, ta.workers(Deadly(own, stitch_layers, tmp_path / "killed")):
        found = stitched(tmp_path / "run")
    assert (tmp_path / "killed").exists()
    assert found == stitched(tmp_path / "here")


@dataclass
class Cluster:
    """A Dask scheduler and a worker, each a process of its own."""

    folder: Path
    address: str = ""

    def start(self, port: int = 0) -> None:
        told = self.folder / f"{secrets.token_hex(8)}.json"
        self.scheduler = self._process("scheduler", "--port", str(port), "--scheduler-file", str(told))
        until(lambda: told.exists() and told.read_text(), self.scheduler)
        self.address = json.loads(told.read_text())["address"]
        self.worker = self._process("worker", self.address, "--nthreads", "1")

    def restart(self) -> None:
        """Kill the scheduler and the worker, and start others at the same address."""
        self.stop(signal.SIGKILL)
        self.start(int(self.address.rpartition(":")[2]))

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        for process in (self.worker, self.scheduler):
            process.send_signal(how)
            process.wait()

    def _process(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *arguments, "--host", "127.0.0.1", "--no-dashboard"]
        log = (self.folder / f"{arguments[0]}.log").open("ab")
        with log:
            return subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


def test_a_scheduler_and_workers_of_their_own_and_an_object_store(
    two_models: dict[str, str], small_stimuli: Stimuli, run_here: Path, bucket: str, tmp_path: Path
) -> None:
    small_stimuli.save(tmp_path / "words.parquet")
    models = [f"{name}={folder}" for name, folder in two_models.items()]
    asked = ["compare", *models, "--stimuli", str(tmp_path / "words.parquet"), "--out", bucket, "--no-report"]
    asked += ["--measure", "cka", "--measure", "procrustes", "--resamples", "3", "--null", "10"]
    with running_cluster(tmp_path) as cluster:
        assert run_command([*asked, "--scheduler", cluster.address]) == 0
    expected, found = files(run_here), files(bucket)
    assert [name for name in {**expected, **found} if expected.get(name) != found.get(name)] == [
        "command.toml"
    ]


@dataclass
class Restarting:
    """Restarts the cluster after so many tasks were sent."""

    engine: Any
    cluster: Cluster
    after: int

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        sent = self.engine.submit(function, *arguments)
        self.after -= 1
        if self.after == 0:
            self.cluster.restart()
        return sent


@pytest.mark.parametrize("after", [1, 4])
def test_the_scheduler_is_restarted(
    after: int, two_models: dict[str, str], small_stimuli: Stimuli, run_here: Path, tmp_path: Path
) -> None:
    """While models are read, and while layers are looked at."""
    from distributed import Client

    with running_cluster(tmp_path) as cluster, Client(cluster.address, timeout=60) as client:
        engine = Restarting(client, cluster, after)
        with ta.workers(engine):
            ta.compare(two_models, small_stimuli, out=tmp_path / "run", **OPTIONS)
        assert engine.after < 0
    assert files(tmp_path / "run") == files(run_here)
