"""Where an atlas keeps its fingerprints: a folder, or an address of an object store; one file each.

    ATLAS/words-1/NAME.npz     a fingerprint
    ATLAS/words-1.index.npz    short vectors of them all; files that came or changed since are read again

A fingerprint is written whole or not at all, and nothing else has to be kept in step: two may add at once.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from thinkalike.addresses import Address, filesystem, is_local, place, reaching
from thinkalike.errors import InvalidInput
from thinkalike.files import file_name, reading, write_bytes, writing
from thinkalike.populations.fingerprint_files import SUFFIX

INDEX = ".index" + SUFFIX
CHANGING = ("ETag", "etag", "size", "mtime", "LastModified", "last_modified", "created")
"""What file systems say of a file that is another when the file is"""


@dataclass(frozen=True)
class AtlasStore:
    """The files of one atlas."""

    root: Path
    """A folder, or what behaves like one at an address"""

    @classmethod
    def at(cls, address: Address) -> AtlasStore:
        root = place(address)
        if is_local(root):
            there = next(part for part in (root, *root.absolute().parents) if part.exists())
            if not there.is_dir():
                raise InvalidInput(f"{there} is a file, and an atlas is a folder: name another place.")
        return cls(root)

    @property
    def address(self) -> str:
        return str(self.root)

    def path(self, reference: str, name: str) -> Path:
        """Where the fingerprint of a system is."""
        return self.root / reference / (file_name(name) + SUFFIX)

    def index(self, reference: str) -> Path:
        """Where the short vectors are."""
        return self.root / (reference + INDEX)

    def stamps(self, reference: str) -> dict[str, str]:
        """The files of all fingerprints, sorted, each with what changes when it is replaced."""
        folder = self.root / reference
        found = _here(folder) if is_local(folder) else _there(folder)
        return {name: found[name] for name in sorted(found) if name.endswith(SUFFIX) and name[0] != "."}

    def stamp(self, reference: str) -> str | None:
        """What changes whenever a fingerprint comes, goes or is replaced; None where nothing says so."""
        folder = self.root / reference
        return str(folder.stat().st_mtime_ns) if is_local(folder) and folder.is_dir() else None

    def has(self, path: Path) -> bool:
        with reaching(path):
            return path.is_file()

    def read(self, path: Path) -> bytes:
        with reading(path, "add the model again"):
            return path.read_bytes()

    def write(self, path: Path, data: bytes) -> None:
        """Whole or not at all: object stores take a file in one piece, folders by a change of names."""
        write_bytes(data, path)

    def remove(self, path: Path) -> None:
        with reaching(path), writing(path):
            path.unlink()


def _here(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        return {}
    with os.scandir(folder) as files:
        return {one.name: f"{(about := one.stat()).st_mtime_ns} {about.st_size}" for one in files}


def _there(folder: Path) -> dict[str, str]:
    files, root = filesystem(folder)
    with reaching(folder):
        if not files.exists(root):
            return {}
        return {
            str(one["name"]).rpartition("/")[2]: " ".join(str(one[k]) for k in CHANGING if k in one)
            for one in files.ls(root, detail=True)
        }
