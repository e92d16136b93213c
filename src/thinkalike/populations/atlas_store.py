"""Where an atlas keeps its fingerprints: a folder, or an address of an object store; one file each.

    ATLAS/words-1/NAME.npz     a fingerprint
    ATLAS/words-1.index.npz    short vectors of them all; files that came or changed since are read again

A fingerprint is written whole or not at all, and nothing else has to be kept in step: two may add at once.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from thinkalike.errors import DamagedFile, StoreError, one_line
from thinkalike.files import file_name, write_bytes, writing
from thinkalike.populations.fingerprint_files import SUFFIX

INDEX = ".index" + SUFFIX
CHANGING = ("ETag", "etag", "size", "mtime", "LastModified", "last_modified", "created")
"""What file systems say of a file that is another when the file is"""


@dataclass(frozen=True)
class AtlasStore:
    """The files of one atlas."""

    address: str
    files: Any
    """An fsspec file system"""
    root: str

    @classmethod
    def at(cls, address: str | os.PathLike[str]) -> AtlasStore:
        try:
            files, root = fsspec.core.url_to_fs(os.fspath(address))
        except (ImportError, ValueError) as error:
            raise StoreError(
                f"{os.fspath(address)} cannot be opened ({one_line(error)}): give a folder, or an address "
                "whose library is installed."
            ) from error
        return cls(os.fspath(address), files, root.rstrip("/"))

    @property
    def is_local(self) -> bool:
        return isinstance(self.files, LocalFileSystem)

    def path(self, reference: str, name: str) -> str:
        """Where the fingerprint of a system is."""
        return f"{self.root}/{reference}/{file_name(name)}{SUFFIX}"

    def stamps(self, reference: str) -> dict[str, str]:
        """The files of all fingerprints, sorted, each with what changes when it is replaced."""
        folder = f"{self.root}/{reference}"
        found = _here(folder) if self.is_local else self._there(folder)
        return {name: found[name] for name in sorted(found) if name.endswith(SUFFIX) and name[0] != "."}

    def _there(self, folder: str) -> dict[str, str]:
        self.files.invalidate_cache()
        if not self.files.exists(folder):
            return {}
        return {
            str(one["name"]).rpartition("/")[2]: " ".join(str(one[k]) for k in CHANGING if k in one)
            for one in self.files.ls(folder, detail=True)
        }

    def stamp(self, reference: str) -> str | None:
        """What changes whenever a fingerprint comes, goes or is replaced; None where nothing says so."""
        folder = f"{self.root}/{reference}"
        return str(os.stat(folder).st_mtime_ns) if self.is_local and os.path.isdir(folder) else None

    def read(self, path: str) -> bytes:
        try:
            data: bytes = self.files.cat_file(path)
            return data
        except FileNotFoundError as error:
            raise DamagedFile(f"{path} is missing: add the model again.") from error
        except OSError as error:
            raise StoreError(f"{path} cannot be read ({one_line(error)}).") from error

    def write(self, path: str, data: bytes) -> None:
        """Whole or not at all: object stores take a file in one piece, folders by a change of names."""
        if self.is_local:
            write_bytes(data, Path(path))
            return
        with writing(path):
            self.files.pipe_file(path, data)

    def remove(self, path: str) -> None:
        with writing(path):
            self.files.rm_file(path)


def _here(folder: str) -> dict[str, str]:
    if not os.path.isdir(folder):
        return {}
    with os.scandir(folder) as files:
        return {one.name: f"{(about := one.stat()).st_mtime_ns} {about.st_size}" for one in files}
