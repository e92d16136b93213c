"""A command that was finished says so again, and does nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from thinkalike.cli import app, once
from thinkalike.systems import pretrained

TEXT = "The dog sees a cat near the old house.\n\nA cat that the dogs see runs home again today.\n\n" * 20
TWO = ("nano-gelu-3l", "nano-solu-3l")
COMMANDS: dict[str, tuple[str, ...]] = {
    "cka": ("cka", *TWO, "--text", "t.txt", "--length", "32", "--max-batches", "4", "--out", "out"),
    "stitch": ("stitch", *TWO, "--text", "t.txt", "--layers", "1", "--no-ceiling", "--out", "out"),
    "profile": ("profile", TWO[0], "--sentences", "12", "--resamples", "0", "--out", "out/p"),
    "compare": ("compare", *TWO, "--sentences", "12", "--resamples", "0", "--out", "out"),
    "extract": ("extract", TWO[0], "--stimuli", "s.csv", "--out", "out/x.zarr"),
}


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
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_finished_command_repeated_does_nothing_but_say_so(
    name: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(*COMMANDS[name])
    assert first.exit_code == 0, first.output
    assert once.AGAIN not in first.output
    before = everything(here)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a model is loaded")

    for loader in ("load_model", "load_headed"):
        monkeypatch.setattr(f"thinkalike.systems.system.{loader}", refuse)
        assert hasattr(pretrained, loader)
    again = run(*COMMANDS[name])
    assert again.exit_code == 0, again.output
    assert everything(here) == before
    words = first.output.split("Wrote ")[0].strip()
    assert words in again.output
    assert once.AGAIN in again.output


def test_whatever_was_changed_is_made_anew(here: Path) -> None:
    assert run(*COMMANDS["cka"]).exit_code == 0
    before = {path: path.read_bytes() for path in (here / "out").glob("*.parquet")}
    (here / "out" / "cka.parquet").write_bytes(b"damaged")
    assert once.AGAIN not in run(*COMMANDS["cka"]).output
    assert {path: path.read_bytes() for path in before} == before
    (here / "t.txt").write_text(TEXT + "More.\n")
    assert once.AGAIN not in run(*COMMANDS["cka"]).output


def test_another_command_takes_the_place_of_a_finished_one(here: Path) -> None:
    assert run(*COMMANDS["cka"]).exit_code == 0
    changed = run(*COMMANDS["cka"], "--seed", "3")
    assert changed.exit_code == 0
    assert once.AGAIN not in changed.output
    assert json.loads((here / "out" / "settings.json").read_text())["settings"]["seed"] == 3
    assert once.AGAIN in run(*COMMANDS["cka"], "--seed", "3").output
