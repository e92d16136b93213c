"""A stream that was interrupted goes on where it stopped: its sums so far, on disk, whole or not at all."""

from __future__ import annotations

import json
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from thinkalike.errors import StoreError
from thinkalike.stimuli.files import replacing
from thinkalike.streaming.batches import MixedBatches, PassageBatches
from thinkalike.streaming.stream import Trace
from thinkalike.streaming.sums import StreamingCKA

SECONDS_BETWEEN = 2.0


class Checkpoint:
    """The state of a stream in one file.

    Parameters
    ----------
    key
        A digest of all that changes the numbers: a file with another key is not ours to continue.
    """

    def __init__(self, path: str | Path, key: str) -> None:
        self.path, self.key = Path(path), key
        self._saved = time.monotonic()

    def resume(self, stream: StreamingCKA, trace: Trace, batching: PassageBatches | MixedBatches) -> int:
        """Fill in what was done before; the number of passages that need not be read again."""
        if not self.path.exists():
            return 0
        try:
            with np.load(self.path, allow_pickle=False) as file:
                about = json.loads(str(file["about"]))
                arrays = {name: file[name] for name in file.files if name != "about"}
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise StoreError(f"{self.path} is damaged ({error}): delete it to begin anew.") from error
        if about["key"] != self.key:
            return 0
        stream.restore(arrays)
        trace.extend(about["trace"])
        batching.restore(about["batching"])
        return int(about["position"])

    def save(
        self, position: int, stream: StreamingCKA, trace: Trace, batching: PassageBatches | MixedBatches
    ) -> None:
        """Keep the state after `position` passages, unless that was done a moment ago."""
        if time.monotonic() - self._saved < SECONDS_BETWEEN:
            return
        about: dict[str, Any] = {
            "key": self.key,
            "position": position,
            "trace": trace,
            "batching": batching.state(),
        }
        try:
            with replacing(self.path) as path, path.open("wb") as file:
                np.savez(file, allow_pickle=False, about=np.array(json.dumps(about)), **stream.state())
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written ({error}): free some space.") from error
        self._saved = time.monotonic()

    def finish(self) -> None:
        """The result is there: the state is needed no more."""
        self.path.unlink(missing_ok=True)
