"""Reading a store: what it says of itself, and its layers in the order of the stimuli."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt
import zarr
from zarr.errors import GroupNotFoundError, NodeNotFoundError

from thinkalike.activations.expiry import gone, is_expired
from thinkalike.activations.parts import Parts, into_parts
from thinkalike.activations.seals import check_seals, has_seals
from thinkalike.activations.store import Activations, Array, Layer
from thinkalike.addresses import is_local, store_errors, unreachable
from thinkalike.errors import StoreError, ThinkalikeError, one_line

FORMAT = 3
READ_AT_ONCE = 1 << 26
"""Bytes of a layer that are read together before they are put in order"""


def describe(path: str | Path) -> dict[str, Any] | None:
    """What the store at `path` says of itself; None if there is none."""
    try:
        with reading(path):
            attributes = dict(zarr.open_group(str(path), mode="r").attrs)
            if has_seals(path):
                check_seals(path)
    except (GroupNotFoundError, NodeNotFoundError, FileNotFoundError):
        return None
    found = attributes.get("thinkalike")
    if not isinstance(found, dict):
        raise StoreError(f"The Zarr group at {path} is not a store of activations of ours.")
    if found.get("format") != FORMAT:
        raise StoreError(
            f"The store at {path} has format {found.get('format')}, but this version reads format {FORMAT}: "
            "delete it and extract again."
        )
    return found


def done_chunks(path: str | Path) -> tuple[frozenset[int], int]:
    """Which chunks are there, and how many there are to be (0 before the first)."""
    try:
        with reading(path):
            group = zarr.open_group(str(path), mode="r")
            done = np.asarray(group["done"][:]) if "done" in group else np.zeros((0, 1))  # type: ignore[index]
    except (GroupNotFoundError, FileNotFoundError):
        return frozenset(), 0
    return frozenset(np.flatnonzero(done.all(axis=1)).tolist()), len(done)


def damaged_chunks(path: str | Path) -> list[int]:
    """Of the chunks that are there, those that cannot be read in every layer."""
    if not has_seals(path) or is_expired(path):  # nothing is there yet, or no more
        return []
    group = zarr.open_group(str(path), mode="r")
    done = np.asarray(array_in(group, "done")[:])
    arrays = [array_in(group, f"layers/{number}") for number in range(done.shape[1])]
    return [
        chunk
        for chunk in sorted(done_chunks(path)[0])
        if not all(_is_whole(array, chunk, sum_) for array, sum_ in zip(arrays, done[chunk], strict=True))
    ]


def array_in(group: zarr.Group, name: str) -> zarr.Array:
    """An array of a store; damaged if there is none."""
    found = group[name]
    if not isinstance(found, zarr.Array):
        raise ValueError(f"{name} is no array")
    return found


def _is_whole(array: zarr.Array, chunk: int, expected: int) -> bool:
    rows = array.chunks[0]
    try:
        return checksum(np.asarray(array[chunk * rows : (chunk + 1) * rows])) == expected
    except (ValueError, OSError):
        return False


def checksum(rows: Array) -> int:
    """Of the rows of a chunk in one layer; never 0, which stands for a chunk that is not there yet."""
    return 2**32 + int(google_crc32c.value(np.ascontiguousarray(rows, dtype="<f4").tobytes()))


def is_complete(path: str | Path) -> bool:
    """Whether there is a store at `path`, with all its chunks."""
    done, n_chunks = done_chunks(path)
    return 0 < n_chunks == len(done)


@dataclass(frozen=True, eq=False)
class StoredLayers:
    """Reads the layer of a number; a pickle of it is the path alone.

    Attributes
    ----------
    positions : (n_items,)
        Where each stored row stands among the stimuli.
    """

    path: str
    labels: tuple[Layer, ...]
    positions: npt.NDArray[np.int64]

    def __call__(self, number: int) -> Array:
        with reading(self.path):
            group = zarr.open_group(self.path, mode="r")
            layer = array_in(group, f"layers/{number}")
            expected = np.asarray(array_in(group, "done")[:, number])
            ordered = np.empty(layer.shape, dtype=np.float32)
            at_once = layer.chunks[0]
            found: list[int] = []
            for first, last in _runs_of_chunks(len(ordered), ordered.shape[1], at_once):
                rows = np.asarray(layer[first:last], dtype=np.float32)
                found += [checksum(rows[begin : begin + at_once]) for begin in range(0, len(rows), at_once)]
                ordered[self.positions[first:last]] = rows
        if found != expected.tolist() and is_expired(self.path):
            raise gone(self.path)
        if found != expected.tolist():
            raise StoreError(
                f"The store at {self.path} is damaged: rows of layer {self.labels[number]!r} are lost. "
                "Delete it and extract again."
            )
        return ordered


def _runs_of_chunks(n_rows: int, n_units: int, chunk_rows: int) -> Iterator[tuple[int, int]]:
    """Rows of several chunks at a time: many, which a store gives together, and no second copy of a layer."""
    step = chunk_rows * max(1, READ_AT_ONCE // (4 * n_units * chunk_rows))
    return ((first, min(first + step, n_rows)) for first in range(0, n_rows, step))


def open_store(path: str | Path) -> Activations:
    """The activations at `path`, which must be complete; a layer is read when it is asked for."""
    about = describe(path)
    if about is None:
        raise StoreError(f"There is no store of activations at {path}.")
    check_seals(path)
    done, n_chunks = done_chunks(path)
    if not n_chunks or len(done) < n_chunks:
        raise StoreError(
            f"The store at {path} is not complete ({len(done)} of {n_chunks} chunks are there): "
            "run the same extraction again, it goes on where it stopped."
        )
    with reading(path):
        group = zarr.open_group(str(path), mode="r")
        arrays = [array_in(group, f"layers/{number}") for number in range(len(about["layers"]))]
        positions = np.asarray(array_in(group, "positions")[:])
        stored = np.asarray(array_in(group, "items")[:])
        if sorted(positions) != list(range(len(stored))) or len(set(stored)) != len(stored):
            raise ValueError("the names of the rows are lost")
        items = np.empty(len(positions), dtype=object)
        items[positions] = stored

    found = Activations(
        system=about["system"],
        layers=tuple(about["layers"]),
        item_names=tuple(str(item) for item in items),
        n_units=tuple(int(array.shape[1]) for array in arrays),
        stimuli_digest=about["stimuli_digest"],
        metadata={**about["metadata"], "path": str(path)},
        _read=StoredLayers(str(path), tuple(about["layers"]), positions),
    )
    return into_parts(found, Parts(**about["parts"])) if about.get("parts") else found


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Say in one line that files are damaged, whatever Zarr found wrong with them."""
    try:
        yield
    except (ThinkalikeError, GroupNotFoundError, FileNotFoundError):
        raise
    except Exception as error:  # Zarr and its codecs raise many kinds
        if isinstance(error, store_errors()) and not is_local(path):
            raise unreachable(path, error) from error
        raise StoreError(
            f"The store at {path} is damaged ({one_line(error)}): delete it and extract again."
        ) from error
