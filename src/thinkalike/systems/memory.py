"""Memory for many rows, apart from what a running model takes and gives back.

A pass through a model takes and frees the same few blocks again and again, and the C library's heap hands
them out again as they are. Large arrays taken from that heap in the middle of a pass upset this: freed blocks
then go back to the system and come anew, zeroed page by page.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch


def apart(n_bytes: int) -> npt.NDArray[np.uint8]:
    """So many zero bytes in pages of their own, given back to the system when nobody holds them."""
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    try:
        pages = mmap.mmap(-1, max(1, n_bytes), **private)
    except OSError as error:
        raise MemoryError(f"There is no room for {n_bytes:,} bytes of rows: {error.strerror}.") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without large pages
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8, n_bytes)


def matrix_apart(n_rows: int, n_units: int) -> npt.NDArray[np.float32]:
    """A float32 matrix of zeros in pages of its own."""
    return apart(4 * n_rows * n_units).view(np.float32).reshape(n_rows, n_units)


class Desk:
    """Where the rows of a pass over texts lie until they are written; the next pass uses the same place."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.layers: dict[int | str, torch.Tensor] = {}

    def room(self, layer: int | str, n_rows: int, states: torch.Tensor) -> torch.Tensor | None:
        """The place for so many rows of `states`; None if they are too many, or not in the main memory."""
        import torch

        if states.device.type != "cpu" or n_rows > self.n_rows:
            return None
        if layer not in self.layers:
            self.layers[layer] = torch.from_numpy(matrix_apart(self.n_rows, states.shape[-1]))
        return self.layers[layer][:n_rows]
