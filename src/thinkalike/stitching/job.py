"""The models of one call, and the passes that all their stitches share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from thinkalike.stitching.examples import Examples, TargetBatch
from thinkalike.stitching.stitches import Role, Stitch
from thinkalike.systems.calling import bottom_states
from thinkalike.systems.heads import Task
from thinkalike.systems.system import System

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Job:
    """Bottoms by role, the one top, and all stitches between them."""

    bottoms: Mapping[Role, System]
    top: System
    stitches: tuple[Stitch, ...]

    @property
    def models(self) -> list[nn.Module]:
        return [system.model for system in (*self.bottoms.values(), self.top)]

    @property
    def task(self) -> Task:
        assert self.top.task is not None  # it was opened with its output layer
        return self.top.task

    @property
    def device(self) -> torch.device:
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
        batch: TargetBatch,
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
                states = bottom_states(system.stack, layers, batch.tokens)
            found |= {(role, layer): tensor for layer, tensor in states.items()}
        return found

    def batches(self, examples: Examples, tokens_at_once: int) -> Iterator[TargetBatch]:
        """All examples in their order."""
        for rows in chunks(len(examples), rows_at_once(examples, tokens_at_once)):
            yield examples.batch(rows, device=self.device)


def rows_at_once(examples: Examples, tokens_at_once: int) -> int:
    return max(1, tokens_at_once // examples.tokens.width)


def chunks(n: int, size: int) -> Iterator[list[int]]:
    for first in range(0, n, size):
        yield list(range(first, min(first + size, n)))


def n_batches(examples: Examples, tokens_at_once: int) -> int:
    return -(-len(examples) // rows_at_once(examples, tokens_at_once))
