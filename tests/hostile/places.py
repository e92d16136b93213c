"""Every writing command where nothing, or not enough, can be written.

A full disk is a small tmpfs where we may mount one, and everywhere a limit on the size of files (EFBIG). A
read-only place is a read-only tmpfs, a folder without the right to write (root has all rights, so not for
root), a folder below a file, and /sys, where not even root can make anything.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tests.hostile.jobs import COMPARE, JOBS, STITCH, finish, prepare
from tests.hostile.shell import Done, Shell
from tests.hostile.verdicts import Case, complaint, error_line, fresh, shown
from thinkalike.populations.atlas import BUNDLED

MORE = {
    "compare with a report": (*(word for word in COMPARE[:-1] if word != "--no-report"), "PLACE/run"),
    "stimuli --out": ("stimuli", "-n", "40", "--out", "PLACE/x.csv"),
    "stimuli --figure": ("stimuli", "-n", "40", "--figure", "PLACE/x.png"),
    "stimuli --copy-grammar": ("stimuli", "--copy-grammar", "PLACE/grammar"),
    "profile --figure": ("profile", "nano-pythia-64", "--stimuli", "s.csv", "--figure", "PLACE/p.html"),
    "stitch --run": (*STITCH, "--max-tokens", "3000", "--run", "PLACE/rundir"),
    "demo": ("demo", "--sentences", "24", "--resamples", "0", "--out", "PLACE/demo"),
    "atlas add": ("atlas", "add", "one.npz", "--at", "PLACE/atlas"),
    "atlas map": ("atlas", "map", "--figure", "PLACE/map.svg"),
    "atlas report": ("atlas", "report", "--out", "PLACE/atlas.html"),
    "diff": ("diff", "a.npz", "b.npz", "--stimuli", "s.csv", "--out", "PLACE/d"),
    "trace": ("trace", "a.npz", "b.npz", "--stimuli", "s.csv", "--figure", "PLACE/t.svg"),
}
LIMITS = (6_000,)
"""Bytes of the largest file: commands write smaller ones before they come to a larger"""
DISKS = ("16k", "256k")


def writing_commands() -> dict[str, tuple[str, ...]]:
    """Every command that writes, with PLACE for where it does."""
    jobs = {job.name: tuple(_placed(word) for word in job.arguments) for job in JOBS}
    return {**jobs, **MORE}


def _placed(word: str) -> str:
    return "PLACE/out" if word == "out" else word.replace("out/", "PLACE/out/")


def try_limit(shell: Shell, folder: Path, made: Path, name: str, limit: int) -> Case:
    """No file may be longer than `limit` bytes."""
    place = _prepared(folder, made, f"{name}-{limit}")
    arguments = _at(writing_commands()[name], Path("."))
    done = shell.run(arguments, place, largest_file=limit, limit=60)
    return _judge(f"{name}: files of at most {limit} bytes", done, place)


def try_disk(shell: Shell, folder: Path, made: Path, name: str, size: str) -> Case:
    """A disk of `size`."""
    place = _prepared(folder, made, f"{name}-{size}")
    with mounted(place / "disk", size):
        with contextlib.suppress(OSError):
            _hold(name, place, place / "disk")
        done = shell.run(_at(writing_commands()[name], Path("disk")), place, limit=60)
        return _judge(f"{name}: a disk of {size}", done, place / "disk")


def try_cache(shell: Shell, folder: Path, made: Path, name: str, kind: str) -> Case:
    """The user's cache is on a place that takes nothing."""
    place = _prepared(folder, made, f"{name}-cache-{kind}")
    (place / "file").write_text("")
    where = {"under a file": place / "file" / "cache", "in /sys": Path("/sys/cache")}[kind]
    done = shell.run(
        _at(writing_commands()[name], Path(".")),
        place,
        environment={"THINKALIKE_CACHE": str(where)},
        limit=60,
    )
    return _judge(f"{name}: a cache {kind}", done, place)


def try_read_only(shell: Shell, folder: Path, made: Path, name: str, kind: str) -> Case:
    """A place that may be read and not written."""
    place = _prepared(folder, made, f"{name}-{kind}")
    with read_only(kind, place, lambda where: _hold(name, place, where)) as where:
        done = shell.run(_at(writing_commands()[name], where), place, limit=60)
        return _judge(f"{name}: {kind}", done, place)


def read_only_kinds() -> list[str]:
    kinds = ["below a file", "/sys"]
    if can_mount():
        kinds.append("a read-only disk")
    if os.geteuid() != 0:
        kinds.append("a folder without the right to write")
    return kinds


@contextlib.contextmanager
def read_only(kind: str, place: Path, fill: Callable[[Path], None]) -> Iterator[Path]:
    where = place / "ro"
    if kind == "/sys":
        yield Path("/sys")
    elif kind == "below a file":
        where.write_text("")
        yield where
    elif kind == "a read-only disk":
        with mounted(where, "8m"):
            fill(where)
            subprocess.run(["mount", "-o", "remount,ro", where], check=True)
            yield where
    else:
        where.mkdir()
        fill(where)
        where.chmod(0o555)
        try:
            yield where
        finally:
            where.chmod(0o755)


@contextlib.contextmanager
def mounted(where: Path, size: str) -> Iterator[None]:
    where.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "hostile", where], check=True, capture_output=True
    )
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", where], check=True)


def can_mount() -> bool:
    """Whether we may mount; most users may not, and some containers let nobody."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        try:
            with mounted(Path(folder) / "x", "16k"):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


def make_run(shell: Shell, folder: Path) -> Path:
    """A finished run of the two models that the stitching takes, for the commands that add to one."""
    prepare(folder)
    for name, person in zip("ab", np.load(folder / "people.npy"), strict=False):
        np.savez(folder / f"{name}.npz", **{"1": person})
    shutil.copy(BUNDLED / "words-1" / "nano-bert.npz", folder / "one.npz")
    finish(shell, ("compare", "nano-gelu-3l", "nano-solu-3l", *COMPARE[3:]), folder)
    shutil.copytree(folder / "rundir", folder / "out")
    return folder


def _prepared(folder: Path, made: Path, name: str) -> Path:
    place = fresh(folder, name)
    place.rmdir()
    shutil.copytree(made, place)
    if not name.startswith("report"):
        shutil.rmtree(place / "out")
    if not name.startswith("stitch --run"):
        shutil.rmtree(place / "rundir")
    return place


def _hold(name: str, place: Path, where: Path) -> None:
    """What a command adds to must be there, as far as it fits."""
    for needed in {"report": ["out"], "stitch --run": ["rundir"]}.get(name, []):
        shutil.copytree(place / needed, where / needed)


def _at(arguments: tuple[str, ...], where: Path) -> tuple[str, ...]:
    return tuple(
        word.replace("PLACE", str(where)) if where != Path(".") else word.replace("PLACE/", "")
        for word in arguments
    )


def _judge(name: str, done: Done, place: Path) -> Case:
    left = (
        [str(path.relative_to(place)) for path in place.rglob(".*") if path.is_file()]
        if place.is_dir()
        else []
    )
    line = error_line(done)
    if line is None and done.code:
        return Case(name, "bad", complaint(done), shown(done))
    left = [one for one in left if "cache" not in one]
    if left:
        return Case(name, "bad", f"half a file is left: {left[:3]}", shown(done))
    return Case(name, "right" if line is None else "clear", (line or "")[:200], shown(done))
