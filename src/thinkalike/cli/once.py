"""The folder of a command's results: one owner at a time, and finished once.

The record of the command is `command.json` in the folder: it travels with the results, and says who is at
work there. It knows what weights and files hold to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import typer

from thinkalike.addresses import files_in
from thinkalike.cli.config import PLACES, WORKERS
from thinkalike.cli.record import Record, heard
from thinkalike.errors import StoreError
from thinkalike.files import is_part, plain
from thinkalike.ownership import BESIDE, differences, owning
from thinkalike.types import Facts, Json

FILE = "command.json"


def once(
    context: typer.Context,
    folders: Sequence[Path],
    work: Callable[[], None],
    *,
    models: Mapping[str, str] | None = None,
    inputs: Sequence[Path | None] = (),
) -> None:
    """Do the work of this command, unless it was done before.

    Parameters
    ----------
    context : of the command, which knows its name and options.
    folders : that the work fills; the first is the one that is owned.
    work : writes the files, and says on standard output what came out.
    models : by name; what they are made of is part of what was asked for.
    inputs : files and folders that are read; what they hold is part of it too.
    """
    run = _Run(folders, _asked(context, models or {}, [path for path in inputs if path is not None]))
    if run.record.says_again():
        return
    with owning(folders[0], run.refuse_other):
        if not run.record.says_again():  # it may have been finished while we waited
            run.begin()
            try:
                said, _ = heard(work)
            except BaseException:
                run.leave_nothing_of_nothing()
                raise
            run.record.finish(said)


@dataclass(frozen=True)
class _Run:
    folders: Sequence[Path]
    asked: Facts

    @property
    def record(self) -> Record:
        return Record(self.folders[0] / FILE, self.asked, lambda _: self.files())

    def refuse_other(self, busy: bool) -> None:
        kept = self.record.kept()
        if busy and kept and kept["asked"] != self.asked:
            raise StoreError(
                f"Another run is at work in {self.folders[0]} ({differences(kept['asked'], self.asked)}): "
                "wait for its end, or choose another folder."
            )

    def begin(self) -> None:
        kept = self.record.kept()
        if kept.get("asked") == self.asked:
            return
        for name, path in self.paths().items():
            if name in kept.get("files", ()):  # of another command, which this one takes the place of
                with suppress(OSError):
                    path.unlink()
        self.record.begin()

    def leave_nothing_of_nothing(self) -> None:
        """Where the work failed before it wrote anything, the folder is as it was."""
        if not self.files():
            with suppress(OSError):
                self.record.file.unlink()

    def files(self) -> dict[str, str]:
        """The digest of every file."""
        return {name: sha256(path.read_bytes()).hexdigest() for name, path in self.paths().items()}

    def paths(self) -> dict[str, Path]:
        """Every file by its place seen from the first folder."""
        return {
            os.path.relpath(str(path), str(self.folders[0])): path
            for folder in self.folders
            for path in files_in(folder)
            if path.name not in (FILE, *BESIDE) and not is_part(path)
        }


def _asked(context: typer.Context, models: Mapping[str, str], inputs: Sequence[Path]) -> Json:
    """Everything that the results depend on."""
    from thinkalike.provenance import ANALYSING, versions
    from thinkalike.systems.system import open_system

    options = {name: value for name, value in context.params.items() if name not in (*PLACES, *WORKERS)}
    return plain(
        {
            "command": context.info_name,
            **{name: value for name, value in options.items() if value is not None},
            "weights": {name: open_system(model).identity for name, model in models.items()},
            "inputs": {path.name: _digest(path) for path in inputs if path.exists()},
            "versions": versions(ANALYSING),
        }
    )


def _digest(path: Path) -> str:
    """Of a file, or of all files below a folder."""
    digest = sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            digest.update(f"{file.relative_to(path)}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()
