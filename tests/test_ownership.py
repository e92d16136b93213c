"""A folder has one owner at a time: real processes, some of them killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PAUSE, until_there
from thinkalike.errors import StoreError
from thinkalike.ownership import LOCK, differences, owning

OWNER = f"""
{PAUSE}
import sys
from pathlib import Path
from thinkalike.ownership import owning
folder = Path(sys.argv[1])
with owning(folder, lambda busy: None):
    (folder / "begun").touch()
    pause_until(folder.with_name("go on"))
    (folder / "log").write_text("done")
"""


def start(folder: Path) -> subprocess.Popen[bytes]:
    """An owner, which works until there is a file `go on` beside the folder."""
    process = subprocess.Popen([sys.executable, "-c", OWNER, str(folder)])
    until_there(folder / "begun", process)
    return process


def nothing(busy: bool) -> None:
    """Whoever asks may work here."""


def test_an_equal_run_waits_for_its_turn(tmp_path: Path) -> None:
    process = start(tmp_path / "run")
    asked: list[bool] = []

    def let_it_finish(busy: bool) -> None:
        asked.append(busy)
        if busy:
            (tmp_path / "go on").touch()

    with owning(tmp_path / "run", let_it_finish):
        assert (tmp_path / "run" / "log").read_text() == "done"
    assert True in asked
    assert process.wait() == 0
    assert not (tmp_path / "run" / LOCK).exists()


def test_another_is_refused_at_once_and_writes_nothing(tmp_path: Path) -> None:
    process = start(tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()}

    def refuse(busy: bool) -> None:
        if busy:
            raise StoreError("another run is at work")

    with pytest.raises(StoreError, match="another run is at work"), owning(tmp_path / "run", refuse):
        pytest.fail("it was let in")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()} == before
    process.kill()
    process.wait()


def test_the_folder_of_a_dead_owner_is_free(tmp_path: Path) -> None:
    process = start(tmp_path / "run")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / "run" / LOCK).exists()
    asked: list[bool] = []
    with owning(tmp_path / "run", asked.append):
        pass
    assert asked == [False, False]
    assert not (tmp_path / "run" / LOCK).exists()


def test_many_owners_come_one_after_the_other(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from thinkalike.ownership import owning
folder = Path(sys.argv[1])
for _ in range(20):
    with owning(folder, lambda busy: None):
        count = int((folder / "count").read_text()) if (folder / "count").exists() else 0
        (folder / "count").write_text(str(count + 1))
"""
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "run")]) for _ in range(3)]
    assert [one.wait() for one in running] == [0, 0, 0]
    assert (tmp_path / "run" / "count").read_text() == "60"


def test_what_nothing_came_of_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with owning(tmp_path / "run", nothing):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StoreError, match=r"file/run cannot be written .*: name another place"),
        owning(tmp_path / "file" / "run", nothing),
    ):
        pytest.fail("it was let in")


def test_differences_are_told_in_words() -> None:
    there = {"seed": 0, "extraction": {"pooling": "last"}, "digest": "0" * 64, "groups": "a" * 16}
    here = {"seed": 0, "extraction": {"pooling": "mean"}, "digest": "1" * 64, "site": "mlp"}
    assert differences(there, here) == (
        "pooling: last there, mean here; other digest; groups: some there, none here; "
        "site: none there, mlp here"
    )
