"""Tokens that go through a model together: sequences side by side, padded on the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from thinkalike.types import Tokenizer

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Document = str | tuple[str, str]
"""A text, or two that are read as a pair"""


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences of tokens, and which places are padding.

    What stands in the padding does not matter: a model is called with its own padding token there
    (`systems.calling`).

    Attributes
    ----------
    ids : (n_sequences, longest)
    mask : (n_sequences, longest)
        True for tokens, False for padding.
    segments : (n_sequences, longest), optional
        0 or 1: which text of a pair a token is of.

    Examples
    --------
    >>> Batch.of([[5, 6, 7], [8]]).mask.astype(int)
    array([[1, 1, 1],
           [1, 0, 0]])
    """

    ids: Ints = field()
    mask: Bools = field()
    segments: Ints | None = None

    @classmethod
    def of(
        cls,
        sequences: Sequence[Sequence[int]] | Sequence[npt.NDArray[np.integer]],
        *,
        segments: Sequence[Sequence[int]] | None = None,
        width: int | None = None,
    ) -> Batch:
        """Sequences of unequal length; as wide as the longest, or `width`."""
        lengths = np.array([len(one) for one in sequences], dtype=np.int64)
        mask = np.arange(width or lengths.max(initial=0)) < lengths[:, None]
        return cls(_padded(sequences, mask), mask, None if segments is None else _padded(segments, mask))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def width(self) -> int:
        return int(self.ids.shape[1])

    def take(self, rows: Sequence[int] | Ints | slice, *, trimmed: bool = True) -> Batch:
        """Some of the sequences, no wider than the longest of them unless `trimmed` is False."""
        longest = int(self.mask[rows].sum(axis=1).max()) if trimmed else self.width
        segments = None if self.segments is None else self.segments[rows, :longest]
        return Batch(self.ids[rows, :longest], self.mask[rows, :longest], segments)

    def repeated(self, times: int) -> Batch:
        """All sequences, so many times one after another."""
        segments = None if self.segments is None else np.tile(self.segments, (times, 1))
        return Batch(np.tile(self.ids, (times, 1)), np.tile(self.mask, (times, 1)), segments)


def tokenise(
    tokenizer: Tokenizer,
    documents: Sequence[Document],
    *,
    length: int | None = None,
    width: int | None = None,
) -> Batch:
    """Texts, or pairs of texts, each a sequence as the tokenizer begins and ends it; longer ones are cut.

    Parameters
    ----------
    length
        In tokens, at most; any if not given.
    width
        Of the batch, if not that of the longest sequence.
    """
    pairs = isinstance(documents[0], tuple)
    encoded = tokenizer(
        [document[0] for document in documents] if pairs else list(documents),
        [document[1] for document in documents] if pairs else None,
        truncation=length is not None,
        max_length=length,
        padding=False,
        return_token_type_ids=pairs,
        verbose=False,
    )
    return Batch.of(encoded["input_ids"], segments=encoded["token_type_ids"] if pairs else None, width=width)


def _padded(sequences: Sequence[npt.ArrayLike], mask: Bools) -> Ints:
    padded = np.zeros(mask.shape, dtype=np.int64)
    if len(sequences):
        padded[mask] = np.concatenate([np.asarray(one, dtype=np.int64) for one in sequences])
    return padded
