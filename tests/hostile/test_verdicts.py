"""The harness itself: it must see a crash, a hang, a changed file, a silent acceptance."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.damages import DAMAGES, JSON_DAMAGES
from tests.hostile.jobs import differences, snapshot
from tests.hostile.shell import Done, Shell
from tests.hostile.verdicts import complaint, error_line, refused

TRACEBACK = 'Traceback (most recent call last):\n  File "x"\nKeyError: 3\n'


def ended(code: int, err: str = "", *, hung: bool = False) -> Done:
    return Done(("compare",), code, "", err, hung=hung)


@pytest.mark.parametrize(
    ("done", "clear"),
    [
        (ended(2, "error: run/x.json is damaged: delete it.\n"), True),
        (ended(2, "some progress\nerror: run/x.json is damaged: delete it.\n"), True),
        (ended(2, "Usage: thinkalike compare\nTry --help\n| Invalid value |\n"), True),
        (ended(2, "╭─ Error ────╮\n│ Option '--pair' requires 2 arguments. │\n"), True),
        (ended(2, TRACEBACK + "error: x\n"), False),
        (ended(2, "error: one\nerror: two\n"), False),
        (ended(2, "error: one\nand more\n"), False),
        (ended(2), False),
        (ended(1, "error: one\n"), False),
        (ended(70, "error: a bug\n"), False),
        (ended(-9, "error: one\n"), False),
    ],
)
def test_only_one_line_of_ours_is_clear(done: Done, clear: bool) -> None:
    assert (error_line(done) is not None) == clear


def test_a_refusal_names_the_file_and_the_way_out() -> None:
    line = "error: rundir/x.json is damaged: delete it.\n"
    assert refused("a case", ended(2, line), names=["rundir/x.json"]).verdict == "clear"
    assert refused("a case", ended(2, line), names=["rundir/y.json"]).verdict == "bad"
    assert (
        refused("a case", ended(2, "error: rundir/x.json is bad\n"), names=["rundir/x.json"]).verdict == "bad"
    )
    assert refused("a case", ended(0)).verdict == "bad"


def test_complaints_say_what_happened() -> None:
    assert complaint(ended(1, TRACEBACK)).startswith("traceback, exit 1: KeyError: 3")
    assert complaint(ended(-9, hung=True)).startswith("hangs")
    assert complaint(ended(3)) == "exit 3: without a word"


@pytest.mark.parametrize("name", [*DAMAGES, *JSON_DAMAGES])
@pytest.mark.parametrize("seed", range(5))
def test_every_damage_changes_the_file(name: str, seed: int, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("")
    (tmp_path / "other.json").write_text("[1, 2]")
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"a": {"b": [1, 2, 3], "c": 4.5}, "d": list(range(99)), "e": "f"}))
    before = snapshot(tmp_path)
    {**DAMAGES, **JSON_DAMAGES}[name](path, random.Random(seed))
    assert "x.json" in differences(before, snapshot(tmp_path))


def test_times_are_no_difference(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"seconds": 1, "a": {"value": 2, "seconds": 7}}')
    before = snapshot(tmp_path)
    (tmp_path / "x.json").write_text('{"seconds": 9, "a": {"value": 2, "seconds": 8}}')
    assert differences(before, snapshot(tmp_path)) == []
    (tmp_path / "x.json").write_text('{"seconds": 9, "a": {"value": 3, "seconds": 8}}')
    assert differences(before, snapshot(tmp_path)) == ["x.json"]


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with Shell() as made:
        yield made


WRITES = "import pathlib\nfor k in range(4): pathlib.Path(f'{k}.txt').write_text('x' * 5000)"


@pytest.mark.hostile
def test_the_server_sees_how_a_command_ends(shell: Shell, tmp_path: Path) -> None:
    assert shell.run(["-c", "print('hello')"], tmp_path).out == "hello\n"
    assert shell.run(["-c", "import sys; sys.exit(7)"], tmp_path).code == 7
    crash = shell.run(["-c", "{}[3]"], tmp_path)
    assert complaint(crash) == "traceback, exit 1: KeyError: 3"
    assert shell.run(["-c", "while True: pass"], tmp_path, limit=1).hung
    late = shell.run(["-c", "import time; time.sleep(60)"], tmp_path, after=0.1)
    assert late.killed
    assert late.code == -signal.SIGKILL
    assert shell.run(["--version"], tmp_path).out.startswith("thinkalike")


@pytest.mark.hostile
def test_the_server_kills_before_a_change(shell: Shell, tmp_path: Path) -> None:
    whole = shell.run(["-c", WRITES], tmp_path / "whole", learn=True)
    assert whole.events == 4
    assert shell.run(["-c", WRITES], tmp_path / "cut", fatal_event=3).killed
    assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == ["0.txt", "1.txt"]
    assert not shell.run(["-c", WRITES], tmp_path / "late", fatal_event=5).killed


@pytest.mark.hostile
def test_the_server_limits_files(shell: Shell, tmp_path: Path) -> None:
    assert "File too large" in shell.run(["-c", WRITES], tmp_path, largest_file=4000).err
    assert shell.run(["-c", WRITES], tmp_path, largest_file=6000).code == 0
