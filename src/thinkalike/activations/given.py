"""What a user may give where activations or stimuli are wanted: arrays, mappings of layers, tables, files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from thinkalike.activations.store import Activations
from thinkalike.stimuli.table import Stimuli

ARRAY_FILES = (".npy", ".npz", ".zarr")


def as_given(system: Any, name: str) -> Any:
    """Arrays as activations called `name` (one layer, or a mapping of layers); all else as it is."""
    if isinstance(system, Mapping):
        return Activations.from_arrays(system, system=name)
    if isinstance(system, pd.DataFrame):
        return Activations.from_arrays({name: system}, system=name, items=[str(k) for k in system.index])
    if hasattr(system, "shape"):  # NumPy, torch
        return Activations.from_arrays({name: system}, system=name)
    return system


def as_stimuli(given: Stimuli | pd.DataFrame) -> Stimuli:
    """A table of features as stimuli; an index that names its rows names the items."""
    if not isinstance(given, pd.DataFrame):
        return given
    named = "item" not in given and not isinstance(given.index, pd.RangeIndex)
    return Stimuli.from_table(given.rename_axis("item").reset_index() if named else given)


def is_array_file(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of arrays rather than of a model."""
    return Path(path).suffix in ARRAY_FILES and Path(path).exists()
