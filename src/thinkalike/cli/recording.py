"""What a run leaves beside its results: the options it was called with, and a log.

Both are there from the moment the folder is the run's own, so that a run that was killed can be resumed
(`thinkalike resume FOLDER`), and the log tells how far it came and what went wrong.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from thinkalike.cli.config import write_config
from thinkalike.errors import one_line
from thinkalike.machine import local_cache_directory
from thinkalike.ownership import LOG, OPTIONS, around_the_run, holds_files
from thinkalike.types import Facts

FORMAT = "%(asctime)s %(message)s"


def recorded(command: str, options: Facts) -> AbstractContextManager[None]:
    """Around the work of a command: the first folder that it owns gets the record of this run."""
    return around_the_run(lambda folder: _record(folder, command, options))


@contextmanager
def _record(folder: Path, command: str, options: Facts) -> Iterator[None]:
    if Path(local_cache_directory()).resolve() in folder.resolve().parents:  # no place of the user's
        yield
        return
    write_config(command, options, folder)
    with _logging_into(folder) as log:
        log.info("thinkalike %s", " ".join(sys.argv[1:]))
        log.info(_versions())
        start = time.monotonic()
        try:
            yield
        except BaseException as error:
            log.info("stopped: %s", one_line(error), exc_info=True)
            raise
        else:
            log.info("finished in %.1f s", time.monotonic() - start)
        finally:
            _leave_nothing_of_nothing(folder)


@contextmanager
def _logging_into(folder: Path) -> Iterator[logging.Logger]:
    """What the package says of its work goes to the log of the folder, if one can be written there."""
    log = logging.getLogger("thinkalike")
    handler: logging.Handler = logging.NullHandler()
    if "://" not in str(folder):  # an object store has no file to add lines to
        with suppress(OSError):
            handler = _Lines(folder / LOG, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter(FORMAT))
    level = log.level
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    try:
        yield log
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        with suppress(OSError):
            handler.close()


class _Lines(logging.FileHandler):
    """Lines in a file; a disk that is full stops the run where it matters, not here."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def _leave_nothing_of_nothing(folder: Path) -> None:
    """Where nothing came of the run, the folder is as it was."""
    with suppress(OSError):
        if not holds_files(folder):
            for name in (OPTIONS, LOG):
                (folder / name).unlink(missing_ok=True)


def _versions() -> str:
    from thinkalike.provenance import ANALYSING, versions

    return ", ".join(f"{name} {version}" for name, version in versions(ANALYSING).items())
