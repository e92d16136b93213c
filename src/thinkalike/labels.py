"""The rows of every matrix: a layer of a system, named `system:layer`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput, UnknownName

Layer = int | str
Row = tuple[str, Layer]
Floats = npt.NDArray[np.float64]


def row_name(row: Row) -> str:
    """`("bert", 4)` as people write it: `bert:4`."""
    return f"{row[0]}:{row[1]}"


def block_of(layer: Layer) -> str:
    """The block that a part is of, `4` for head `4.h7`; of any other layer its own name."""
    block, dot, part = str(layer).partition(".")
    return block if dot and block.isdigit() and part[:1].isalpha() else str(layer)


PARTS = {"h": "heads", "e": "experts", "l": "latents"}
"""By the mark in their names, `4.h7`"""


def part_name(layers: Iterable[Layer]) -> str:
    """What one calls such layers: `heads`; `layers` if they are whole, or not all of one kind."""
    marks = {"" if block_of(layer) == str(layer) else str(layer).partition(".")[2][0] for layer in layers}
    return PARTS.get(marks.pop(), "layers") if len(marks) == 1 else "layers"


def has_parts(layers: Iterable[Layer]) -> bool:
    """Whether some of the layers are parts of blocks, such as heads: those of a block have no order."""
    return any(block_of(layer) != str(layer) for layer in layers)


def systems_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """The systems in the order in which they first appear."""
    return tuple(dict.fromkeys(system for system, _ in rows))


def span_of(rows: Sequence[Row], system: str) -> slice:
    """Where a system's layers stand; they are contiguous."""
    places = [k for k, row in enumerate(rows) if row[0] == system]
    if not places:
        raise UnknownName.among("system", system, systems_of(rows))
    return slice(places[0], places[-1] + 1)


def find_row(rows: Sequence[Row], system: str, layer: Layer | str) -> int:
    """The place of `system`'s `layer`; layers may be written as text, as on the command line."""
    span = span_of(rows, system)
    layers = [layer for _, layer in rows[span]]
    return span.start + find_layer(system, layers, layer)


def find_layer(system: str, layers: Sequence[Layer], layer: Layer | str) -> int:
    """The place of `layer` among the `layers` of a system."""
    for place, label in enumerate(layers):
        if label == layer or str(label) == str(layer):
            return place
    raise UnknownName.among("layer", layer, layers, where=system)


def parse_row(text: str) -> tuple[str, str]:
    """`bert-base-uncased:4` → `("bert-base-uncased", "4")`: the layer stands after the last colon."""
    system, colon, layer = text.rpartition(":")
    if not (colon and system and layer):
        raise InvalidInput(f"{text!r} names no layer: write SYSTEM:LAYER, for example bert-base-uncased:4.")
    return system, layer
