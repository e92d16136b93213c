"""What the models read, and which of their states become rows: the same rows of every model.

A passage is a sequence of tokens that goes through a model as one. Rows are its tokens, its words, or the
passage as a whole. Passages are chosen by number, and every model reads the same ones: nothing here can be
shuffled for one model and not for another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.systems.batch import Batch, Bools, Ints
from thinkalike.systems.calling import Reading

if TYPE_CHECKING:
    from thinkalike.systems.texts import Sequences

Padding = Literal["mask", "keep"]
PADDINGS = ("mask", "keep")


class Passages(Protocol):
    """Passages by number, and their rows."""

    @property
    def documents(self) -> Sequence[Hashable]:
        """The document that each belongs to, or most of it."""

    def n_rows(self, chosen: Ints) -> Ints: ...

    def n_tokens(self) -> int: ...

    def read(self, model: int, chosen: Ints) -> Reading: ...

    def digest(self) -> str: ...


@dataclass(frozen=True, eq=False)
class SharedTokens:
    """Passages of the same tokens for all models; rows are tokens, or means over passages.

    Attributes
    ----------
    batch
        All passages.
    documents
        Of each passage.
    level
        "token" or "sequence".
    padding
        "keep" makes rows of padding too, as Brown et al. 2023 did with BERT.
    drop_first
        So many tokens at the beginning of each passage make no row.
    pooling
        Of a whole passage: "mean", "last" or "first".
    """

    batch: Batch
    documents: Sequence[Hashable] = field(repr=False)
    level: Literal["token", "sequence"] = "token"
    padding: Padding = "mask"
    drop_first: int = 0
    pooling: str = "mean"

    def __post_init__(self) -> None:
        if not len(self.batch):
            raise InvalidInput("The text has no passage to read: give a longer text.")
        if self.drop_first >= self.batch.width:
            raise InvalidInput(
                f"drop_first={self.drop_first} leaves nothing of passages of {self.batch.width} tokens."
            )

    def kept(self, chosen: Ints) -> Bools:
        """Which tokens count: (n_chosen, longest)."""
        counts = self.batch.mask[chosen].copy()
        if self.padding == "keep":
            counts[:] = True
        counts[:, : self.drop_first] = False
        return counts

    def n_rows(self, chosen: Ints) -> Ints:
        counts = self.kept(chosen).sum(axis=1)
        return counts if self.level == "token" else np.minimum(counts, 1)

    def n_tokens(self) -> int:
        return self.batch.width

    def digest(self) -> str:
        """Hex string over the tokens and what is kept of them."""
        sha = hashlib.sha256(f"{self.batch.ids.shape} {list(self.documents)}".encode())
        sha.update(self.batch.ids.tobytes())
        sha.update(self.kept(np.arange(len(self.batch))).tobytes())
        return sha.hexdigest()

    def read(self, model: int, chosen: Ints) -> Reading:
        batch = self.batch.take(chosen, trimmed=self.padding == "mask")
        kept = self.kept(chosen)[:, : batch.width]
        if self.level == "sequence":
            kept = _pooled(kept, self.pooling)
            return Reading(batch, *_positions(kept[kept.any(axis=1)], np.flatnonzero(kept.any(axis=1))))
        places = np.flatnonzero(kept.ravel())[:, None]
        return Reading(batch, places, np.ones_like(places, dtype=bool))


@dataclass(frozen=True, eq=False)
class OwnTokens:
    """The same texts as each model's own tokenizer cuts them; rows are words, or whole texts.

    Attributes
    ----------
    sequences
        For each model its tokens, and the rows made of them.
    places
        For each model the place of every row among its own, of shape (n_rows,).
    row_text : (n_rows,)
        The passage of each row, ascending.
    """

    sequences: Sequence[Sequences] = field(repr=False)
    places: Sequence[Ints] = field(repr=False)
    row_text: Ints
    documents: Sequence[Hashable] = field(repr=False)

    def _rows(self, text: int) -> Ints:
        first, last = np.searchsorted(self.row_text, [text, text + 1])
        return np.arange(first, last)

    def n_rows(self, chosen: Ints) -> Ints:
        return np.array([len(self._rows(text)) for text in chosen], dtype=np.int64)

    def n_tokens(self) -> int:
        return int(max(sequences.lengths.max() for sequences in self.sequences))

    def digest(self) -> str:
        """Hex string over every model's tokens and rows."""
        sha = hashlib.sha256(f"{list(self.documents)}".encode())
        for own, places in zip(self.sequences, self.places, strict=True):
            for ids in own.ids:
                sha.update(ids.tobytes())
            sha.update(places.tobytes())
        return sha.hexdigest()

    def read(self, model: int, chosen: Ints) -> Reading:
        own, places = self.sequences[model], self.places[model]
        rows = [places[self._rows(text)] for text in chosen]
        rows = [of_text for of_text in rows if len(of_text)]
        texts = [own.ids[own.row_text[of_text[0]]] for of_text in rows]
        batch = Batch.of(texts)
        positions, counted = own.row_tokens.padded(np.concatenate(rows))
        begins = np.repeat(np.arange(len(rows)) * batch.width, [len(of_text) for of_text in rows])
        return Reading(batch, positions + begins[:, None], counted)


def _pooled(kept: Bools, pooling: str) -> Bools:
    """Of the kept tokens of each passage (n_passages, longest) all, or the first or last alone."""
    if pooling == "mean":
        return kept
    if pooling not in ("first", "last"):
        raise UnknownName.among("pooling of a passage", pooling, ("mean", "last", "first"))
    counted = np.cumsum(kept, axis=1)
    return kept & (counted == (1 if pooling == "first" else counted[:, -1:]))


def _positions(kept: Bools, passages: Ints) -> tuple[Ints, Bools]:
    """Places in the flattened passages of what is kept of each, as a matrix and its mask."""
    order = np.argsort(~kept, axis=1, kind="stable")[:, : kept.sum(axis=1).max()]
    return order + passages[:, None] * kept.shape[1], np.take_along_axis(kept, order, axis=1)
