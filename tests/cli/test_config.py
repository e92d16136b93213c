"""Options in a file: read, written by every run, and refused where they mean nothing."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from thinkalike.cli import app
from thinkalike.cli.boundary import run
from thinkalike.cli.config import in_front


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text('command = "stimuli"\nsentences = 7\ngrammar = "salle2024"\n', encoding="utf-8")
    return path


def sentences(folder: Path) -> int:
    from thinkalike.stimuli import Stimuli

    return len(Stimuli.load(folder).sentences)


@pytest.mark.parametrize("where", ["before", "after"])
def test_the_file_gives_the_options(config: Path, tmp_path: Path, where: str) -> None:
    out = tmp_path / "words.parquet"
    given, command = ["--config", str(config)], ["stimuli", "--out", str(out)]
    assert run([*given, *command] if where == "before" else [*command, *given]) == 0
    assert sentences(out) == 7


def test_the_command_line_comes_first(config: Path, tmp_path: Path) -> None:
    out = tmp_path / "words.parquet"
    assert run(["stimuli", "--config", str(config), "--sentences", "5", "--out", str(out)]) == 0
    assert sentences(out) == 5


def test_a_run_writes_what_repeats_it(tiny_run: tuple[Path, list[str]], tmp_path: Path) -> None:
    out, models = tiny_run
    said = tomllib.loads((out / "command.toml").read_text(encoding="utf-8"))
    assert said == {
        "command": "compare",
        "models": models,
        "sentences": 20,
        "resamples": 0,
        "report": False,
        "robustness": False,
        "chat": False,
        "dry_run": False,
        "called": {"from": os.path.relpath(Path.cwd(), out), "out": str(out)},
    }
    again = tmp_path / "again"
    assert run(["compare", "--config", str(out / "command.toml"), "--out", str(again)]) == 0
    for table in sorted((out / "tables").iterdir()):
        assert (again / "tables" / table.name).read_bytes() == table.read_bytes()


@pytest.fixture
def tiny_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[str]]:
    monkeypatch.setenv("THINKALIKE_CACHE", str(tmp_path / "cache"))
    out, models = tmp_path / "run", ["nano-pythia-64", "nano-pythia-64@step1000"]
    options = ["--sentences", "20", "--resamples", "0", "--no-report", "--out", str(out)]
    assert run(["compare", *models, *options]) == 0
    return out, models


@pytest.mark.parametrize(
    ("content", "command", "told"),
    [
        (
            'command = "compare"',
            ["stimuli"],
            "is of `thinkalike compare`, and `thinkalike stimuli` was called",
        ),
        ("sentenses = 3", ["stimuli"], "Did you mean 'sentences'?"),
        ("sentences 3", ["stimuli"], "is no TOML file of options"),
        ("\x00", ["stimuli"], "is no TOML file of options"),
        ("sentences = 'many'", ["stimuli"], "bad.toml: sentences is 'many'. "),
        ("sentences = -4", ["stimuli"], "bad.toml: sentences is -4. "),
        (
            "[stimuli]\nsentences = 4",
            ["stimuli"],
            "has a section [stimuli], and options of `thinkalike stimuli`",
        ),
        ("pair = ['a:1']", ["report", "."], "bad.toml: pair is ['a:1']. "),
        ("sentences = true", ["stimuli"], "sentences is True, and a word or number was expected"),
        ("sentences = [3, 4]", ["stimuli"], "sentences is [3, 4], and a word or number was expected"),
        ("sentences = 2026-01-01", ["stimuli"], "and a word or number was expected"),
        ("balance = 'yes'", ["stimuli"], "balance is 'yes', and true or false was expected"),
        ("drop = [['tense']]", ["stimuli"], "and words or numbers in brackets was expected"),
    ],
)
def test_what_means_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, command: list[str], told: str
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(content, encoding="utf-8")
    assert run([*command, "--config", str(file)]) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_no_such_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["stimuli", "--config", str(tmp_path / "none.toml")]) == 2
    assert "names a TOML file of options" in capsys.readouterr().err


def test_it_may_stand_anywhere() -> None:
    assert in_front(["compare", "a", "--config", "f", "b"]) == ["--config", "f", "compare", "a", "b"]
    assert in_front(["compare", "a", "--config=f", "b"]) == ["--config", "f", "compare", "a", "b"]
    assert in_front(["compare", "a"]) == ["compare", "a"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["stimuli", "--config"], "none came"),
        (["--config=", "stimuli"], "none came"),
        (["--config", "f", "stimuli", "--config", "g"], "2 came"),
    ],
)
def test_it_stands_once(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert f"--config takes one TOML file of options, and {told}" in capsys.readouterr().err


def test_an_option_of_two_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "two.toml"
    file.write_text("pair = ['a:1', 'b:2']", encoding="utf-8")
    assert run(["report", str(tmp_path), "--config", str(file)]) == 2
    assert "--pair names charts to write as files" in capsys.readouterr().err  # it was read


def test_one_word_may_stand_for_a_list_of_one(tmp_path: Path) -> None:
    file, out = tmp_path / "mine.toml", tmp_path / "words.csv"
    file.write_text("sentences = 3\ndrop = 'tense'", encoding="utf-8")
    assert run(["stimuli", "--config", str(file), "--out", str(out)]) == 0
    assert "tense" not in out.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", sorted(get_command(app).commands))  # type: ignore[attr-defined]
def test_every_command_reads_one(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    file = tmp_path / "options.toml"
    file.write_text("no_such_option = 1", encoding="utf-8")
    assert run([command, "--config", str(file)]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"option of `thinkalike {command}`" in told
    assert "no_such_option" in told
