"""Which rows are computed together, in which order.

Rows are sorted by the length of their text, longest first, and cut into chunks of equally many rows. A chunk
is what is written at once, and what is computed anew if it is not there: so the same numbers come out, byte
by byte, however often a run was interrupted and whoever else writes the same store.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from thinkalike.errors import InvalidInput
from thinkalike.systems.words import Ints

# About what keeps a CPU busy, or a GPU; more tokens at once are no faster, only larger.
TOKENS_AT_ONCE = {"cpu": 1024, "cuda": 16384}


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

    @property
    def n_chunks(self) -> int:
        return -(-len(self.order) // self.chunk_rows)

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
    """ChunkPlan the passes for rows that belong to texts of the given lengths (in tokens).

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
