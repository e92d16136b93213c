"""Stitching on workers: the same bytes as here, on every engine, with every kind of φ."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import thinkalike as ta
from tests.engines import Weighed, dask, files, jobs, processes, threads
from thinkalike.cli.boundary import run as run_command
from thinkalike.errors import InvalidInput, WorkFailed
from thinkalike.stitching import TaskFit, stitch_tasks
from thinkalike.stitching.phi import KINDS, get_kind, restored

pytestmark = pytest.mark.filterwarnings("default")  # of the engines

MODELS = "nano-gelu-3l", "nano-solu-3l"
TEXT = [
    f"The king of {k} lands went home, and queen {k * 7} went to sleep by the old sea." for k in range(60)
]
FITS: dict[str, dict[str, Any]] = {
    "solved": {"layers": "all", "kind": "layernorm-affine"},
    "trained": {"layers": [1, 2], "fit": TaskFit(steps=6, every=2, optimizer="adamw"), "ceiling": False},
}


def stitched(fit: str, folder: Path, **more: Any) -> dict[str, bytes]:
    ta.stitch(*MODELS, TEXT, length=32, resamples=50, **FITS[fit], **more).save(folder)
    return files(folder)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    return {fit: stitched(fit, tmp_path_factory.mktemp("here")) for fit in FITS}


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(
    "engine",
    [threads, *(pytest.param(one, marks=pytest.mark.whole_runs) for one in (processes, dask, jobs))],
    ids=lambda engine: engine.__name__,
)
def test_the_same_bytes_on_every_engine(
    engine: Any, fit: str, here: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    with engine(tmp_path) as lent, ta.workers(lent):
        found = stitched(fit, tmp_path / "run")
    assert found == here[fit]


def test_messages_are_small(here: dict[str, dict[str, bytes]], tmp_path: Path) -> None:
    with threads(tmp_path) as lent:
        weighed = Weighed(lent)
        with ta.workers(weighed):
            assert stitched("solved", tmp_path / "run") == here["solved"]
    assert {name for name, _ in weighed.sent} == {"stitch_layers"}
    assert max(size for _, size in weighed.sent) < 3_000
    assert max(size for _, size in weighed.answered) < 100


def test_what_tasks_have_finished_outlives_the_caller(
    here: dict[str, dict[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last task fails for good; the same call does that one alone, and leaves no traces."""
    saved, real, calls = tmp_path / "unfinished.npz", stitch_tasks.fit_and_judge, []

    def failing(job: Any, *given: Any) -> Any:
        calls.append(job.stitches)
        if job.stitches[0].role == "untrained":
            raise InvalidInput("not today")
        return real(job, *given)

    with ThreadPoolExecutor(1) as pool, ta.workers(pool):
        monkeypatch.setattr(stitch_tasks, "fit_and_judge", failing)
        with pytest.raises(WorkFailed, match=r"1 of 3 failed\. nano-gelu-3l:untrained:0 → .*: not today\."):
            stitched("solved", tmp_path / "run", checkpoint=saved)
        assert sorted(path.name for path in saved.with_suffix(".tasks").iterdir()) == [
            "0.npz",
            "1.npz",
            "text.npz",
        ]
        monkeypatch.setattr(stitch_tasks, "fit_and_judge", lambda *given: calls.append(given) or real(*given))
        calls.clear()
        assert stitched("solved", tmp_path / "run", checkpoint=saved) == here["solved"]
    assert len(calls) == 1
    assert not saved.with_suffix(".tasks").exists()


def test_answers_of_another_call_are_not_taken(here: dict[str, dict[str, bytes]], tmp_path: Path) -> None:
    saved = tmp_path / "unfinished.npz"
    folder = stitch_tasks.folder_of_tasks(saved)
    folder.mkdir()
    for name in ("0.npz", "text.npz"):
        (folder / name).write_bytes(b"not ours")
    with ThreadPoolExecutor(1) as pool, ta.workers(extract=pool):
        assert stitched("solved", tmp_path / "run", checkpoint=saved) == here["solved"]


def test_models_in_memory_stay_here(make: Any, documents: list[str], tokenizer: Any) -> None:
    model = make("gpt2")
    expected = ta.stitch(model, model, documents, tokenizer=tokenizer, length=32, resamples=20)
    with ThreadPoolExecutor(1) as pool, ta.workers(pool):
        found = ta.stitch(model, model, documents, tokenizer=tokenizer, length=32, resamples=20)
    np.testing.assert_array_equal(found.losses, expected.losses)


@pytest.mark.parametrize("kind", KINDS)
def test_a_phi_is_restored_from_its_parts(kind: str) -> None:
    x = torch.randn(5, 4)
    start = get_kind(kind).start
    if start is None:
        phi = get_kind(kind).make(torch.randn(4, 2), torch.randn(2, 3), torch.randn(3))
    else:
        phi = start(4)
    with torch.no_grad():
        for parameter in phi.parameters():
            parameter.normal_(0, 0.1)
    torch.testing.assert_close(restored(kind, phi.state_dict())(x), phi(x), rtol=0, atol=0)


@pytest.mark.whole_runs
def test_the_command_on_processes_both_ways(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n\n".join(TEXT))
    asked = ["stitch", *MODELS, "--text", str(tmp_path / "text.txt"), "--length", "32", "--both-ways"]
    for name, more in (("here", []), ("workers", ["--workers", "2"])):
        assert run_command([*asked, "--out", str(tmp_path / name), *more]) == 0
    expected, found = files(tmp_path / "here"), files(tmp_path / "workers")
    apart = {name for name in {**expected, **found} if expected.get(name) != found.get(name)}
    assert {Path(name).name for name in apart} <= {"command.json", "command.toml", "log.txt"}
    assert expected.keys() == found.keys()
