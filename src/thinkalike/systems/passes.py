"""What goes through the model at once, in which order, and which rows of the answer come out of it.

Rows are sorted by the length of their text, longest first, and cut into chunks of equally many rows. A chunk
is what is written at once, and what is computed anew if it is not there: so the same numbers come out, byte
by byte, however often a run was interrupted and whoever else writes the same store. A source cuts a chunk
into groups of inputs, and turns a group into one `Pass`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from thinkalike.errors import InvalidInput
from thinkalike.systems import signals
from thinkalike.systems.batch import Batch
from thinkalike.systems.calling import Reading, arguments, check_tokens
from thinkalike.systems.hooks import Keep, Layer
from thinkalike.systems.stack import Stack
from thinkalike.systems.texts import Sequences
from thinkalike.systems.words import Ints
from thinkalike.types import Processor

if TYPE_CHECKING:
    import torch

# About what keeps a CPU busy, or a GPU; more tokens at once are no faster, only larger.
TOKENS_AT_ONCE = {"cpu": 1024, "cuda": 16384}
SIGNALS_AT_ONCE = 32  # images or sounds


@dataclass(frozen=True, eq=False)
class ChunkPlan:
    """The order of computation.

    Attributes
    ----------
    order : (n_rows,)
        The row that is computed and stored at each place.
    chunk_rows
        So many rows make a chunk; the last may be smaller.
    row_text, lengths
        The text of each row; the number of tokens of each text.
    most_texts, most_tokens
        What goes through the model in one pass at most, padding included.
    """

    order: Ints
    chunk_rows: int
    row_text: Ints
    lengths: Ints
    most_texts: float
    most_tokens: float

    def rows(self, chunk: int) -> Ints:
        """The rows of a chunk, in the order in which they are stored."""
        return self.order[chunk * self.chunk_rows : (chunk + 1) * self.chunk_rows]

    def passes(self, chunk: int) -> list[Ints]:
        """The texts of a chunk, in as few equal passes through the model as may be."""
        texts = np.array(list(dict.fromkeys(self.row_text[self.rows(chunk)].tolist())))
        for n_passes in itertools.count(1):
            passes = np.array_split(texts, n_passes)
            if all(self._fits(part) for part in passes):
                return passes
        raise AssertionError("one text always fits")

    def _fits(self, texts: Ints) -> bool:
        n_tokens = len(texts) * int(self.lengths[texts].max())
        return len(texts) == 1 or (len(texts) <= self.most_texts and n_tokens <= self.most_tokens)


def make_plan(row_text: Ints, lengths: Ints, *, batch_size: int | str, device: str) -> ChunkPlan:
    """Plan the passes for rows that belong to texts of the given lengths (in tokens).

    `batch_size` is the largest number of texts in a pass, or "auto" for as many as suit the `device`.
    """
    used = np.unique(row_text)
    tokens_at_once = TOKENS_AT_ONCE["cuda" if device.startswith("cuda") else "cpu"]
    if batch_size == "auto":
        texts = max(1.0, tokens_at_once / lengths[used].mean())
        most_texts, most_tokens = np.inf, 1.5 * tokens_at_once
    else:
        texts = most_texts = check_batch_size(batch_size)
        most_tokens = np.inf
    return ChunkPlan(
        order=np.lexsort((row_text, -lengths[row_text])),
        chunk_rows=int(np.clip(round(texts * len(row_text) / len(used)), 1, len(row_text))),
        row_text=row_text,
        lengths=lengths,
        most_texts=most_texts,
        most_tokens=most_tokens,
    )


def check_batch_size(batch_size: int | str) -> int:
    if not isinstance(batch_size, int) or batch_size < 1:
        raise InvalidInput(f"batch_size is a number of texts or 'auto'; {batch_size!r} was given.")
    return batch_size


@dataclass(frozen=True, eq=False)
class Pass:
    """One call of the model.

    Attributes
    ----------
    inputs
        The keyword arguments of the call.
    places
        Where in the chunk the rows belong that come out.
    keep
        Layer and hidden states as the model has them → (n_places, n_units), float32.
    reading
        The tokens of each row; None for images and sounds.
    """

    inputs: Mapping[str, object]
    places: Ints
    keep: Keep
    reading: Reading | None = None


class Chunked(Protocol):
    """Rows in the order in which they are computed, so many to a chunk."""

    @property
    def order(self) -> Ints: ...

    @property
    def chunk_rows(self) -> int: ...


class RowSource(Chunked, Protocol):
    """Chunks of named rows, each in groups that go through the model together."""

    rows: tuple[str, ...]

    def groups(self, chunk: int) -> list[Ints]: ...

    def prepare(self, chunk: int, group: Ints) -> Pass: ...


def n_chunks(rows: Chunked) -> int:
    return -(-len(rows.order) // rows.chunk_rows)


class TextSource:
    """Texts as right-padded token ids, longest first."""

    def __init__(self, sequences: Sequences, plan: ChunkPlan, stack: Stack) -> None:
        self.sequences, self.plan, self.stack = sequences, plan, stack
        self.rows, self.order, self.chunk_rows = sequences.rows, plan.order, plan.chunk_rows
        check_tokens(stack, np.concatenate(sequences.ids))

    def groups(self, chunk: int) -> list[Ints]:
        return self.plan.passes(chunk)

    def prepare(self, chunk: int, group: Ints) -> Pass:
        rows, batch = self.plan.rows(chunk), Batch.of([self.sequences.ids[text] for text in group])
        offset_of_text = np.full(len(self.plan.lengths), -1)
        offset_of_text[group] = np.arange(len(group)) * batch.width
        offsets = offset_of_text[self.sequences.row_text[rows]]
        places = np.flatnonzero(offsets >= 0)
        positions, counted = self.sequences.row_tokens.padded(rows[places])
        reading = Reading(batch, positions + offsets[places, None], counted)
        return Pass(arguments(self.stack, batch), places, reading.keep(self.stack), reading)


class SignalSource:
    """Images or sounds, processed chunk by chunk; those of equal shape go together."""

    def __init__(
        self,
        rows: Sequence[str],
        inputs: Sequence[object],
        *,
        kind: str,
        processor: Processor,
        pooling: str,
        sampling_rate: int | None,
        batch_size: int | str,
        stack: Stack,
    ) -> None:
        self.rows, self.inputs = tuple(rows), inputs
        self.kind, self.processor, self.sampling_rate = kind, processor, sampling_rate
        self.pooling, self.stack = pooling, stack
        self.order = np.arange(len(self.rows))
        at_once = SIGNALS_AT_ONCE if batch_size == "auto" else check_batch_size(batch_size)
        self.chunk_rows = min(at_once, len(self.rows))
        self._prepared: tuple[int, list[dict[str, torch.Tensor]]] = (-1, [])

    def groups(self, chunk: int) -> list[Ints]:
        places = signals.equal_shapes(self._process(chunk))
        return [np.array(group) for group in places]

    def prepare(self, chunk: int, group: Ints) -> Pass:
        import torch

        prepared = self._process(chunk)
        batch = {name: torch.cat([prepared[i][name] for i in group]) for name in prepared[group[0]]}
        mask = batch.pop("attention_mask", None)
        like = next(self.stack.model.parameters())
        inputs = {
            name: tensor.to(like) if tensor.is_floating_point() else tensor.to(like.device)
            for name, tensor in batch.items()
        }

        def keep(layer: Layer, states: torch.Tensor) -> torch.Tensor:
            states = signals.as_positions(states, channels_first=self.stack.architecture.channels_first)
            filled = signals.filled_positions(mask, states.shape[1])
            filled = None if filled is None else filled.to(states.device)
            return signals.pool_positions(states, filled, self.pooling)

        return Pass(inputs, group, keep)

    def _process(self, chunk: int) -> list[dict[str, torch.Tensor]]:
        if self._prepared[0] != chunk:
            begin = chunk * self.chunk_rows
            prepared = [
                signals.process(self.processor, one, kind=self.kind, sampling_rate=self.sampling_rate)
                for one in self.inputs[begin : begin + self.chunk_rows]
            ]
            self._prepared = chunk, prepared
        return self._prepared[1]
