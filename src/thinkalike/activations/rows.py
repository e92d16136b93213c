"""Whose row is whose: the ids of two sides must agree wherever both name their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thinkalike.errors import InvalidInput

if TYPE_CHECKING:
    from thinkalike.activations.store import Activations


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
