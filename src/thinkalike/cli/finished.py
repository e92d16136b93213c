"""Commands that were finished: the same again says what it said, and opens no model.

A record in the cache directory holds what was asked for (options, what models and files hold, versions), what
was said, and the state of every file that was written. If all of that is as it was, nothing is left to do.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from hashlib import sha256
from pathlib import Path
from typing import ParamSpec, TextIO

import typer

from thinkalike.addresses import is_address
from thinkalike.cli.named import parse_systems
from thinkalike.cli.recording import recorded
from thinkalike.errors import StoreError, ThinkalikeError
from thinkalike.machine import local_cache_directory
from thinkalike.ownership import LOG
from thinkalike.types import Facts, Json, Value

AGAIN = "This run was finished before: all was there, and nothing was computed anew."
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
            from thinkalike.files import write_json

            asked = _request(command.__name__, options, systems, inputs)
            kept = {} if asked is None else _kept(asked)
            if kept:
                typer.echo(kept["said"] + AGAIN)
                return
            with recorded(command.__name__, options):
                said, written = heard(lambda: command(*given, **options))
            if asked is None or not written or any(map(is_address, written)):
                return
            files = states(_files(written))
            with suppress(StoreError):  # a cache that cannot be written to: then there is no record
                write_json(
                    {"asked": asked, "said": said.replace(AGAIN + "\n", ""), "files": files}, _record(asked)
                )

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


def heard(work: Callable[[], Value]) -> tuple[str, Value]:
    """What the work says on standard output, and what it returns."""
    stream = _Heard(sys.stdout)
    with redirect_stdout(stream):
        result = work()
    return "".join(stream.words), result


def states(files: Iterable[Path]) -> dict[str, str]:
    """The digest of every file; of large ones, and of chunks of Zarr, size and time."""
    return {os.path.abspath(path): _state(path) for path in files}


def _kept(asked: Json) -> Json:
    """The record of the very same request, if all that was written then is as it was."""
    from thinkalike.errors import DamagedFile
    from thinkalike.files import read_json

    try:
        kept = read_json(_record(asked))
    except DamagedFile:  # or there is none
        return {}
    whole = kept["asked"] == asked and kept["files"] == states(_files(kept["files"]))
    return kept if whole else {}


def _record(asked: Json) -> Path:
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


def _identity(text: str, options: Json) -> Value:
    """What a model or a file of arrays holds, told without opening it."""
    from thinkalike.systems.fingerprints import fingerprint_named
    from thinkalike.systems.names import is_array_file

    ((_, source),) = parse_systems([text]).items()
    if is_array_file(source):
        return states(_files([source]))
    which = {name: options[name] for name in ("revision", "gguf_file") if name in options}
    identity = fingerprint_named(source, **which)
    if identity is None:
        raise _UnknownError
    return identity


def _given(options: Json, names: Sequence[str]) -> list[Value]:
    """The values of these parameters, one by one."""
    values = [options[name] for name in names if name in options]
    return [one for value in values for one in _listed(value)]


def _listed(value: Value) -> Sequence[Value]:
    return value if isinstance(value, (list, tuple)) else [value]


class _UnknownError(Exception):
    """Only the hub could tell what a model is."""


class _Heard:
    """A stream that also keeps what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.words = stream, list[str]()

    def write(self, text: str) -> int:
        written = self.stream.write(text)  # which may refuse it: others try what a stream takes
        self.words.append(text)
        return written

    def __getattr__(self, name: str) -> Value:
        return getattr(self.stream, name)
