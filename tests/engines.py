"""What runs tasks, and a small comparison to run on it."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import thinkalike as ta
from thinkalike.addresses import filesystem, is_address
from thinkalike.comparison.cautions import CautionWarning
from thinkalike.parallel import Processes
from thinkalike.stimuli.table import Stimuli

OPTIONS: dict[str, Any] = {"resamples": 3, "measures": ["cka", "procrustes"], "null": 10}


@pytest.fixture(scope="session")
def small_stimuli() -> Stimuli:
    return Stimuli.from_grammar(24, seed=0)


@pytest.fixture(scope="session")
def two_models(tiny_models: dict[str, Path]) -> dict[str, str]:
    return {name: str(tiny_models[name]) for name in ("tiny-bert", "tiny-gpt2")}


def files(folder: Path | str) -> dict[str, bytes]:
    """Every file of a run; but a profile says where its store is, and these are elsewhere."""
    if is_address(folder):
        store, root = filesystem(folder)
        found = {name.removeprefix(f"{root}/"): store.cat_file(name) for name in store.find(root)}
    else:
        paths = [path for path in Path(folder).rglob("*") if path.is_file()]
        found = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    return {name: b"" if name.endswith("profile.json") else data for name, data in found.items()}


@pytest.fixture(scope="session")
def run_here(
    two_models: dict[str, str], small_stimuli: Stimuli, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A run in this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CautionWarning)
        out = tmp_path_factory.mktemp("runs") / "here"
        ta.compare(two_models, small_stimuli, out=out, **OPTIONS)
    return out


@contextmanager
def threads(folder: Path) -> Iterator[Any]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@dataclass
class Weighed:
    """An engine that weighs what travels: the bytes of every message to a task, and of its answer."""

    engine: Any
    sent: list[tuple[str, int]] = field(default_factory=list)
    answered: list[tuple[str, int]] = field(default_factory=list)

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        name = arguments[0].__name__
        self.sent.append((name, len(pickle.dumps((function, arguments)))))
        future = self.engine.submit(function, *arguments)
        future.add_done_callback(lambda done: self.answered.append((name, len(pickle.dumps(done.result())))))
        return future


@contextmanager
def processes(folder: Path) -> Iterator[Any]:
    own = Processes(2)
    yield own
    own.close()


@contextmanager
def dask(folder: Path) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=str(folder / "dask"),
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def jobs(folder: Path) -> Iterator[Any]:
    from submitit import LocalExecutor

    executor = LocalExecutor(folder / "jobs")
    executor.update_parameters(timeout_min=10)
    yield executor
