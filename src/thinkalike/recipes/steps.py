"""Results of expensive steps, kept in the folder of a recipe: an interrupted run goes on where it stopped.

A step is kept under its name and a digest of all that its result depends on, so a run with other settings
never takes an old result for its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thinkalike.addresses import is_local
from thinkalike.errors import DamagedFile
from thinkalike.files import file_name, plain, read_arrays, read_json, write_arrays, write_json
from thinkalike.machine import local_cache_directory
from thinkalike.provenance import digest_of

FOLDER = "steps"
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Steps:
    """The kept steps of one folder: `steps.json("loss", about, compute)`."""

    out: Path

    def path(self, name: str, about: Mapping[str, object]) -> Path:
        """Where a step is kept; also for steps that keep a folder of their own, such as a comparison."""
        return self.out / FOLDER / f"{file_name(name)}-{digest_of(plain(about))[:16]}"

    @property
    def models(self) -> Path:
        """Where steps keep models: they are read from folders of this machine, also if `out` is none."""
        return self.out / FOLDER if is_local(self.out) else Path(local_cache_directory()) / "recipes"

    def model_path(self, name: str, about: Mapping[str, object]) -> Path:
        """The folder of a model that a step makes."""
        return self.models / self.path(name, about).name

    def json(self, name: str, about: Mapping[str, object], compute: Callable[[], object]) -> Any:
        """Plain values: what is kept, or else what `compute` gives, with NaN as None."""
        path = _with_ending(self.path(name, about), ".json")
        try:
            return read_json(path)["result"]
        except DamagedFile:  # or not computed yet
            result = plain(compute())
        write_json({"step": name, "about": about, "result": result}, path)
        return result

    def arrays(self, name: str, about: Mapping[str, object], compute: Callable[[], Arrays]) -> Arrays:
        """Arrays by name: what is kept, or else what `compute` gives."""
        path = _with_ending(self.path(name, about), ".npz")
        try:
            return read_arrays(path)[0]
        except DamagedFile:
            result = {key: np.asarray(value) for key, value in compute().items()}
        write_arrays(result, path, about={"step": name, "about": about})
        return result


def content_digest(text: Path) -> str:
    """Of a text file, or of all those of a folder: what a step depends on that reads it, wherever it lies."""
    if not text.is_dir():
        return hashlib.sha256(text.read_bytes()).hexdigest()
    paths = sorted(text.rglob("*.txt"))
    return digest_of({path.relative_to(text).as_posix(): content_digest(path) for path in paths})


def _with_ending(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
