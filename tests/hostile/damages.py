"""Damage to what a run wrote: never other numbers, never a crash.

A run directory, a store, a profile, a stitching and the steps of a recipe are copied, one file of the
copy is damaged, and the commands that read it are run. Right: the numbers of before, or the file made anew.
Clear: one line that names the file, or the folder that holds it, and the way out.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hostile.jobs import COMPARE, EXPLAIN, differences, finish, prepare, snapshot
from tests.hostile.shell import Done, Shell
from tests.hostile.verdicts import Case, complaint, error_line, fresh, refused, shown

READ_BACK = (".parquet", ".json", ".npz", ".npy", ".safetensors", "")
"""Endings of files that we read again (chunks of Zarr have none); CSV, figures and pages are for people"""
Damage = Callable[[Path, random.Random], str]


@dataclass(frozen=True)
class Follow:
    """A command to run after the damage, and what it must leave or say if it succeeds."""

    arguments: tuple[str, ...]
    says: bool = False
    """Its output must be that of before the damage"""
    restores: str = ""
    """The folder, below the case's, that must be as before the damage"""


@dataclass(frozen=True)
class Target:
    """Something on disk, how it is made, and who reads it."""

    name: str
    folder: str
    make: tuple[tuple[str, ...], ...]
    follows: tuple[Follow, ...]
    trials: int
    without: str = ""
    """What the commands do not read, by a part of its path"""


READING = """
import sys
from thinkalike.activations import Activations
from thinkalike.comparison.profiles import Profile
from thinkalike.errors import ThinkalikeError
try:
    {}
except ThinkalikeError as error:
    print(f"error: {{error}}", file=sys.stderr)
    sys.exit(2)
"""
LOAD_PROFILE = READING.format(
    """found = Profile.load("prof/p")
    print(found.features, found.layers, found.importance.tolist(), found.scores.tolist())"""
)
OPEN_STORE = READING.format(
    """found = Activations.open("x.zarr")
    print(found.item_names, found.stimuli_digest, [found[layer].tolist() for layer in found.layers])"""
)
EXTRACT = ("extract", "nano-pythia-64", "--stimuli", "s.csv", "--out", "x.zarr")
STITCH = (
    "stitch",
    "nano-gelu-3l",
    "nano-solu-3l",
    "--text",
    "t.txt",
    "--layers",
    "1,2",
    "--max-tokens",
    "3000",
)
RECIPE = ("reproduce", "brown2023-activations", "--scale", "smoke", "--out", "repro")
PROFILE = ("profile", "nano-pythia-64", "--stimuli", "s.csv", "--resamples", "4", "--out", "prof/p")
STITCHABLE = ("compare", "nano-gelu-3l", "nano-solu-3l", *COMPARE[3:])
REPORT = ("report", "rundir")
TARGETS = (
    Target(
        "a run directory",
        "rundir",
        make=(COMPARE,),
        follows=(Follow(EXPLAIN, says=True), Follow(COMPARE, restores="rundir"), Follow(EXPLAIN, says=True)),
        trials=80,
    ),
    Target(
        "a drawn run",
        "rundir",
        (COMPARE, REPORT),
        (Follow(REPORT, restores="rundir"),),
        trials=6,
        without="activations.zarr",
    ),
    Target(
        "a store",
        "x.zarr",
        make=(EXTRACT,),
        follows=(
            Follow(("-c", OPEN_STORE), says=True),
            Follow(EXTRACT, restores="x.zarr"),
            Follow(("-c", OPEN_STORE), says=True),
        ),
        trials=32,
    ),
    Target("a profile", "prof", (PROFILE,), (Follow(("-c", LOAD_PROFILE), says=True),), trials=24),
    Target(
        "a stitching",
        "rundir/stitching",
        make=(STITCHABLE, (*STITCH, "--run", "rundir")),
        follows=(Follow((*STITCH, "--run", "rundir"), restores="rundir/stitching"),),
        trials=8,
    ),
    Target(
        "steps of a recipe", "repro/steps", (RECIPE,), (Follow(RECIPE, restores="repro/steps"),), trials=10
    ),
)


