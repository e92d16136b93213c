"""Writing activations so that nothing is ever half there.

A chunk of rows is written in every layer, each file whole or not at all, and then marked as done. Whoever
comes later, after a crash or at the same time, computes the chunks that are not marked, and writes the very
bytes that anyone else would write.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec
from zarr.errors import ContainsArrayError

from thinkalike.activations.reader import FORMAT, array_in, checksum, damaged_chunks, describe, is_complete
from thinkalike.activations.seals import write_seals
from thinkalike.activations.store import Activations, Array, Layer, refuse_nonfinite
from thinkalike.addresses import is_local, place, store_errors, unreachable
from thinkalike.errors import StoreError
from thinkalike.ownership import BESIDE, owning

ROWS_AT_ONCE = 1024


class Writer:
    """One store that is being filled, chunk by chunk; a store with the same key at the same place is resumed.

    Parameters
    ----------
    attributes
        What the group says of itself: key, shown, system, layers, stimuli_digest, metadata.
    items
        Row names, in the order in which the rows are stored.
    positions : (n_rows,)
        The place of each stored row in the order of the stimuli.
    n_units
        The width of each layer.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        attributes: Mapping[str, Any],
        items: Sequence[str],
        positions: np.ndarray,
        n_units: Sequence[int],
        chunk_rows: int,
    ) -> None:
        self.path, self.chunk_rows, self.items = path, chunk_rows, items
        self.system, self.labels = attributes["system"], tuple(attributes["layers"])
        check_free(path, attributes)
        n_rows = len(items)
        with writing(path):
            group = zarr.open_group(
                str(path), mode="a", attributes={"thinkalike": {"format": FORMAT, **attributes}}
            )
            group.require_group("layers")
            checked = {"compressors": [Crc32cCodec()]}
            rows = {"shape": (n_rows,), "chunks": (n_rows,), **checked}
            _array(group, "items", dtype=str, **rows)[:] = np.array(items, dtype=object)
            _array(group, "positions", dtype="int64", **rows)[:] = positions
            self.layers = [
                _array(
                    group,
                    f"layers/{number}",
                    shape=(n_rows, width),
                    chunks=(chunk_rows, width),
                    dtype="float32",
                    fill_value=float("nan"),  # a chunk that is lost reads as NaN, which no layer may hold
                    filters=None,
                    serializer=BytesCodec(endian="little"),
                    **checked,
                    dimension_names=("item", f"unit_{number}"),
                )
                for number, width in enumerate(n_units)
            ]
            n_chunks = -(-n_rows // chunk_rows)
            flags = {"shape": (n_chunks, len(n_units)), "chunks": (1, len(n_units)), **checked}
            self._done = _array(group, "done", dtype="uint64", fill_value=0, **flags)
            write_seals(path, len(n_units))

    def is_done(self, chunk: int) -> bool:
        """Whether the chunk is there, whoever wrote it."""
        return bool(np.all(self._done[chunk]))

    def write(self, chunk: int, rows: Mapping[Layer, Array]) -> None:
        """Write the rows of one chunk in every layer, then mark it."""
        begin = chunk * self.chunk_rows
        names = self.items[begin : begin + self.chunk_rows]
        for label in self.labels:
            refuse_nonfinite(rows[label], layer=label, items=names, system=self.system)
        with writing(self.path):
            for label, array in zip(self.labels, self.layers, strict=True):
                array[begin : begin + self.chunk_rows] = rows[label]
            self._done[chunk] = [checksum(rows[label]) for label in self.labels]


class MemoryWriter:
    """The same in memory, for what is not to be kept."""

    def __init__(
        self,
        *,
        attributes: Mapping[str, Any],
        items: Sequence[str],
        positions: np.ndarray,
        n_units: Sequence[int],
    ) -> None:
        self.system, self.items, self.positions, self.filled = attributes["system"], items, positions, 0
        self.matrices = {
            label: np.empty((len(items), width), np.float32)
            for label, width in zip(attributes["layers"], n_units, strict=True)
        }

    def is_done(self, chunk: int) -> bool:
        return False

    def write(self, chunk: int, rows: Mapping[Layer, Array]) -> None:
        """Put the rows of the next chunk where they belong in the order of the stimuli."""
        end = self.filled + len(next(iter(rows.values())))
        for label, matrix in self.matrices.items():
            refuse_nonfinite(
                rows[label], layer=label, items=self.items[self.filled : end], system=self.system
            )
            matrix[self.positions[self.filled : end]] = rows[label]
        self.filled = end


def save(activations: Activations, path: str | Path) -> str | Path:
    """Write `activations` at `path`, where nothing may be yet but a part of the very same."""
    parts = None
    if activations._parted is not None:  # the layers are kept whole
        parts, whole = asdict(activations._parted.parts), activations._parted.whole
        activations = replace(activations, layers=whole.layers, n_units=whole.n_units, _read=whole._read)
    attributes = {
        "key": _digest(activations),
        "shown": None,
        "system": activations.system,
        "layers": list(activations.layers),
        "stimuli_digest": activations.stimuli_digest,
        "metadata": dict(activations.metadata),
        "parts": parts,
    }
    if is_complete(path):
        if (describe(path) or {}).get("key") == attributes["key"] and not damaged_chunks(path):
            return path
        raise StoreError(f"There are activations at {path} already: choose another place, or delete them.")
    with owning_store(path, attributes):
        writer = Writer(
            path,
            attributes=attributes,
            items=activations.item_names,
            positions=np.arange(activations.n_items),
            n_units=activations.n_units,
            chunk_rows=min(ROWS_AT_ONCE, activations.n_items),
        )
        matrices = {layer: activations[layer] for layer in activations.layers}
        for chunk, begin in enumerate(range(0, activations.n_items, writer.chunk_rows)):
            if not writer.is_done(chunk):
                rows = slice(begin, begin + writer.chunk_rows)
                writer.write(chunk, {layer: matrix[rows] for layer, matrix in matrices.items()})
    return path


def _digest(activations: Activations) -> str:
    """Of all that a store of these holds, so that another may go on with it but nothing else."""
    digest = hashlib.sha256(repr((activations.item_names, activations.layers, activations.n_units)).encode())
    for layer in activations.layers:
        digest.update(np.ascontiguousarray(activations[layer]).data)
    return digest.hexdigest()


def check_free(path: str | Path, attributes: Mapping[str, Any]) -> None:
    """Raise unless there is nothing at `path`, or a store of the same content."""
    found = describe(path)
    if found is None:
        # Whoever was killed while writing the very first file leaves a .partial one, and what is beside it.
        left = [] if not is_local(path) else Path(path).glob("*")
        if any(file.suffix != ".partial" and file.name not in BESIDE for file in left):
            raise StoreError(f"{path} is a folder with something else in it: choose a place of its own.")
        return
    if found["key"] == attributes["key"]:
        return
    if found["shown"] != attributes["shown"]:
        raise StoreError(
            f"The store at {path} was made from other stimuli: choose another place, or delete it."
        )
    ours, theirs = attributes["metadata"], found["metadata"]
    differing = ", ".join(name for name in ours if ours[name] != theirs.get(name)) or (
        "the model's files" if ours else "the numbers"
    )
    raise StoreError(
        f"The store at {path} was made in another way (different: {differing}): "
        "choose another place, or delete it."
    )


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Say what a failed write means for the user. Files are replaced as a whole, so none is half written."""
    try:
        yield
    except store_errors() as error:
        if not is_local(path):
            raise unreachable(path, error) from error
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(
                f"The disk is full: {path} cannot grow. What was finished is kept; free some space and run "
                "the same call again, or point THINKALIKE_CACHE or out=… at another disk."
            ) from error
        reason = getattr(error, "strerror", None) or error
        raise StoreError(
            f"{path} cannot be written: {reason}. Name another place, or delete it and extract again."
        ) from error


def _array(group: zarr.Group, name: str, **layout: Any) -> zarr.Array:
    """The array if it is there, else a new one; another process may create it at the same time."""
    if name not in group:
        try:
            return group.create_array(name, **layout)
        except ContainsArrayError:
            pass
    array = array_in(group, name)
    for wanted in ("shape", "chunks"):
        if getattr(array, wanted, None) != layout[wanted]:
            raise StoreError(
                f"The store at {group.store} is damaged ({name} differs in its {wanted}): delete it."
            )
    return array


@contextmanager
def owning_store(path: str | Path, attributes: Mapping[str, object]) -> Iterator[None]:
    """Be the one who fills the store at `path`."""
    with owning(place(path), lambda _: check_free(path, attributes)):
        if is_local(path):
            for leftover in Path(path).rglob("*.partial"):  # of a process that was killed within a file
                leftover.unlink(missing_ok=True)
        for chunk in damaged_chunks(path):  # they are computed again
            zarr.open_array(f"{path}/done", mode="r+")[chunk] = 0
        yield
