"""A stream that was interrupted goes on where it stopped: its sums so far, on disk, whole or not at all."""

from __future__ import annotations

import time
from pathlib import Path

from thinkalike.errors import DamagedFile
from thinkalike.files import read_arrays, write_arrays
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
        try:
            arrays, about = read_arrays(self.path)
        except DamagedFile:  # or there is none: from the beginning
            return 0
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
        about = {"key": self.key, "position": position, "trace": trace, "batching": batching.state()}
        write_arrays(stream.state(), self.path, about=about)
        self._saved = time.monotonic()

    def finish(self) -> None:
        """The result is there: the state is needed no more."""
        self.path.unlink(missing_ok=True)
