"""One owner of a folder at a time, whatever runs elsewhere.

The owner holds a lock of the system on a file in the folder, which ends with the process, however that ends:
a dead owner's folder is free. An equal run waits for its turn; another is refused before it writes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from thinkalike.files import writing
from thinkalike.progress import progress

LOCK = "owner.lock"
"""In the folder, while someone works there"""
SECONDS_BETWEEN = 0.1


@contextmanager
def owning(folder: Path, check: Callable[[], object]) -> Iterator[None]:
    """Be the one who writes into `folder` while the block runs.

    Parameters
    ----------
    check : raises if the folder belongs to another run. It is called before anything is written, again
        while waiting for the present owner to finish, and once more when the folder is ours.
    """
    check()
    lock = FileLock(folder / LOCK)
    with writing(folder):
        if not _acquired(lock, 0):
            with progress(f"waiting for another run in {folder}", None):
                while not _acquired(lock, SECONDS_BETWEEN):
                    check()
    try:
        check()
        yield
    finally:
        with suppress(OSError):  # while it is ours: who waits for the old file sees that it is gone
            (folder / LOCK).unlink()
            folder.rmdir()  # only if nothing came of it
        lock.release()


def _acquired(lock: FileLock, seconds: float) -> bool:
    Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
    try:
        lock.acquire(timeout=seconds, poll_interval=seconds / 2 or 0.05)
    except Timeout:
        return False
    return True


def differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """What differs between two descriptions, in words.

    Examples
    --------
    >>> differences({"seed": 0, "site": "mlp"}, {"seed": 1, "site": "mlp"})
    'seed 0 there, 1 here'
    """
    keys = [key for key in {**theirs, **ours} if theirs.get(key) != ours.get(key)]
    return "; ".join(_difference(key, theirs.get(key), ours.get(key)) for key in keys)


def _difference(key: str, there: Any, here: Any) -> str:
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        return f"{key}: {differences(there, here)}"
    name = key.replace("_", " ")
    if _is_digest(there) or _is_digest(here):
        return f"other {name}"
    if there is None or here is None:
        return f"{name} {_short(here)} here, not there" if there is None else f"{name} {_short(there)} there"
    return f"{name} {_short(there)} there, {_short(here)} here"


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
