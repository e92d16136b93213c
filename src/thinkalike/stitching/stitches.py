"""Which layers of the bottom are stitched to which of the top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from thinkalike.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from thinkalike.systems.system import System

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


def _numbers(layers: int | tuple[int, int]) -> tuple[int, int]:
    """Of bottom and top; one number stands for both."""
    bottom, top = (layers, layers) if isinstance(layers, (str, int, np.integer)) else layers
    return _number(bottom), _number(top)


def _number(layer: str | int) -> int:
    """A layer of the residual stream; its parts and other sites cannot stand in for it."""
    if isinstance(layer, str) and not layer.isdigit():
        raise InvalidInput(
            f"Layer {layer!r} cannot be stitched: a model goes on from the whole residual stream, layers 0 "
            "to L, not from a head, an expert, a state or a latent. Compare those with ta.similarity."
        )
    return int(layer)


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
        listed = [layers] if isinstance(layers, (int, np.integer)) else layers
        pairs = [_numbers(one) for one in listed]
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
