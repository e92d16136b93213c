"""Whole runs on an object store: the bytes of a folder, on every engine, and whatever the store does."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import thinkalike as ta
from tests.engines import OPTIONS, dask, files, jobs, processes, threads
from tests.object_store import ObjectStore
from thinkalike.cli.boundary import run as run_command
from thinkalike.comparison.comparison import Comparison
from thinkalike.errors import InvalidInput, StoreError, UnknownName, WorkFailed
from thinkalike.stimuli.table import Stimuli

pytestmark = [
    pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning"),
    pytest.mark.filterwarnings("default"),  # of the engines
]


def unlike(folder: Path, address: str) -> list[str]:
    """The files that differ, or are only in one place."""
    expected, found = files(folder), files(address)
    return [name for name in {**expected, **found} if expected.get(name) != found.get(name)]


@pytest.mark.parametrize(
    "engine",
    [threads, *(pytest.param(one, marks=pytest.mark.whole_runs) for one in (processes, dask, jobs))],
    ids=lambda engine: engine.__name__,
)
def test_the_same_bytes_on_every_engine(
    engine: Any,
    two_models: dict[str, str],
    small_stimuli: Stimuli,
    run_here: Path,
    bucket: str,
    tmp_path: Path,
) -> None:
    with engine(tmp_path) as lent, ta.workers(lent):
        ta.compare(two_models, small_stimuli, out=bucket, **OPTIONS)
    assert unlike(run_here, bucket) == []


@pytest.mark.whole_runs
def test_from_end_to_end(
    two_models: dict[str, str],
    small_stimuli: Stimuli,
    run_here: Path,
    bucket: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Stimuli, run, page and explanation at addresses, by Python and by commands."""
    small_stimuli.save(f"{bucket}/words.parquet")
    models = [f"{name}={folder}" for name, folder in two_models.items()]
    asked = ["compare", *models, "--stimuli", f"{bucket}/words.parquet", "--resamples", "3", "--null", "10"]
    asked += ["--measure", "cka", "--measure", "procrustes", "--out", f"{bucket}/run", "--no-report"]
    assert run_command(asked) == 0
    assert [name for name in unlike(run_here, f"{bucket}/run") if name != "command.toml"] == []
    before = files(f"{bucket}/run")
    ta.compare(two_models, small_stimuli, out=f"{bucket}/run", **OPTIONS)
    assert files(f"{bucket}/run") == before
    shutil.copytree(run_here, tmp_path / "run")
    capsys.readouterr()
    for place in (f"{bucket}/run", str(tmp_path / "run")):
        assert run_command(["report", place]) == 0
        assert run_command(["explain", place, "tiny-bert:1", "tiny-gpt2:2"]) == 0
    said, other = capsys.readouterr().out.split(f"{tmp_path / 'run'}/index.html\n")
    assert said == f"{bucket}/run/index.html\n{other}"
    page = (tmp_path / "run" / "index.html").read_bytes()
    assert files(f"{bucket}/run")["index.html"] == page
    loaded = Comparison.load(f"{bucket}/run")
    saved = loaded.save(f"{bucket}/copy")
    assert Comparison.load(saved).answer == Comparison.load(run_here).answer


@pytest.mark.whole_runs
def test_every_tenth_write_fails(
    two_models: dict[str, str],
    small_stimuli: Stimuli,
    run_here: Path,
    object_store: ObjectStore,
    bucket: str,
    tmp_path: Path,
) -> None:
    object_store.fail_every, failed = 10, object_store.failed
    with processes(tmp_path) as lent, ta.workers(lent):
        ta.compare(two_models, small_stimuli, out=bucket, **OPTIONS)
    assert object_store.failed - failed > 10
    object_store.mend()
    assert unlike(run_here, bucket) == []


@pytest.mark.whole_runs
@pytest.mark.parametrize("writes", [3, 70])
def test_a_store_that_refuses_from_a_moment_on(
    writes: int,
    two_models: dict[str, str],
    small_stimuli: Stimuli,
    run_here: Path,
    object_store: ObjectStore,
    bucket: str,
) -> None:
    """One clear line; when the store is well again, the same call goes on to the same bytes."""
    object_store.refuse_after = writes
    with pytest.raises((StoreError, WorkFailed), match="cannot be reached"):
        ta.compare(two_models, small_stimuli, out=bucket, **OPTIONS)
    object_store.mend()
    ta.compare(two_models, small_stimuli, out=bucket, **OPTIONS)
    assert unlike(run_here, bucket) == []


@pytest.mark.parametrize("where", ["folder", "s3"])
def test_vectors_that_expire(
    where: str, two_models: dict[str, str], small_stimuli: Stimuli, bucket: str, tmp_path: Path
) -> None:
    """The chunks of layers are gone; who asks for them is told, and a call that needs them has them."""
    out = bucket if where == "s3" else str(tmp_path / "run")
    options: dict[str, Any] = {"resamples": 3, "null": 10}
    made = ta.compare(two_models, small_stimuli, out=out, keep="profiles", **options)
    kept = files(out)
    chunk = "systems/tiny-bert/activations.zarr/layers/1/c/0/0"
    assert chunk not in kept
    assert made.activations is None
    loaded = Comparison.load(out)
    assert loaded.explain("tiny-bert", 1, "tiny-gpt2", 2).worst_pairs is None
    with pytest.raises(InvalidInput, match="The activations of this run are gone"):
        loaded.reliability()
    store = ta.Activations.open(f"{out}/systems/tiny-bert/activations.zarr")
    with pytest.raises(StoreError, match=r"vectors at .* were deleted when the profiles had been made"):
        store[1]
    again = ta.compare(two_models, small_stimuli, out=out, keep="profiles", **options)
    assert files(out) == kept
    assert again.answer == made.answer
    full = ta.compare(two_models, small_stimuli, out=out, **options)
    assert full.activations is not None
    assert chunk in files(out)
    assert {name: data for name, data in files(out).items() if name in kept} == {
        name: data for name, data in kept.items() if not name.endswith("expired.json")
    }


def test_what_can_be_kept(small_stimuli: Stimuli, two_models: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"no thing to keep 'profile'\. Did you mean 'profiles'"):
        ta.compare(two_models, small_stimuli, out=tmp_path / "run", keep="profile")
    with pytest.raises(InvalidInput, match="says what stays in a run directory: give out"):
        ta.compare(two_models, small_stimuli, keep="profiles")
