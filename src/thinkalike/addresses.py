"""Where things lie: a path of this machine, or an address such as s3://BUCKET/RUN, both with pathlib's face.

`place` makes the one or the other of what a user gives; all else works with what it returns. At an address
a file is put whole or not at all by the store itself, folders need not be made, and lists are never cached:
others write there too.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from thinkalike.errors import InvalidInput, MissingExtra, StoreError, ThinkalikeError, one_line

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/{1,2}(?P<rest>.*)", re.DOTALL)
"""One slash is what pathlib leaves of two"""
EXTRAS = {"s3": "s3", "s3a": "s3"}
"""Schemes whose library an extra of ours installs"""
UNCACHED: dict[str, Any] = {"use_listings_cache": False}

Address = str | os.PathLike[str]


def is_address(given: object) -> bool:
    """Whether this names something elsewhere than in the file system of this machine.

    Examples
    --------
    >>> is_address("s3://lab/run"), is_address(Path("s3://lab/run")), is_address("runs/a"), is_address("C:/a")
    (True, True, False, False)
    """
    found = ADDRESS.fullmatch(str(given))
    return found is not None and found["scheme"] != "file"


def is_local(path: object) -> bool:
    """Whether this is in the file system of this machine."""
    return isinstance(path, Path) or not is_address(path)


def place(given: Address) -> Path:
    """The path, or what behaves like one at an address.

    Examples
    --------
    >>> place("runs/a")
    PosixPath('runs/a')
    >>> str(place("memory://runs") / "a")
    'memory://runs/a'
    """
    if not is_address(given):
        found = ADDRESS.fullmatch(str(given))
        return Path(given if found is None else "/" + found["rest"].lstrip("/"))
    address = whole(given)
    check_scheme(address)
    try:
        from upath import UPath
    except ImportError as error:
        raise MissingExtra.needed("universal_pathlib", "s3") from error
    with reaching(address):
        return cast(Path, UPath(address, **UNCACHED))  # pathlib's face, and no subclass


def whole(given: object) -> str:
    """The text of an address, with both slashes.

    Examples
    --------
    >>> whole(Path("s3://lab/run"))
    's3://lab/run'
    """
    found = ADDRESS.fullmatch(str(given))
    return str(given) if found is None else f"{found['scheme']}://{found['rest']}"


def check_scheme(address: str) -> None:
    """Raise, in one line, if nothing is installed that opens such an address."""
    import fsspec

    scheme, _, rest = address.partition("://")
    try:
        fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        if scheme in EXTRAS:
            raise MissingExtra.needed("s3fs", EXTRAS[scheme]) from error
        raise MissingExtra(f"{address} needs a package that is not installed: {one_line(error)}") from error
    except ValueError as error:
        raise InvalidInput(
            f"{address} is an address of no kind that is known ({scheme}): give a path, or an address such "
            "as s3://BUCKET/NAME."
        ) from error
    if scheme in EXTRAS and (not rest or rest.startswith("/")):
        raise InvalidInput(f"{address} names no bucket: give an address such as s3://BUCKET/NAME.")


def filesystem(given: object) -> tuple[AbstractFileSystem, str]:
    """The fsspec file system that a path or an address lies in, and what it is called there."""
    from fsspec.core import url_to_fs

    address = whole(given)
    if is_address(address):
        check_scheme(address)
    with reaching(address):
        files, root = url_to_fs(address, **UNCACHED)
    return files, root.rstrip("/")


def files_in(folder: Path) -> list[Path]:
    """The files right in a folder, by name; none if it is not there."""
    with reaching(folder), suppress(FileNotFoundError, NotADirectoryError):
        return sorted((path for path in folder.iterdir() if path.is_file()), key=str)
    return []


def remove_tree(path: Path) -> None:
    """Delete a folder and all that is in it, if it is there."""
    if is_local(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    files, root = filesystem(path)
    with reaching(path):
        for name in files.find(root):  # one by one: stores differ in how they delete many, and all know this
            files.rm_file(name)


@contextmanager
def reaching(address: object) -> Iterator[None]:
    """Say in one line what a store that is not of this machine has answered; paths are left alone."""
    try:
        yield
    except ThinkalikeError:
        raise
    except store_errors() as error:
        if is_local(address) or getattr(error, "filename", None):  # a file of this machine
            raise
        raise unreachable(address, error) from error


def store_errors() -> tuple[type[Exception], ...]:
    """What file systems raise: errors of the system and, if it is in use, of Amazon's library."""
    found = sys.modules.get("botocore.exceptions")
    return (OSError,) if found is None else (OSError, found.BotoCoreError)


def unreachable(address: object, error: BaseException) -> StoreError:
    """The error for an address at which something cannot be read or written."""
    if isinstance(error, FileNotFoundError):
        out = "check the name of the bucket, which must be there"
    elif isinstance(error, PermissionError) or "redentials" in str(error):
        out = "check your keys, and what they allow"
    else:
        out = "check the connection. What was finished is kept: the same call goes on"
    reason = getattr(error, "strerror", None) or one_line(error)
    return StoreError(f"{whole(address)} cannot be reached ({reason}): {out}.")
