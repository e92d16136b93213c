"""What a user may give where activations or stimuli are wanted: arrays, mappings of layers, tables, files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

import pandas as pd

from thinkalike.activations.store import Activations
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.stimuli.table import Stimuli
from thinkalike.systems.names import is_array_file, name_of
from thinkalike.types import Facts, Value
from thinkalike.wording import listed


def as_activations(system: object, name: str) -> Value:
    """Arrays as activations called `name` (one layer, or a mapping of layers); all else as it is."""
    if isinstance(system, Activations):
        return system
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


def is_model(given: object) -> bool:
    """Whether it has yet to read the stimuli: no activations, no arrays, no file of them."""
    is_arrays = isinstance(given, (Activations, Mapping)) or hasattr(given, "shape")
    return not is_arrays and not is_array_file(given)


def check_extraction(extraction: Facts | None, systems: Iterable[object]) -> None:
    """Options for reading models are options of `extract`, and stand only where there is a model."""
    from thinkalike.activations.extraction import OPTIONS

    for name in extraction or ():
        if name not in OPTIONS:
            raise UnknownName.among("option of extract", name, OPTIONS)
    if extraction and not any(map(is_model, systems)):
        raise InvalidInput(
            f"Got {listed(list(extraction))} for reading models, and all systems are arrays: leave that out."
        )


def open_activations(system: object, name: str) -> Any:
    """Arrays and their files as activations called `name`, results by that name; all else as it is."""
    if is_array_file(system):
        return replace(Activations.open(str(system)), system=name)
    given: Any = as_activations(system, name)
    is_named = is_dataclass(given) and not isinstance(given, type) and hasattr(given, "system")
    return replace(given, system=name) if is_named and given.system != name else given


def activations_of(
    given: object,
    stimuli: Stimuli,
    extraction: Mapping[str, Any],
    name: str,
) -> Activations:
    """A model's answers to the stimuli, or those that were given."""
    if isinstance(given, Activations):
        given.check_stimuli(stimuli)
        return given
    if not is_model(given):
        found: Activations = open_activations(given, name)
        found.check_stimuli(stimuli)
        return found
    from thinkalike.activations.extraction import extract

    if not isinstance(given, (str, os.PathLike)):
        raise InvalidInput(f"{name} is {type(given).__name__}: give a model by name, activations or arrays.")
    model = os.fspath(given)
    return extract(model, stimuli, system=name_of(model), **extraction)


def named_systems(systems: Sequence[object] | Mapping[str, object]) -> dict[str, object]:
    """Systems by name: that of a mapping, their own, or that of the path."""
    if isinstance(systems, Mapping) and not isinstance(systems, Activations):
        return {str(name): system for name, system in systems.items()}
    if isinstance(systems, (str, os.PathLike, Activations)) or hasattr(systems, "shape"):
        systems = [systems]
    named: dict[str, object] = {}
    for place, system in enumerate(systems, start=1):
        if isinstance(system, (str, os.PathLike)):
            name = name_of(str(system))
        else:
            name = getattr(system, "system", f"array {place}")
        if name in named:
            raise InvalidInput(
                f"{name} comes twice: give the systems names of their own, as in {{'first': …, 'second': …}}."
            )
        named[name] = system
    return named
