"""A stream that was interrupted goes on where it stopped: its sums so far in a checkpoint."""

from __future__ import annotations

from thinkalike.checkpoint import Checkpoint
from thinkalike.streaming.batches import MixedBatches, PassageBatches
from thinkalike.streaming.stream import Trace
from thinkalike.streaming.sums import StreamingCKA

SECONDS_BETWEEN = 2.0


def resume(
    saved: Checkpoint, stream: StreamingCKA, trace: Trace, batching: PassageBatches | MixedBatches
) -> int:
    """Fill in what was done before; the number of passages that need not be read again."""
    found = saved.load()
    if found is None:
        return 0
    arrays, about = found
    stream.restore(arrays)
    trace.extend(about["trace"])
    batching.restore(about["batching"])
    return int(about["position"])


def save(
    position: int,
    saved: Checkpoint,
    stream: StreamingCKA,
    trace: Trace,
    batching: PassageBatches | MixedBatches,
) -> None:
    """Keep the state after `position` passages, unless that was done a moment ago."""
    if saved.is_due:
        saved.save(stream.state(), {"position": position, "trace": trace, "batching": batching.state()})
