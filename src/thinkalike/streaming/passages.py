"""What the models read, and which of their states become rows: the same rows of every model.

A passage is a sequence of tokens that goes through a model as one. Rows are its tokens, its words, or the
passage as a whole. Passages are chosen by number, and every model reads the same ones: nothing here can be
shuffled for one model and not for another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.systems.words import mean_over

if TYPE_CHECKING:
    import torch

    from thinkalike.systems.texts import Sequences

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Padding = Literal["mask", "keep"]
PADDINGS = ("mask", "keep")


@dataclass(frozen=True, eq=False)
class Reading:
    """What one model is called with, and what is kept of its states.

    Attributes
    ----------
    ids, mask : (n_passages, longest)
        Token ids, and which of them are no padding.
    keep
        States (n_passages, longest, n_units) → rows (n_rows, n_units), passage by passage.
    segments : (n_passages, longest), optional
        First or second text of a pair.
    """

    ids: Ints
    mask: Bools
    keep: Callable[[torch.Tensor], torch.Tensor]
    segments: Ints | None = None


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
    ids, mask : (n_passages, longest)
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

    ids: Ints
    mask: Bools
    documents: Sequence[Hashable] = field(repr=False)
    level: Literal["token", "sequence"] = "token"
    padding: Padding = "mask"
    drop_first: int = 0
    pooling: str = "mean"
    segments: Ints | None = None

    def __post_init__(self) -> None:
        if not len(self.ids):
            raise InvalidInput("The text has no passage to read: give a longer text.")
        if self.drop_first >= self.ids.shape[1]:
            raise InvalidInput(
                f"drop_first={self.drop_first} leaves nothing of passages of {self.ids.shape[1]} tokens."
            )

    def kept(self, chosen: Ints) -> Bools:
        """Which tokens count: (n_chosen, longest)."""
        counts = self.mask[chosen].copy() if self.padding == "mask" else np.ones_like(self.mask[chosen])
        counts[:, : self.drop_first] = False
        return counts

    def n_rows(self, chosen: Ints) -> Ints:
        counts = self.kept(chosen).sum(axis=1)
        return counts if self.level == "token" else np.minimum(counts, 1)

    def n_tokens(self) -> int:
        return int(self.ids.shape[1])

    def digest(self) -> str:
        """Hex string over the tokens and what is kept of them."""
        sha = hashlib.sha256(f"{self.ids.shape} {list(self.documents)}".encode())
        sha.update(self.ids.tobytes())
        sha.update(self.kept(np.arange(len(self.ids))).tobytes())
        return sha.hexdigest()

    def read(self, model: int, chosen: Ints) -> Reading:
        longest = int(self.mask[chosen].sum(axis=1).max()) if self.padding == "mask" else self.ids.shape[1]
        kept = self.kept(chosen)[:, :longest]
        if self.level == "sequence":
            kept = _pooled(kept, self.pooling)
            places, counts = _positions(kept[kept.any(axis=1)], np.flatnonzero(kept.any(axis=1)))
        else:
            places = np.flatnonzero(kept.ravel())[:, None]
            counts = np.ones_like(places, dtype=bool)
        keep = _means_at(places, counts)
        segments = None if self.segments is None else self.segments[chosen, :longest]
        return Reading(self.ids[chosen, :longest], self.mask[chosen, :longest], keep, segments)


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
        lengths = np.array([len(ids) for ids in texts])
        mask = np.arange(lengths.max()) < lengths[:, None]
        ids = np.zeros(mask.shape, dtype=np.int64)
        ids[mask] = np.concatenate(texts)
        positions, counts = own.row_tokens.padded(np.concatenate(rows))
        begins = np.repeat(np.arange(len(rows)) * mask.shape[1], [len(of_text) for of_text in rows])
        return Reading(ids, mask, _means_at(positions + begins[:, None], counts))


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


def _means_at(positions: Ints, mask: Bools) -> Callable[[torch.Tensor], torch.Tensor]:
    """States → float32 means over groups of positions in the flattened passages."""

    def keep(states: torch.Tensor) -> torch.Tensor:
        import torch

        flat = states.reshape(-1, states.shape[-1])
        where = (torch.from_numpy(array).to(states.device) for array in (positions, mask))
        return mean_over(flat, *where)

    return keep
