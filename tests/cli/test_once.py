"""A command that was finished says so again, and does nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from thinkalike.cli import app
from thinkalike.cli.record import AGAIN
from thinkalike.systems import pretrained

TEXT = "The dog sees a cat near the old house.\n\nA cat that the dogs see runs home again today.\n\n" * 20
TWO = ("nano-gelu-3l", "nano-solu-3l")
COMMANDS: dict[str, tuple[str, ...]] = {
    "cka": ("cka", *TWO, "--text", "t.txt", "--length", "32", "--max-batches", "4", "--out", "out"),
    "stitch": ("stitch", *TWO, "--text", "t.txt", "--layers", "1", "--no-ceiling", "--out", "out"),
    "profile": ("profile", TWO[0], "--sentences", "12", "--resamples", "0", "--out", "out/p"),
    "compare": ("compare", *TWO, "--sentences", "12", "--resamples", "0", "--out", "out"),
    "extract": ("extract", TWO[0], "--stimuli", "s.csv", "--out", "out/x.zarr"),
    "extract to the cache": ("extract", TWO[0], "--stimuli", "s.csv"),
    "stimuli": ("stimuli", "-n", "12", "--out", "out/s.parquet", "--figure", "out/s.svg"),
}
HEAVY = {"torch", "transformers", "pandas", "zarr", "numba", "altair"}
LIGHTLY = f"""
import sys
from thinkalike.cli.boundary import run
code = run(sys.argv[1:])
assert not {HEAVY!r} & set(sys.modules), {HEAVY!r} & set(sys.modules)
sys.exit(code)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THINKALIKE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "t.txt").write_text(TEXT)
    assert run("stimuli", "-n", "12", "--out", "s.csv").exit_code == 0
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


def everything(folder: Path) -> dict[Path, tuple[int, bytes]]:
    """Every file with its time; but the log says that someone looked again."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "log.txt")
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def run_lightly(*arguments: str) -> str:
    """A command in a process of its own, which fails if it loads what only work needs."""
    done = subprocess.run(
        [sys.executable, "-c", LIGHTLY, *arguments], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_a_finished_command_repeated_says_so_and_loads_nothing(name: str, here: Path) -> None:
    first = run(*COMMANDS[name])
    assert first.exit_code == 0, first.output
    assert AGAIN not in first.output
    before = everything(here)
    again = run_lightly(*COMMANDS[name])
    assert again == first.stdout + AGAIN + "\n"
    assert everything(here) == before


@pytest.mark.parametrize(
    "name", [name for name in COMMANDS if name not in ("stimuli", "extract to the cache")]
)
def test_without_a_record_what_is_there_is_found(
    name: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(*COMMANDS[name])
    shutil.rmtree(here / "cache" / "finished")
    before = everything(here / "out")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a model is loaded")

    for loader in ("load_model", "load_headed"):
        monkeypatch.setattr(f"thinkalike.systems.system.{loader}", refuse)
        assert hasattr(pretrained, loader)
    again = run(*COMMANDS[name])
    assert again.exit_code == 0, again.output
    assert everything(here / "out") == before
    assert first.output.split("Wrote ")[0].strip() in again.output
    assert AGAIN in again.output


def test_a_record_that_cannot_be_written_is_done_without(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKALIKE_CACHE", str(here / "s.csv"))
    for _ in range(2):
        done = run("stimuli", "-n", "12", "--out", "s.parquet")
        assert done.exit_code == 0
        assert AGAIN not in done.output


@pytest.mark.parametrize("change", ["an output", "a chunk", "the time of a chunk", "the input", "an option"])
def test_what_is_not_as_it_was_is_looked_at(change: str, here: Path) -> None:
    command = COMMANDS["extract"]
    assert run(*command).exit_code == 0
    chunk = here / "out" / "x.zarr" / "layers" / "0" / "c" / "0" / "0"
    if change == "an output":
        (here / "out" / "x.zarr" / "zarr.json").write_text("{}")
    elif change == "a chunk":
        chunk.write_bytes(chunk.read_bytes()[:-8] + bytes(8))
    elif change == "the time of a chunk":
        os.utime(chunk, ns=(0, 0))
    elif change == "the input":
        assert run("stimuli", "-n", "13", "--out", "s.csv").exit_code == 0
    else:
        command = (*command, "--pooling", "mean")
    with pytest.raises(AssertionError, match="torch"):
        run_lightly(*command)


def test_weights_that_were_changed_are_another_model(here: Path, tiny_models: dict[str, Path]) -> None:
    shutil.copytree(tiny_models["tiny-gpt2"], here / "mine")
    command = ("extract", "mine", "--stimuli", "s.csv", "--out", "x.zarr")
    assert run(*command).exit_code == 0
    assert AGAIN in run_lightly(*command)
    os.utime(here / "mine" / "model.safetensors")
    with pytest.raises(AssertionError, match="torch"):
        run_lightly(*command)


def test_whatever_was_changed_is_made_anew(here: Path) -> None:
    assert run(*COMMANDS["cka"]).exit_code == 0
    before = {path: path.read_bytes() for path in (here / "out").glob("*.parquet")}
    (here / "out" / "cka.parquet").write_bytes(b"damaged")
    assert AGAIN not in run(*COMMANDS["cka"]).output
    assert {path: path.read_bytes() for path in before} == before
    (here / "t.txt").write_text(TEXT + "More.\n")
    assert AGAIN not in run(*COMMANDS["cka"]).output


def test_another_command_takes_the_place_of_a_finished_one(here: Path) -> None:
    assert run(*COMMANDS["cka"]).exit_code == 0
    changed = run(*COMMANDS["cka"], "--seed", "3")
    assert changed.exit_code == 0
    assert AGAIN not in changed.output
    assert json.loads((here / "out" / "settings.json").read_text())["settings"]["seed"] == 3
    assert AGAIN in run(*COMMANDS["cka"], "--seed", "3").output


def test_what_a_killed_process_left_is_no_result(here: Path) -> None:
    """A file that was half written when the power went is not among what the command has made."""
    assert run(*COMMANDS["cka"]).exit_code == 0
    made = json.loads((here / "out" / "command.json").read_text())["files"]
    shutil.rmtree(here / "out")
    (here / "out").mkdir()
    (here / "out" / ".command.json.other.1.2.part").write_text("{")
    assert run(*COMMANDS["cka"]).exit_code == 0
    assert json.loads((here / "out" / "command.json").read_text())["files"].keys() == made.keys()
