"""Every command that writes does so at an address too, with the bytes that it writes into a folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.engines import files
from thinkalike.cli.boundary import run as run_command
from thinkalike.cli.record import AGAIN

TWO = ["nano-gelu-3l", "nano-solu-3l"]
BESIDE = ("log.txt", "command.toml")
"""A store has no file to add lines to; and where to, and from where, differ"""

COMMANDS: dict[str, list[str]] = {
    "stitch": ["stitch", *TWO, "--text", "TEXT", "--length", "32", "--both-ways", "--out", "OUT"],
    "stitch-task": [
        *("stitch", *TWO, "--text", "TEXT", "--length", "32", "--fit", "task", "--steps", "4"),
        *("--layers", "1", "--no-ceiling", "--out", "OUT"),
    ],
    "cka": ["cka", *TWO, "--text", "TEXT", "--length", "32", "--max-batches", "3", "--out", "OUT"],
    "outputs": ["outputs", *TWO, "--text", "TEXT", "--length", "32", "--out", "OUT"],
    "profile": ["profile", TWO[0], "--sentences", "20", "--out", "OUT/own", "--figure", "OUT/own.svg"],
    "stimuli": ["stimuli", "-n", "12", "--out", "OUT/words.parquet", "--figure", "OUT/words.svg"],
    "grammar": ["stimuli", "--copy-grammar", "OUT"],
    "fingerprint": ["fingerprint", TWO[0], "--out", "OUT/own.npz"],
}
LONG: dict[str, list[str]] = {
    "demo": ["demo", "--sentences", "16", "--resamples", "0", "--out", "OUT"],
    "reproduce": ["reproduce", "brown2023-scaling", "--scale", "smoke", "--out", "OUT"],
}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "text.txt"
    file.write_text(
        "\n\n".join(f"The king of {k} lands went home to sleep by the old sea." for k in range(60))
    )
    return file


def run(name: str, text: Path, out: str) -> int:
    asked = {**COMMANDS, **LONG}[name]
    return run_command([word.replace("OUT", out).replace("TEXT", str(text)) for word in asked])


def compared(found: dict[str, bytes]) -> dict[str, bytes]:
    """Without what stands beside; the parts of a drawing are numbered on and on within a process."""
    return {
        name: re.sub(rb"(clip|gradient_)[0-9]+", rb"\1", data) if name.endswith(".svg") else data
        for name, data in found.items()
        if Path(name).name not in BESIDE
    }


@pytest.mark.parametrize(
    "name",
    [
        *(
            pytest.param(one, marks=[] if one in ("stimuli", "grammar") else pytest.mark.whole_runs)
            for one in COMMANDS
        ),
        pytest.param("demo", marks=pytest.mark.whole_runs),
    ],
)
@pytest.mark.filterwarnings("default")
def test_the_same_bytes_at_an_address(
    name: str, text: Path, bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(name, text, str(tmp_path / "here")) == 0
    assert run(name, text, bucket) == 0
    said = capsys.readouterr().out
    assert said.replace(bucket, str(tmp_path / "here")).count(str(tmp_path / "here")) >= 2
    expected, found = compared(files(tmp_path / "here")), compared(files(bucket))
    assert found.keys() == expected.keys()
    differ = [one for one in expected if expected[one] != found[one]]
    assert [one for one in differ if not one.endswith("command.json")] == []


@pytest.mark.whole_runs
def test_a_finished_command_says_it_again(
    text: Path, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("cka", text, bucket) == 0
    first, kept = capsys.readouterr().out, files(bucket)
    assert run("cka", text, bucket) == 0
    assert capsys.readouterr().out == f"{first}{AGAIN}\n"
    assert files(bucket) == kept


@pytest.mark.whole_runs
@pytest.mark.filterwarnings("default")
def test_a_recipe_at_an_address(text: Path, bucket: str, tmp_path: Path) -> None:
    """Kept steps are the same; times are those of the run."""
    assert run("reproduce", text, str(tmp_path / "here")) == 0
    assert run("reproduce", text, bucket) == 0
    expected, found = compared(files(tmp_path / "here")), compared(files(bucket))
    assert found.keys() == expected.keys()
    timed = {"findings.json", "index.html", "spent.json"}
    assert {one for one in expected if expected[one] != found[one]} <= timed


def test_a_place_that_is_gone_or_cannot_be_written_is_refused_before_any_work(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for out, why in (("memory://x", "is gone when the command ends"), ("https://h/x", "cannot be written")):
        for name in (*COMMANDS, *LONG):
            assert run(name, Path("none.txt"), out) == 2
            assert why in capsys.readouterr().err
