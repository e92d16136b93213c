"""Running a model over a source, chunk by chunk, into a store or into memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from thinkalike.activations.store import Array, Layer
from thinkalike.errors import ModelError
from thinkalike.progress import progress
from thinkalike.systems.calling import evaluating, read_layers
from thinkalike.systems.carried_states import read_carried_states
from thinkalike.systems.passes import RowSource, n_chunks
from thinkalike.systems.sites import find_site
from thinkalike.systems.stack import Stack


class ChunkTarget(Protocol):
    """What takes the rows of a chunk."""

    def is_done(self, chunk: int) -> bool: ...

    def write(self, chunk: int, rows: Mapping[Layer, Array]) -> None: ...


def run(
    stack: Stack,
    source: RowSource,
    open_target: Callable[[Sequence[int]], ChunkTarget],
    *,
    labels: Sequence[Layer],
    site: str,
    system: str,
    done: frozenset[int] = frozenset(),
) -> None:
    """Compute every chunk that is not `done` and hand it to the target.

    The target is opened with the widths of the layers, which the first answer tells.
    """
    target: ChunkTarget | None = None
    with (
        evaluating(stack.model),
        progress(f"extracting {system}", len(source.order)) as step,
    ):
        for chunk in range(n_chunks(source)):
            if chunk not in done and not (target is not None and target.is_done(chunk)):
                rows = answers(stack, source, chunk, labels=labels, site=site)
                if target is None:
                    target = open_target([rows[label].shape[1] for label in labels])
                target.write(chunk, rows)
            step.advance(_n_rows(source, chunk))


def answers(
    stack: Stack, source: RowSource, chunk: int, *, labels: Sequence[Layer], site: str
) -> dict[Layer, Array]:
    """What every layer answers to the rows of a chunk, (n_rows, n_units) each."""
    import torch

    found: dict[Layer, Array] = {}
    n_rows = _n_rows(source, chunk)
    groups = source.groups(chunk)
    while groups:
        group = groups.pop(0)
        one = source.prepare(chunk, group)
        try:
            if find_site(site).reads == "state" and one.reading is not None:
                read = read_carried_states(stack, one.reading, labels=labels)
            else:
                read = read_layers(stack, one.inputs, one.keep, labels=labels, site=site)
        except torch.OutOfMemoryError as error:
            if len(group) == 1:
                raise ModelError(
                    "The memory does not hold the model and one input: use dtype='bfloat16', "
                    "device_map='auto' or device='cpu'."
                ) from error
            groups = [*np.array_split(group, 2), *groups]
            continue
        for layer, states in read.items():
            rows = states.cpu().numpy()
            if len(rows) == n_rows:  # the usual case, one pass: nothing to put together
                found[layer] = rows
            else:
                found.setdefault(layer, np.empty((n_rows, rows.shape[1]), np.float32))[one.places] = rows
    return found


def _n_rows(source: RowSource, chunk: int) -> int:
    return min(source.chunk_rows, len(source.order) - chunk * source.chunk_rows)
