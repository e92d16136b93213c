"""Commands that were finished: the same again says what it said, and opens no model.

The record lies in the cache directory. What was asked for are the options, what models and files hold, and
versions; all of it is told without opening anything.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import ParamSpec

from thinkalike.addresses import is_address
from thinkalike.cli.named import parse_systems
from thinkalike.cli.record import Record, heard
from thinkalike.cli.recording import recorded
from thinkalike.errors import StoreError, ThinkalikeError
from thinkalike.machine import local_cache_directory
from thinkalike.ownership import LOG
from thinkalike.types import Facts, Json

LARGE = 16_000_000
"""Bytes from which a file is known by its size and time"""

Given = ParamSpec("Given")
Written = Sequence[str | Path]
"""Files and folders that a command has written"""


def says_again(
    *, systems: Sequence[str] = (), inputs: Sequence[str] = ()
) -> Callable[[Callable[Given, Written]], Callable[Given, None]]:
    """For a command that returns what it has written: if it was finished, it is not run again.

    Parameters
    ----------
    systems : parameters that name models or arrays; what these hold is part of what was asked for.
    inputs : parameters that name files or folders to read; the same.
    """

    def decorate(command: Callable[Given, Written]) -> Callable[Given, None]:
        @functools.wraps(command)
        def run(*given: Given.args, **options: Given.kwargs) -> None:
            asked = _request(command.__name__, options, systems, inputs)
            record = (
                None if asked is None else Record(_place(asked), asked, lambda files: states(_files(files)))
            )
            if record is not None and record.says_again():
                return
            with recorded(command.__name__, options):
                said, written = heard(lambda: command(*given, **options))
            if record is not None and written and not any(map(is_address, written)):
                with suppress(StoreError):  # a cache that cannot be written to: then there is no record
                    record.finish(said, map(str, written))

        return run

    return decorate


def _request(command: str, given: Facts, systems: Sequence[str], inputs: Sequence[str]) -> Json | None:
    """All that the results of a command depend on; None if that cannot be told without work."""
    from thinkalike.files import plain
    from thinkalike.provenance import ANALYSING, versions

    options = {name: value for name, value in given.items() if value is not None and name != "context"}
    if any(is_address(one) for value in options.values() for one in _listed(value)):
        return None  # what lies elsewhere may have changed
    try:
        return plain(
            {
                "command": command,
                "folder": os.getcwd(),
                "terminal": sys.stdout.isatty(),  # there the words have colours
                "options": options,
                "systems": [_identity(text, options) for text in _given(options, systems)],
                "inputs": [states(_files([place])) for place in _given(options, inputs)],
                "versions": versions(ANALYSING),
            }
        )
    except (ThinkalikeError, OSError, ValueError, _UnknownError):  # the command itself says what is wrong
        return None


def states(files: Iterable[Path]) -> dict[str, str]:
    """The digest of every file; of large ones, and of chunks of Zarr, size and time."""
    return {os.path.abspath(path): _state(path) for path in files}


def _place(asked: Json) -> Path:
    from thinkalike.provenance import digest_of

    key = digest_of({name: asked[name] for name in ("command", "folder", "terminal", "options")})
    return Path(local_cache_directory()) / "finished" / f"{key[:32]}.json"


def _state(path: Path) -> str:
    about = path.stat()
    if about.st_size > LARGE or not path.suffix:  # chunks have none, and checksums of their own
        return f"{about.st_size} bytes, {about.st_mtime_ns}"
    return sha256(path.read_bytes()).hexdigest()


def _files(places: Iterable[str | Path]) -> Iterator[Path]:
    """The files, and those below the folders."""
    for path in map(Path, places):
        if path.is_dir():
            yield from (found for found in sorted(path.rglob("*")) if found.is_file() and found.name != LOG)
        elif path.exists():  # or it is a name, such as that of a grammar
            yield path


def _identity(text: str, options: Json) -> object:
    """What a model or a file of arrays holds, told without opening it."""
    from thinkalike.systems.fingerprints import fingerprint_named
    from thinkalike.systems.names import is_array_file

    ((_, source),) = parse_systems([text]).items()
    if is_array_file(source):
        return states(_files([source]))
    which = {name: str(options[name]) for name in ("revision", "gguf_file") if name in options}
    identity = fingerprint_named(source, **which)
    if identity is None:
        raise _UnknownError
    return identity


def _given(options: Json, names: Sequence[str]) -> list[str]:
    """The values of these parameters, one by one."""
    values = [options[name] for name in names if name in options]
    return [str(one) for value in values for one in _listed(value)]


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, (list, tuple)) else [value]


class _UnknownError(Exception):
    """Only the hub could tell what a model is."""
