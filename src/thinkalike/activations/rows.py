"""Whose row is whose: the ids of two sides must agree wherever both name their rows; rows that all have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput

if TYPE_CHECKING:
    from thinkalike.activations.store import Activations
    from thinkalike.labels import Layer
    from thinkalike.stimuli.table import Stimuli


def first_difference(ours: Sequence[str], theirs: Sequence[str]) -> int | None:
    """The first row with two different ids; None if there is none, or if one side only counts its rows.

    Two sides with the same ids in different orders name them both, also if the ids are numbers.
    """
    if (counted(ours) or counted(theirs)) and set(ours) != set(theirs):
        return None
    return next((k for k, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b), None)


def counted(ids: Sequence[str]) -> bool:
    """Whether the ids are those of arrays without any: 0, 1, …"""
    return all(name == str(k) for k, name in enumerate(ids))


def check_same_items(systems: Sequence[Activations]) -> None:
    """Refuse activations that answer different stimuli, or the same in another order."""
    first = systems[0]
    for other in systems[1:]:
        pair = f"{first.system} and {other.system}"
        if first.n_items != other.n_items:
            raise InvalidInput(
                f"{pair} were shown different stimuli ({first.n_items} items and {other.n_items} items): "
                "extract both on the same stimuli."
            )
        row = first_difference(first.item_names, other.item_names)
        if row is not None:
            same = set(first.item_names) == set(other.item_names)
            way_out = "sort the rows of both alike" if same else "extract both on the same stimuli"
            raise InvalidInput(
                f"{pair} do not have the same items in the same order: row {row} is "
                f"{first.item_names[row]!r} in the first and {other.item_names[row]!r} in the second: "
                f"{way_out}."
            )
        if len({first.stimuli_digest, other.stimuli_digest} - {None}) > 1:
            raise InvalidInput(
                f"{pair} were shown different stimuli (digests {str(first.stimuli_digest)[:12]} and "
                f"{str(other.stimuli_digest)[:12]}): extract both on the same stimuli."
            )


def shared_items(stimuli: Stimuli, found: Sequence[Activations]) -> npt.NDArray[np.bool_] | None:
    """Which items every system has, where one lacks some (dropped first tokens); None if all have all."""
    if all(one.n_items == len(stimuli) for one in found):
        return None
    return np.logical_and.reduce([stimuli.items.index.isin(one.item_names) for one in found])


def subset_activations(
    one: Activations, stimuli: Stimuli, layers: Sequence[Layer] | None = None
) -> Activations:
    """The rows of `stimuli`, which are some of the items that the activations have, in memory.

    Parameters
    ----------
    layers : only these.
    """
    place = {item: k for k, item in enumerate(one.item_names)}
    rows = np.array([place[item] for item in stimuli.items.index])
    arrays = {layer: one[layer][rows] for layer in (one.layers if layers is None else layers)}
    return type(one).from_arrays(arrays, system=one.system, stimuli=stimuli, metadata=one.metadata)
