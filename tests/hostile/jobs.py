"""The writing commands at a size of seconds, and what an undisturbed run of each leaves behind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from tests.hostile.shell import ROOT, Done, Shell

SAMPLE = next(ROOT.glob("src/thinkalike/**/sample.txt"))
MODELS = ("nano-pythia-64", "nano-gelu-3l")
COMPARE = ("compare", *MODELS, "--stimuli", "s.csv", "--resamples", "4", "--no-report", "--out", "rundir")
EXPLAIN = ("explain", "rundir", "nano-pythia-64:1", "nano-gelu-3l:2")
STITCH = ("stitch", "nano-gelu-3l", "nano-solu-3l", "--text", "t.txt", "--layers", "1,2")
VOLATILE = {"processor_seconds", "seconds", "created", "time", "host", "pid", "seal"}
"""Keys of our JSON files that hold how long something took or when, and the digest over these too"""


@dataclass(frozen=True)
class Job:
    """A command that writes below its folder; `first` prepares what it needs, and is not disturbed."""

    name: str
    arguments: tuple[str, ...]
    first: tuple[tuple[str, ...], ...] = ()
    limit: int = 60
    kills: int = 6
    pages: tuple[str, ...] = ()
    """Files that say how long the work took"""

    def is_page(self, name: str) -> bool:
        return name in self.pages


STIMULI = ("stimuli", "-n", "40", "--balance", "--out", "out/x.parquet", "--figure", "out/x.svg")
EXTRACT = ("extract", MODELS[0], "--stimuli", "s.csv", "--batch-size", "4", "--out", "out/x.zarr")
PROFILE = ("profile", MODELS[0], "--stimuli", "s.csv", "--resamples", "4", "--out", "out/p")
CKA = ("cka", *MODELS, "--text", "t.txt", "--length", "64", "--max-batches", "24", "--out", "out")
TASK = (
    *STITCH[:-1],
    "1",
    "--max-tokens",
    "4000",
    "--fit",
    "task",
    "--steps",
    "220",
    "--batch-tokens",
    "64",
    "--no-ceiling",
)
OUTPUTS = ("outputs", *STITCH[1:5], "--length", "64", "--max-passages", "24", "--out", "out")
GROUP = ("group", MODELS[0], "--subjects", "people.npy", "--stimuli", "s.csv", "--out", "out")
RECIPE = ("reproduce", "brown2023-activations", "--scale", "smoke", "--out", "out")
JOBS = (
    Job("stimuli", STIMULI, kills=5),
    Job("extract", EXTRACT, kills=9),
    Job("profile", PROFILE, kills=7),
    Job("compare", (*COMPARE[:-1], "out"), kills=10),
    Job("cka", CKA, kills=7),
    Job("stitch", (*STITCH, "--max-tokens", "4000", "--out", "out"), kills=7),
    Job("stitch --fit task", (*TASK, "--out", "out"), kills=10),
    Job("outputs", OUTPUTS, kills=6),
    Job("group", GROUP, kills=6),
    Job("reproduce", RECIPE, kills=5, pages=("index.html", "spent.json")),
    Job("report", ("report", "out"), first=((*COMPARE[:-1], "out"),), kills=3),
)


@dataclass
class Baseline:
    """What an undisturbed run left and said."""

    done: Done
    files: Mapping[str, object] = field(repr=False)


def prepare(folder: Path) -> None:
    """The inputs of every job: 36 sentences, a short text, and four subjects who answer to the words."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "tests" / "hostile" / "data" / "sentences.csv", folder / "s.csv")
    text = SAMPLE.read_text(encoding="utf-8")[:24_000]
    (folder / "t.txt").write_text(text, encoding="utf-8")
    n_words = len(pd.read_csv(folder / "s.csv", comment="#"))
    np.save(folder / "people.npy", np.random.default_rng(0).normal(size=(4, n_words, 6)))


def undisturbed(shell: Shell, job: Job, folder: Path) -> Baseline:
    prepare(folder)
    for arguments in job.first:
        finish(shell, arguments, folder, limit=job.limit)
    done = shell.run(job.arguments, folder, limit=job.limit, learn=True)
    if done.code:
        raise RuntimeError(f"An undisturbed {job.name} ends with {done.code}: {done.err[-2000:]}")
    return Baseline(done, snapshot(folder / "out"))


def finish(shell: Shell, arguments: tuple[str, ...], folder: Path, *, limit: int = 60) -> Done:
    done = shell.run(arguments, folder, limit=limit)
    if done.code:
        raise RuntimeError(f"{' '.join(arguments)} ends with {done.code}: {done.err[-2000:]}")
    return done


def snapshot(folder: Path) -> dict[str, object]:
    """Every file with its bytes, but the log; JSON and pages without what the clock wrote."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "log.txt")
    return {str(path.relative_to(folder)): content(path) for path in files}


def content(path: Path) -> object:
    data = path.read_bytes()
    if path.suffix == ".json" and b'"' in data:
        try:
            return _steady(json.loads(data))
        except ValueError:
            return data
    return data


def _steady(value: object) -> object:
    if isinstance(value, dict):
        return {key: _steady(one) for key, one in value.items() if key not in VOLATILE}
    return [_steady(one) for one in value] if isinstance(value, list) else value


def differences(
    expected: Mapping[str, object],
    found: Mapping[str, object],
    *,
    ignore: Callable[[str], bool] = lambda name: False,
) -> list[str]:
    """The names of files that are missing, too many, or other than expected."""
    names = [name for name in sorted({*expected, *found}) if not ignore(name)]
    return [name for name in names if expected.get(name) != found.get(name)]
