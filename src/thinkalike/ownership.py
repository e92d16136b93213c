"""One owner of a folder at a time, whatever runs elsewhere.

The owner holds a lock of the system on a file in the folder, which ends with the process, however that ends:
a dead owner's folder is free. At an address the owner renews a lease (`leases.py`). An equal run waits for
its turn; another is refused before it writes anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from pathlib import Path

from filelock import FileLock, Timeout

from thinkalike.addresses import is_local, reaching
from thinkalike.files import writing
from thinkalike.leases import Lease
from thinkalike.progress import progress

LOCK = "owner.lock"
"""In the folder, while someone works there"""
OPTIONS = "command.toml"
LOG = "log.txt"
BESIDE = (LOCK, OPTIONS, LOG)
"""What stands beside the results of a run: who works there, how it was called, what happened"""
SECONDS_BETWEEN = 0.1
SECONDS_BETWEEN_LEASES = 1.0

Around = Callable[[Path], AbstractContextManager[None]]
_around: ContextVar[Around | None] = ContextVar("around", default=None)


@contextmanager
def around_the_run(do: Around) -> Iterator[None]:
    """What the block does in the first folder that it owns is done within `do(folder)`.

    Only there is it sure that the folder is of this run, and no other's words are overwritten.
    """
    token = _around.set(do)
    try:
        yield
    finally:
        _around.reset(token)


@contextmanager
def owning(folder: Path, check: Callable[[bool], object]) -> Iterator[None]:
    """Be the one who writes into `folder` while the block runs.

    Parameters
    ----------
    check : raises if the folder belongs to another run. It is called before anything is written, again
        while waiting for the present owner to finish (then with True), and once more when the folder is ours.
    """
    if not is_local(folder):
        with _leasing(folder, check):
            yield
        return
    check(False)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    lock = FileLock(folder / LOCK)
    with writing(folder):
        if not _acquired(lock, 0):
            with progress(f"waiting for another run in {folder}", None):
                while not _acquired(lock, SECONDS_BETWEEN):
                    check(True)
    try:
        check(False)
        with _surrounded(folder):
            yield
    finally:
        with suppress(OSError):  # while it is ours: who waits for the old file sees that it is gone
            (folder / LOCK).unlink()
            for empty in made:  # only if nothing came of it
                empty.rmdir()
        lock.release()


@contextmanager
def _surrounded(folder: Path) -> Iterator[None]:
    do = _around.get()
    _around.set(None)  # folders within are parts of the run
    with nullcontext() if do is None else do(folder):
        yield


@contextmanager
def _leasing(folder: Path, check: Callable[[bool], object]) -> Iterator[None]:
    """The same at an address."""
    with reaching(folder):
        check(False)
        lease = Lease(folder / LOCK)
        if not lease.acquired():
            with progress(f"waiting for another run in {folder}", None):
                while not lease.acquired():
                    check(True)
                    time.sleep(SECONDS_BETWEEN_LEASES)
        try:
            check(False)
            with _surrounded(folder):
                yield
        finally:
            lease.release()


def _acquired(lock: FileLock, seconds: float) -> bool:
    Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
    try:
        lock.acquire(timeout=seconds, poll_interval=seconds / 2 or 0.05)
    except Timeout:
        return False
    return True


def holds_files(folder: Path) -> bool:
    """Whether anything is in a folder but what stands beside results."""
    return any(path.name not in BESIDE for path in folder.iterdir())


def differences(theirs: Mapping[str, object], ours: Mapping[str, object]) -> str:
    """What differs between two descriptions, in words; of digests only that they do.

    Examples
    --------
    >>> differences({"seed": 0, "site": "mlp", "text": "8" * 64}, {"seed": 1, "text": "9" * 64})
    'seed: 0 there, 1 here; site: mlp there, none here; other text'
    """
    keys = [key for key in {**theirs, **ours} if theirs.get(key) != ours.get(key)]
    return "; ".join(_difference(key, theirs.get(key), ours.get(key)) for key in keys)


def _difference(key: str, there: object, here: object) -> str:
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        return differences(there, here)
    if _is_digest(there) and _is_digest(here):
        return f"other {key}"
    return f"{key}: {_short(there)} there, {_short(here)} here"


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and len(value) >= 16 and set(value) <= set("0123456789abcdef")


def _short(value: object) -> str:
    if value is None or _is_digest(value):
        return "none" if value is None else "some"
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
