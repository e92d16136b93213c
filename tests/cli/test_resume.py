"""A run that was stopped goes on by its folder alone, and its log tells what happened."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest

from thinkalike.cli.boundary import run
from thinkalike.cli.record import AGAIN

MODELS = ["nano-pythia-64", "nano-pythia-64@step1000"]
OPTIONS = ["--sentences", "20", "--resamples", "0", "--no-report"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THINKALIKE_CACHE", str(tmp_path / "cache"))
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def stop_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Make a function of ours fail as a full memory would."""

    def fail(*_: object, **__: object) -> None:
        raise MemoryError("no more")

    monkeypatch.setattr(name, fail)


def tables(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "tables").iterdir())}


def test_a_stopped_run_goes_on_and_its_log_tells(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", *MODELS, *OPTIONS, "--out", "whole"]) == 0
    with monkeypatch.context() as broken:
        stop_at(broken, "thinkalike.comparison.comparing.assemble")
        assert run(["compare", *MODELS, *OPTIONS, "--out", "runs/two"]) != 0
    assert not (home / "runs/two/tables").exists()
    assert tomllib.loads((home / "runs/two/command.toml").read_text())["called"] == {
        "from": "../..",
        "out": "runs/two",
    }
    stopped = (home / "runs/two/log.txt").read_text()
    assert "stopped: no more" in stopped
    assert "Traceback" in stopped
    monkeypatch.chdir("runs")  # from wherever it is called
    assert run(["resume", "two"]) == 0
    assert tables(home / "runs/two") == tables(home / "whole")
    log = (home / "runs/two/log.txt").read_text()
    assert log.startswith(stopped)
    assert "finished in" in log[len(stopped) :]
    assert "thinkalike" in log
    capsys.readouterr()
    monkeypatch.chdir(home)
    assert run(["resume", "runs/two"]) == 0
    assert AGAIN in capsys.readouterr().out


def test_a_run_that_failed_before_it_wrote_leaves_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at(monkeypatch, "thinkalike.stimuli.table.Stimuli.save")
    assert run(["compare", *MODELS, *OPTIONS, "--out", "runs/two"]) != 0
    assert not (home / "runs").exists()


def test_a_run_that_is_refused_leaves_the_record_of_the_other(home: Path) -> None:
    assert run(["compare", *MODELS, *OPTIONS, "--out", "runs/two"]) == 0
    kept = {name: (home / "runs/two" / name).read_bytes() for name in ("command.toml", "log.txt")}
    assert run(["compare", *MODELS, "--sentences", "21", "--no-report", "--out", "runs/two"]) == 2
    assert {name: (home / "runs/two" / name).read_bytes() for name in kept} == kept


def test_a_folder_with_nothing_but_the_record_of_a_killed_run_is_free(home: Path) -> None:
    Path("two").mkdir()
    Path("two/command.toml").write_text('command = "compare"\n')
    Path("two/log.txt").write_text("2026-01-01 thinkalike compare\n")
    assert run(["compare", *MODELS, *OPTIONS, "--out", "two"]) == 0


def test_a_profile_leaves_no_record_in_the_cache(home: Path) -> None:
    assert run(["profile", MODELS[0], "--sentences", "20", "--out", "p"]) == 0
    assert not list((home.parent / "cache").rglob("command.toml"))
    assert not list((home.parent / "cache").rglob("log.txt"))


def test_what_cannot_be_resumed_says_why(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["resume", "nowhere"]) == 2
    assert "has no command.toml" in capsys.readouterr().err
    Path("mine").mkdir()
    Path("mine/command.toml").write_text('command = "compare"\n')
    assert run(["resume", "mine"]) == 2
    assert "does not say how the run was called" in capsys.readouterr().err
    for said in ('"resume"', '"zzz"', "3", '"--version"'):  # itself, for ever; no command
        Path("mine/command.toml").write_text(f'command = {said}\nfolder = "mine"\n[called]\nfrom = ".."\n')
        assert run(["resume", "mine"]) == 2
        assert "does not say how the run was called" in capsys.readouterr().err
    for place in ("3", '"a\\u0000b"'):
        Path("mine/command.toml").write_text(f'command = "compare"\n[called]\nfrom = {place}\n')
        assert run(["resume", "mine"]) == 2
        assert "does not say how the run was called" in capsys.readouterr().err
    Path("mine/command.toml").write_text('command = "compare"\n[called]\nfrom = "../gone"\n')
    assert run(["resume", "mine"]) == 2
    assert "not there any more" in capsys.readouterr().err
    shutil.rmtree("mine")
