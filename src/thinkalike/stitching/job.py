"""What is stitched to what, and the passes that all stitches share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.stitching.examples import Batch, Examples
from thinkalike.stitching.model import bottom_states
from thinkalike.stitching.systems import System

if TYPE_CHECKING:
    from torch import Tensor

Role = Literal["pair", "self", "untrained"]
Layers = str | int | Sequence[int] | Sequence[tuple[int, int]]
LAYERS = ("all", "grid")


class Stitch(NamedTuple):
    """One stitched model: the bottom of which system, up to which layer, to the top after which layer.

    The role "pair" is what was asked for; "self" (the top's own bottom) is the floor, and "untrained" (the
    bottom's architecture with random weights) the ceiling of its penalty.
    """

    role: Role
    layer_bottom: int
    layer_top: int


@dataclass(frozen=True, eq=False)
class Job:
    """Bottoms by role, the one top, and all stitches between them."""

    bottoms: Mapping[Role, System]
    top: System
    stitches: tuple[Stitch, ...]

    @property
    def models(self) -> list[Any]:
        return [system.model for system in (*self.bottoms.values(), self.top)]

    @property
    def device(self) -> Any:
        return next(self.top.model.parameters()).device

    def layers(self, role: Role, among: Sequence[Stitch] | None = None) -> set[int]:
        """The layers of a bottom that the stitches need."""
        stitches = self.stitches if among is None else among
        return {stitch.layer_bottom for stitch in stitches if stitch.role == role}

    @property
    def top_layers(self) -> set[int]:
        return {stitch.layer_top for stitch in self.stitches}

    def states(
        self,
        batch: Batch,
        *,
        among: Sequence[Stitch] | None = None,
        known: Mapping[int, Tensor] | None = None,
    ) -> dict[tuple[Role, int], Tensor]:
        """What the bottoms answer: one pass each, whatever the number of stitches, and no block too many.

        `known` are layers of the top that a pass has given already; its own bottom then needs none.
        """
        found: dict[tuple[Role, int], Tensor] = {}
        for role, system in self.bottoms.items():
            layers = self.layers(role, among)
            if not layers:
                continue
            if system is self.top and known is not None:
                states = {layer: known[layer] for layer in layers}
            else:
                states = bottom_states(system.stack, layers, batch.inputs)
            found |= {(role, layer): tensor for layer, tensor in states.items()}
        return found

    def batches(self, examples: Examples, tokens_at_once: int) -> Iterator[Batch]:
        """All examples in their order."""
        for rows in chunks(len(examples), rows_at_once(examples, tokens_at_once)):
            yield examples.batch(rows, device=self.device)


def rows_at_once(examples: Examples, tokens_at_once: int) -> int:
    return max(1, tokens_at_once // examples.ids.shape[1])


def chunks(n: int, size: int) -> Iterator[list[int]]:
    for first in range(0, n, size):
        yield list(range(first, min(first + size, n)))


def n_batches(examples: Examples, tokens_at_once: int) -> int:
    return -(-len(examples) // rows_at_once(examples, tokens_at_once))


def chosen_pairs(layers: Layers, bottom: System, top: System) -> list[tuple[int, int]]:
    """(layer of the bottom, layer of the top) of every stitch that was asked for.

    "all" pairs every layer of the bottom with that of the top at the same relative depth, "grid" with every
    layer of the top; numbers stand for the same layer of both.
    """
    n_bottom, n_top = bottom.stack.n_blocks, top.stack.n_blocks
    pairs: list[tuple[int, int]]
    if layers == "all":
        pairs = [(k, round(k * n_top / n_bottom)) for k in range(n_bottom + 1)]
    elif layers == "grid":
        pairs = [(k, m) for k in range(n_bottom + 1) for m in range(n_top + 1)]
    elif isinstance(layers, str):
        raise UnknownName.among("choice of layers", layers, LAYERS)
    else:
        listed: list[Any] = [layers] if isinstance(layers, (int, np.integer)) else list(layers)
        pairs = [(int(one), int(one)) if np.ndim(one) == 0 else (int(one[0]), int(one[1])) for one in listed]
    if not pairs:
        raise InvalidInput("There are no layers to stitch: give at least one.")
    for pair in pairs:
        for layer, system in zip(pair, (bottom, top), strict=True):
            if not 0 <= layer <= system.stack.n_blocks:
                raise InvalidInput(
                    f"{system.name} has the layers 0 to {system.stack.n_blocks}; {layer} was asked for."
                )
    return list(dict.fromkeys(pairs))


def all_stitches(pairs: Sequence[tuple[int, int]], *, floor: bool, ceiling: bool) -> tuple[Stitch, ...]:
    """The pairs, the top's own bottom at each of its layers, and the untrained bottom at each pair."""
    stitches = [Stitch("pair", *pair) for pair in pairs]
    if floor:
        stitches += [Stitch("self", m, m) for m in dict.fromkeys(m for _, m in pairs)]
    if ceiling:
        stitches += [Stitch("untrained", *pair) for pair in pairs]
    return tuple(stitches)
