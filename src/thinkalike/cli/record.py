"""When a command is finished: its record says so.

The record holds what was asked for, what was said, and the state of every file that was written. If the same
is asked for and all files are as they were, the command says what it said, and nothing is left to do. Who
keeps a record decides where it lies and which files it is about: `finished.py` for every command, in the
cache directory; `once.py` for those that fill a folder, in that folder.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

import typer

if TYPE_CHECKING:
    from thinkalike.types import Facts

AGAIN = "This run was finished before: all was there, and nothing was computed anew."

Result = TypeVar("Result")


@dataclass(frozen=True)
class Record:
    """The record of one request.

    Parameters
    ----------
    file : where it is kept.
    asked : all that the results depend on, as JSON holds it.
    states : the files as they are now, by name, each with what changes when it does; it is given those that
        the record names.
    """

    file: Path
    asked: Facts
    states: Callable[[Iterable[str]], dict[str, str]]

    def kept(self) -> dict[str, Any]:
        """What an earlier command left here; nothing if there was none, or the file is damaged."""
        from thinkalike.errors import DamagedFile
        from thinkalike.files import read_json

        try:
            return read_json(self.file)
        except DamagedFile:
            return {}

    def says_again(self) -> bool:
        """Whether all is done; then what was said is said again."""
        kept = self.kept()
        if kept.get("asked") != self.asked or "said" not in kept:
            return False
        if kept["files"] != self.states(kept["files"]):
            return False
        typer.echo(kept["said"] + AGAIN)
        return True

    def begin(self) -> None:
        """Say what is under way."""
        self._write({"asked": self.asked})

    def finish(self, said: str, files: Iterable[str] = ()) -> None:
        """All is done, and these files came of it."""
        said = said.replace(AGAIN + "\n", "")
        self._write({"asked": self.asked, "said": said, "files": self.states(files)})

    def _write(self, content: Facts) -> None:
        from thinkalike.files import write_json

        write_json(content, self.file)


def heard(work: Callable[[], Result]) -> tuple[str, Result]:
    """What the work says on standard output, and what it returns."""
    stream = _Heard(sys.stdout)
    with redirect_stdout(cast("TextIO", stream)):
        result = work()
    return "".join(stream.words), result


class _Heard:
    """A stream that also keeps what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.words = stream, list[str]()

    def write(self, text: str) -> int:
        written = self.stream.write(text)  # which may refuse it: others try what a stream takes
        self.words.append(text)
        return written

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)
