"""Rows of passages → batches for CKA: a batch per passage, or rows of several passages, mixed or in order."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np
import numpy.typing as npt

from thinkalike.streaming.sums import FEWEST_ITEMS
from thinkalike.types import Json, Matrix

if TYPE_CHECKING:
    import torch

Ints = npt.NDArray[np.int64]
MIXED = 4  # so many batches' worth of rows are gathered before they are mixed


class LayerRows(NamedTuple, Generic[Matrix]):
    """For every layer its rows (n_rows, n_units_l), and the unit of the jackknife that they belong to."""

    layers: list[Matrix]
    unit: Hashable


class PassageBatches:
    """A batch of every passage: CKA among the items of one context, as in Brown et al. 2023."""

    def __init__(self) -> None:
        self.skipped = 0

    def take(
        self, layers: Sequence[torch.Tensor], n_rows: Ints, units: Sequence[Hashable]
    ) -> Iterator[LayerRows[torch.Tensor]]:
        """Batches from the rows of some passages, `n_rows` of each."""
        ends = np.cumsum(n_rows)
        for start, end, unit in zip(ends - n_rows, ends, units, strict=True):
            if end - start < FEWEST_ITEMS:
                self.skipped += 1
                continue
            yield LayerRows([X[start:end] for X in layers], unit)

    def rest(self) -> Iterator[LayerRows[torch.Tensor]]:
        """What is left at the end."""
        return iter(())

    @property
    def is_empty(self) -> bool:
        """Whether all rows that were taken are in batches."""
        return True

    def state(self) -> Json:
        return {"skipped": self.skipped}

    def restore(self, state: dict[str, Any]) -> None:
        self.skipped = state["skipped"]


class MixedBatches:
    """Batches of rows from several passages, drawn in one seeded order for all layers of all models.

    With `mixed=False` rows keep their order, so a batch holds neighbours, as in Brown et al. 2023 for BERT.
    A pool of passages is a unit of its own: no two pools share a row.
    """

    def __init__(self, batch_size: int, *, mixed: bool = True, seed: int = 0) -> None:
        self.batch_size, self.mixed, self.rng = batch_size, mixed, np.random.default_rng(seed)
        self.skipped = self.n_pools = 0
        self._pool: list[Sequence[torch.Tensor]] = []
        self._n_rows = 0

    def take(
        self, layers: Sequence[torch.Tensor], n_rows: Ints, units: Sequence[Hashable]
    ) -> Iterator[LayerRows[torch.Tensor]]:
        """Batches once enough passages have come."""
        self._pool.append(list(layers))
        self._n_rows += int(n_rows.sum())
        if self._n_rows >= MIXED * self.batch_size:
            yield from self._dealt(self._n_rows // self.batch_size)

    def rest(self) -> Iterator[LayerRows[torch.Tensor]]:
        """The last pool; left out if it is less than half a batch and others have come."""
        if self._n_rows >= self.batch_size / 2 or (not self.n_pools and self._n_rows >= FEWEST_ITEMS):
            yield from self._dealt(max(1, self._n_rows // self.batch_size))

    @property
    def is_empty(self) -> bool:
        """Whether all rows that were taken are in batches."""
        return not self._pool

    def state(self) -> Json:
        return {"n_pools": self.n_pools, "rng": self.rng.bit_generator.state}

    def restore(self, state: dict[str, Any]) -> None:
        self.n_pools, self.rng.bit_generator.state = state["n_pools"], state["rng"]

    def _dealt(self, n_batches: int) -> Iterator[LayerRows[torch.Tensor]]:
        import torch

        layers = [torch.cat(parts) for parts in zip(*self._pool, strict=True)]
        order = self.rng.permutation(self._n_rows) if self.mixed else np.arange(self._n_rows)
        unit = f"pool {self.n_pools}"
        self._pool, self._n_rows = [], 0
        self.n_pools += 1
        for rows in np.array_split(order, n_batches):
            yield LayerRows([X[rows] for X in layers], unit)