def plan_damages(rng: random.Random, folder: Path, without: str) -> tuple[Damage, Path]:
    """A file below `folder` that we read back, and what to do to it."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix in READ_BACK]
    files = [path for path in files if not without or without not in str(path)]
    kinds: dict[str, list[Path]] = {}
    for path in files:  # so that the many chunks do not crowd out the one manifest
        kinds.setdefault(path.suffix if path.suffix else f"chunk of {path.parent.parent.name}", []).append(
            path
        )
    kind = rng.choice(sorted(kinds))
    path = rng.choice(kinds[kind])
    suited = {**DAMAGES, **(JSON_DAMAGES if path.suffix == ".json" else {})}
    name = rng.choice(sorted(JSON_DAMAGES if path.suffix == ".json" and rng.random() < 0.7 else suited))
    return suited[name], path


def _zeroed(path: Path, rng: random.Random) -> str:
    data = bytearray(path.read_bytes())
    start = rng.randrange(max(1, len(data) - 64))
    count = min(64, len(data) - start)
    data[start : start + count] = bytes(count)
    path.write_bytes(bytes(data))
    return f"{count} bytes at {start} zeroed"


def _flipped(path: Path, rng: random.Random) -> str:
    data = bytearray(path.read_bytes())
    place, bit = rng.randrange(len(data)), rng.randrange(8)
    data[place] ^= 1 << bit
    path.write_bytes(bytes(data))
    return f"bit {bit} of byte {place} flipped"


def _cut(path: Path, rng: random.Random) -> str:
    data = path.read_bytes()
    length = rng.randrange(len(data))
    path.write_bytes(data[:length])
    return f"cut to {length} of {len(data)} bytes"


def _emptied(path: Path, rng: random.Random) -> str:
    path.write_bytes(b"")
    return "emptied"


def _deleted(path: Path, rng: random.Random) -> str:
    path.unlink()
    return "deleted"


def _padded(path: Path, rng: random.Random) -> str:
    path.write_bytes(path.read_bytes() + rng.randbytes(rng.randint(1, 200)))
    return "padded"


def _random(path: Path, rng: random.Random) -> str:
    path.write_bytes(rng.randbytes(path.stat().st_size))
    return "random bytes"


def _swapped(path: Path, rng: random.Random) -> str:
    """With another file of the same name or ending somewhere in the same run."""
    root = path.parents[len(path.parents) - 1]
    base = next((parent for parent in path.parents if (parent / "s.csv").exists()), root)
    likely = [other for other in sorted(base.rglob("*")) if other.is_file() and other != path]
    others = [other for other in likely if other.name == path.name] or [
        o for o in likely if o.suffix == path.suffix
    ]
    others = [other for other in others if other.read_bytes() != path.read_bytes()]
    if not others:
        return _flipped(path, rng)
    other = rng.choice(others)
    mine, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(mine)
    return f"swapped with {other.relative_to(base)}"


def _folder_in_its_place(path: Path, rng: random.Random) -> str:
    path.unlink()
    path.mkdir()
    return "a folder in its place"


DAMAGES: dict[str, Damage] = {
    "zeroed": _zeroed,
    "flipped": _flipped,
    "cut": _cut,
    "emptied": _emptied,
    "deleted": _deleted,
    "padded": _padded,
    "random": _random,
    "swapped": _swapped,
    "folder": _folder_in_its_place,
}


def _digit(path: Path, rng: random.Random) -> str:
    text = path.read_text(encoding="utf-8")
    places = [found.start() for found in re.finditer(r"\d", text)]
    if not places:
        return _flipped(path, rng)
    place = rng.choice(places)
    other = str((int(text[place]) + rng.randint(1, 9)) % 10)
    path.write_text(text[:place] + other + text[place + 1 :], encoding="utf-8")
    return f"digit {text[place]} at {place} now {other} (…{text[max(0, place - 20) : place + 5]!r}…)"


def _edited(change: Callable[[Any, random.Random], str | None]) -> Damage:
    def damage(path: Path, rng: random.Random) -> str:
        about = json.loads(path.read_text(encoding="utf-8"))
        told = change(about, rng)
        if told is None:
            return _digit(path, rng)
        path.write_text(json.dumps(about, indent=1, ensure_ascii=False), encoding="utf-8")
        return told

    return damage


def _nodes(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    yield place, value
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from _nodes(inner, f"{place}/{key}")


def _key_removed(about: Any, rng: random.Random) -> str | None:
    objects = [(place, node) for place, node in _nodes(about) if isinstance(node, dict) and node]
    if not objects:
        return None
    place, node = rng.choice(objects[:8])
    key = rng.choice(sorted(node))
    del node[key]
    return f"{place}/{key} removed"


def _list_changed(about: Any, rng: random.Random) -> str | None:
    lists = [(place, node) for place, node in _nodes(about) if isinstance(node, list) and len(node) > 1]
    lists = [(place, node) for place, node in lists if node != node[::-1]]
    if not lists:
        return None
    place, node = rng.choice(lists)
    if rng.random() < 0.6:
        node.reverse()
        return f"{place} reversed"
    node.pop()
    return f"{place} without its last"


def _value_replaced(about: Any, rng: random.Random) -> str | None:
    objects = [(place, node) for place, node in _nodes(about) if isinstance(node, dict) and node]
    if not objects:
        return None
    place, node = rng.choice(objects[:8])
    key = rng.choice(sorted(node))
    value = rng.choice([None, "zzz", -1, [], {}, 1e300, True])
    if node[key] == value:
        return None
    node[key] = value
    return f"{place}/{key} now {value!r}"


def _not_an_object(path: Path, rng: random.Random) -> str:
    content = rng.choice(["null", "[]", "3", '"x"', "{}", "{", "[" * 50_000])
    path.write_text(content)
    return f"now {content[:5]}"


JSON_DAMAGES: dict[str, Damage] = {
    "digit": _digit,
    "key": _edited(_key_removed),
    "list": _edited(_list_changed),
    "value": _edited(_value_replaced),
    "no object": _not_an_object,
}


@dataclass
class Whole:
    """A target as it was made, with what its commands say and leave."""

    folder: Path
    said: list[str]
    left: list[dict[str, object]]


def make_whole(shell: Shell, folder: Path, target: Target) -> Whole:
    """Make the target, then run every follow-up on a copy."""
    made = folder / "made"
    prepare(made)
    for arguments in target.make:
        finish(shell, arguments, made)
    copy = folder / "copy"
    shutil.copytree(made, copy)
    said, left = [], []
    for follow in target.follows:
        said.append(finish(shell, follow.arguments, copy).out)
        left.append(snapshot(copy / follow.restores) if follow.restores else {})
    return Whole(made, said, left)


def try_damage(shell: Shell, folder: Path, target: Target, whole: Whole, seed: int, number: int) -> Case:
    """Damage one file, run every command that may read it, and judge the worst that came of it."""
    rng = random.Random(f"{seed} {target.name} {number}")
    place = fresh(folder, f"{target.name}-{number}")
    place.rmdir()
    shutil.copytree(whole.folder, place)
    damage, path = plan_damages(rng, place / target.folder, target.without)
    shown_path = str(path.relative_to(place))
    name = f"{target.name} {number}: {shown_path} {damage(path, rng)}"
    names = _names_of(Path(shown_path))
    worst = Case(name, "right")
    for follow, said, left in zip(target.follows, whole.said, whole.left, strict=True):
        done = shell.run(follow.arguments, place)
        case = _judge(name, done, follow, said, left, place, names)
        if case.verdict == "bad":
            return case
        if case.verdict == "clear" and worst.verdict == "right":
            worst = case
    return worst


def _names_of(path: Path) -> list[str]:
    """The file, or any folder of ours that holds it."""
    return [str(path), *(f"{parent}" for parent in path.parents if str(parent) != ".")]


def _judge(
    name: str, done: Done, follow: Follow, said: str, left: dict[str, object], place: Path, names: list[str]
) -> Case:
    if error_line(done) is not None:
        return refused(name, done, names=names)
    if done.code:
        return Case(name, "bad", f"{follow.arguments[0]}: {complaint(done)}", shown(done))
    if follow.says and done.out != said:
        return Case(name, "bad", f"{follow.arguments[0]} says other things than before", shown(done))
    if follow.restores:
        other = differences(left, snapshot(place / follow.restores), ignore=_for_people)
        if other:
            return Case(
                name,
                "bad",
                f"{follow.arguments[0]} succeeds, but other than before: {other[:5]}",
                shown(done),
            )
    return Case(name, "right", "", shown(done))


def _for_people(name: str) -> bool:
    return Path(name).suffix not in READ_BACK
