"""The files of a store that never change: what they held when they were written, so that damage is noticed.

Chunks of layers carry checksums of their own. What describes them (the metadata of Zarr, the names and places
of the rows) does not; its digests are in one more file, which lies with an array so that Zarr passes it over.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from thinkalike.addresses import filesystem, is_local, reaching
from thinkalike.errors import DamagedFile
from thinkalike.files import SEAL, seal_of, sealed_json, write_bytes

SEALS = "done/seals.json"


def write_seals(path: str | Path, n_layers: int) -> None:
    """Note the digests of all files of the store that are written once."""
    arrays = ["items", "positions", "done", *(f"layers/{number}" for number in range(n_layers))]
    names = ["zarr.json", "layers/zarr.json", *(f"{name}/zarr.json" for name in arrays)]
    names += ["items/c/0", "positions/c/0"]
    files, root = filesystem(path)
    there = [name for name in names if files.exists(f"{root}/{name}")]  # Zarr writes no chunk of zeros
    data = sealed_json({name: sha256(files.cat_file(f"{root}/{name}")).hexdigest() for name in there})
    if is_local(path):
        write_bytes(data, Path(path) / SEALS)
    else:
        files.pipe_file(f"{root}/{SEALS}", data)


def has_seals(path: str | Path) -> bool:
    files, root = filesystem(path)
    return bool(files.exists(f"{root}/{SEALS}"))


def check_seals(path: str | Path) -> None:
    """Raise `DamagedFile` unless every sealed file of the store is as it was."""
    sealed = _read(path, SEALS)
    if seal_of(sealed) is None:
        raise _damaged(path, SEALS)
    for name, digest in json.loads(sealed).items():
        if name != SEAL and sha256(_read(path, name)).hexdigest() != digest:
            raise _damaged(path, name)


def _read(path: str | Path, name: str) -> bytes:
    files, root = filesystem(path)
    try:
        with reaching(path):
            return bytes(files.cat_file(f"{root}/{name}"))
    except OSError as error:
        raise _damaged(path, name) from error


def _damaged(path: str | Path, name: str) -> DamagedFile:
    return DamagedFile(
        f"{path}/{name} is missing, damaged or was changed since it was written: delete {path} and extract "
        "again."
    )
