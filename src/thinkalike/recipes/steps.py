"""Results of expensive steps, kept in the folder of a recipe: an interrupted run goes on where it stopped.

A step is kept under its name and a digest of all that its result depends on, so a run with other settings
never takes an old result for its own.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thinkalike.comparison.files import file_name, plain, write_json
from thinkalike.provenance import digest_of

FOLDER = "steps"
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Steps:
    """The kept steps of one folder: `steps.json("loss", about, compute)`."""

    out: Path

    def path(self, name: str, about: Mapping[str, Any]) -> Path:
        """Where a step is kept; also for steps that keep a folder of their own, such as a comparison."""
        return self.out / FOLDER / f"{file_name(name)}-{digest_of(plain(about))[:16]}"

    def json(self, name: str, about: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """Plain values: what is kept, or else what `compute` gives, with NaN as None."""
        path = _with_ending(self.path(name, about), ".json")
        try:
            return json.loads(path.read_text(encoding="utf-8"))["result"]
        except (OSError, ValueError, KeyError, TypeError):
            result = plain(compute())
        write_json({"step": name, "about": about, "result": result}, path)
        return result

    def arrays(self, name: str, about: Mapping[str, Any], compute: Callable[[], Arrays]) -> Arrays:
        """Arrays by name: what is kept, or else what `compute` gives."""
        path = _with_ending(self.path(name, about), ".npz")
        try:
            with np.load(path, allow_pickle=False) as kept:
                return {key: kept[key] for key in kept.files}
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            result = {key: np.asarray(value) for key, value in compute().items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with part.open("wb") as file:
                np.savez_compressed(file, **result)  # type: ignore[arg-type]
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
        return result


def _with_ending(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
