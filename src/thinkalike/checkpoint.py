"""What a long computation has done so far, in one file: the same call again goes on from there."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from thinkalike.addresses import place
from thinkalike.errors import DamagedFile
from thinkalike.files import read_arrays, write_arrays


class Checkpoint:
    """Arrays and plain values under a key.

    Parameters
    ----------
    path
        The file; it is gone when all is done.
    key
        A digest of all that changes the numbers: a file with another key is not ours to continue.
    seconds_between
        The state is not saved again before so many seconds have passed.
    """

    def __init__(self, path: str | Path, key: str, *, seconds_between: float = 0.0) -> None:
        self.path, self.key, self.seconds_between = place(path), key, seconds_between
        self._saved = time.monotonic()

    def load(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """What was saved; None if there is nothing that can be continued."""
        try:
            arrays, about = read_arrays(self.path)
        except DamagedFile:  # or there is none: from the beginning
            return None
        return (arrays, about) if about["key"] == self.key else None

    @property
    def is_due(self) -> bool:
        """Whether it is time to save again."""
        return time.monotonic() - self._saved >= self.seconds_between

    def save(self, arrays: Mapping[str, np.ndarray], about: Mapping[str, object]) -> None:
        write_arrays(dict(arrays), self.path, about={"key": self.key, **about})
        self._saved = time.monotonic()

    def finish(self) -> None:
        """The result is there: the state is needed no more."""
        self.path.unlink(missing_ok=True)
