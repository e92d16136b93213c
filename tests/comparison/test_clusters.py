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
from thinkalike.comparison import profiling
from thinkalike.comparison.expiring import look_and_expire
from thinkalike.comparison.tasks import extract_model, look_at_layers, measure_layers
from thinkalike.dispatch import guarded
from thinkalike.populations.fingerprint_tasks import add_model
from thinkalike.stimuli.table import Stimuli
from thinkalike.stitching import TaskFit
from thinkalike.stitching.stitch_tasks import stitch_layers

pytestmark = [
    pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning"),
    pytest.mark.filterwarnings("default"),  # of the engines
    pytest.mark.whole_runs,
]


@dataclass(frozen=True)
class Moment:
    """The middle of a task: so many events, about a part of a path or the call of a function."""

    name: str
    function: Callable[..., Any]
    event: str
    part: str
    count: int = 1
    layer: int | None = None
    """Only in the task of this layer: one task should not die too often"""

    def watch(self, die: Callable[[], None]) -> None:
        seen = []

        def hook(event: str, about: object) -> None:
            if event == self.event and self.part in str(about):
                seen.append(event)
                if len(seen) == self.count:
                    die()

        if self.event == CALL:
            real = getattr(profiling, self.part)
            setattr(
                profiling, self.part, lambda *given, **named: hook(CALL, self.part) or real(*given, **named)
            )
        else:
            sys.addaudithook(lambda event, arguments: hook(event, arguments[0] if arguments else ""))


CALL = "call"
MOMENTS = (
    (
        Moment("read a model", extract_model, "os.rename", "activations.zarr", 8),
        Moment("profile a layer", look_at_layers, CALL, "diagnose", layer=0),
        Moment("resample a layer", look_at_layers, CALL, "resample", layer=1),
        Moment("keep the ranks of a layer", look_at_layers, "os.mkdir", "ranks", layer=2),
        Moment("measure two systems", measure_layers, "open", "layers/", 3),
    ),
    (
        Moment("read a model", extract_model, "os.rename", "activations.zarr", 2),
        Moment("resample a layer", look_at_layers, CALL, "resample", layer=0),
        Moment("profile a layer", look_at_layers, CALL, "diagnose", layer=2),
        Moment("keep the ranks of a layer", look_at_layers, "os.mkdir", "ranks", layer=1),
        Moment("measure two systems", measure_layers, "open", "layers/", 1),
    ),
)
"""Of two runs"""
EXPIRING = (
    Moment("look at a model", look_and_expire, CALL, "diagnose", 2),
    Moment("delete the vectors of a model", look_and_expire, "os.remove", "activations.zarr/layers", 2),
)
ADDING = (
    Moment("profile a model for an atlas", add_model, CALL, "diagnose", 2),
    Moment("write its fingerprint", add_model, "os.rename", "words-1"),
)
IN_TRAINING = Moment("stitch", stitch_layers, "os.rename", "unfinished", 2)


@dataclass
class Deadly:
    """At each of the moments, has the first worker that gets there killed; a file says that it was."""

    engine: Any
    moments: tuple[Moment, ...]
    folder: Path

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        task = arguments[1]
        ahead = [
            (str(self.marker(moment)), moment)
            for moment in self.moments
            if moment.function is arguments[0] and moment.layer in (None, *getattr(task, "layers", ()))
        ]
        return self.engine.submit(die_in_the_middle, ahead, *arguments)

    def marker(self, moment: Moment) -> Path:
        return self.folder / f"killed to {moment.name}"

    def killed(self) -> list[str]:
        return [moment.name for moment in self.moments if self.marker(moment).exists()]


def die_in_the_middle(
    ahead: list[tuple[str, Moment]], function: Callable[[Any], Any], task: Any, attempt: int = 0
) -> Any:
    for marker, moment in ahead:

        def die(marker: str = marker) -> None:
            if not os.path.exists(marker):
                os.close(os.open(marker, os.O_CREAT))
                os.kill(os.getpid(), signal.SIGKILL)

        moment.watch(die)
    return guarded(function, task, attempt)


@pytest.mark.parametrize("moments", MOMENTS, ids=["first", "second"])
@pytest.mark.parametrize("engine", [processes, dask], ids=lambda one: one.__name__)
def test_workers_that_are_killed_in_the_middle(
    engine: Any,
    moments: tuple[Moment, ...],
    two_models: dict[str, str],
    small_stimuli: Stimuli,
    run_here: Path,
    tmp_path: Path,
) -> None:
    """One in every kind of task, all in one run."""
    with engine(tmp_path) as own:
        deadly = Deadly(own, moments, tmp_path)
        with ta.workers(deadly):
            ta.compare(two_models, small_stimuli, out=tmp_path / "run", **OPTIONS)
    assert deadly.killed() == [moment.name for moment in moments]
    assert files(tmp_path / "run") == files(run_here)


@pytest.mark.parametrize("engine", [processes, dask], ids=lambda one: one.__name__)
def test_workers_that_are_killed_before_the_vectors_are_gone(
    engine: Any, two_models: dict[str, str], small_stimuli: Stimuli, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"resamples": 3, "null": 10, "keep": "profiles"}
    with engine(tmp_path) as own:
        deadly = Deadly(own, EXPIRING, tmp_path)
        with ta.workers(deadly):
            ta.compare(two_models, small_stimuli, out=tmp_path / "run", **options)
    assert deadly.killed() == [moment.name for moment in EXPIRING]
    ta.compare(two_models, small_stimuli, out=tmp_path / "here", **options)
    assert files(tmp_path / "run") == files(tmp_path / "here")


@pytest.mark.parametrize("engine", [processes, dask], ids=lambda one: one.__name__)
def test_a_worker_that_is_killed_in_the_middle_of_training(engine: Any, tmp_path: Path) -> None:
    """When it is about to keep its second state: the task goes on from the first."""
    text = [f"The king of {k} lands went home, and queen {k * 7} went to sleep." for k in range(60)]

    def stitched(folder: Path) -> dict[str, bytes]:
        how = TaskFit(steps=6, every=2, optimizer="adamw")
        found = ta.stitch("nano-gelu-3l", "nano-solu-3l", text, layers=[1, 2], fit=how, length=32)
        found.save(folder)
        return files(folder)

    with engine(tmp_path) as own:
        deadly = Deadly(own, (IN_TRAINING,), tmp_path)
        with ta.workers(deadly):
            found = stitched(tmp_path / "run")
    assert deadly.killed() == ["stitch"]
    assert found == stitched(tmp_path / "here")


@pytest.mark.parametrize("engine", [processes, dask], ids=lambda one: one.__name__)
def test_workers_that_are_killed_when_models_are_added(engine: Any, tmp_path: Path) -> None:
    models = {"one": "nano-pythia-64", "other": "nano-pythia-96"}
    with engine(tmp_path) as own:
        deadly = Deadly(own, ADDING, tmp_path)
        with ta.workers(deadly):
            ta.Atlas(tmp_path / "atlas").add_models(models)
    assert deadly.killed() == [moment.name for moment in ADDING]
    ta.Atlas(tmp_path / "here").add_models(models)
    assert files(tmp_path / "atlas") == files(tmp_path / "here")


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


def test_the_docs_say_how_many_workers_are_killed() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    kills = sum(map(len, (*MOMENTS, EXPIRING, ADDING))) + len([IN_TRAINING])
    assert page.count(f"| {kills} | {kills} | 0 | 0 |") == 2  # own processes, and Dask
