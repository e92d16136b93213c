"""Long texts in windows: each item is read in the window that shows most of what stands before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput
from thinkalike.systems.words import Groups, Ints

Tokens = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Windows:
    """Windows of `length` tokens, each beginning half a window after the last.

    What the tokenizer puts before and after a text stands before and after each window too.
    """

    length: int

    def __post_init__(self) -> None:
        if self.length < 8:
            raise InvalidInput(f"Got window={self.length}: give the tokens of a window, 8 at least.")

    def cut(
        self, ids: Sequence[Tokens], offsets: Sequence[Tokens], text: Ints, tokens: Groups
    ) -> tuple[list[Tokens], Ints, Groups]:
        """The texts as windows, for each group of tokens the window that it is read in, and its places there.

        Parameters
        ----------
        ids, offsets
            Of the tokens of each text; offsets are equal for tokens that stand for no part of it.
        text : (n_groups,)
            The text of each group.
        tokens
            The places of each group in its text; groups may be empty.
        """
        cut: list[Tokens] = []
        number: dict[tuple[int, int], int] = {}
        place = np.zeros(len(text), dtype=np.int64)
        moved = tokens.positions.copy()
        for group, which in enumerate(text.tolist()):
            within = slice(tokens.bounds[group], tokens.bounds[group + 1])
            window, shift = self._window(offsets[which], tokens.positions[within])
            if (which, window.start) not in number:
                number[which, window.start] = len(cut)
                cut.append(self._tokens(ids[which], offsets[which], window))
            place[group] = number[which, window.start]
            moved[within] -= shift
        return cut, place, Groups(moved, tokens.bounds)

    def _window(self, offsets: Tokens, positions: Ints) -> tuple[slice, int]:
        """The earliest window that holds the positions, and by how much they move to the left."""
        first, last = _body(offsets)
        room = self.length - (len(offsets) - (last - first))
        if len(offsets) <= self.length or not len(positions):
            return slice(first, min(last, first + max(room, 0))), 0
        if positions.max() < first:
            raise InvalidInput(
                f"A text of {len(offsets)} tokens has one [CLS] token and several windows of {self.length}: "
                "choose another pooling, or longer windows."
            )
        step = room // 2
        late = int(positions.max()) - (first + room) + 1
        start = first + step * max(0, -(-late // step))
        if positions.min() < start and positions.min() >= first:
            raise InvalidInput(
                f"An item has {len(positions)} tokens, more than half a window of {self.length}: "
                "choose longer windows, or pooling='last'."
            )
        return slice(start, min(start + room, last)), start - first

    def _tokens(self, ids: Tokens, offsets: Tokens, window: slice) -> Tokens:
        first, last = _body(offsets)
        return np.concatenate([ids[:first], ids[window], ids[last:]])


def _body(offsets: Tokens) -> tuple[int, int]:
    """Where the tokens of the text itself begin and end, among those that the tokenizer puts around it."""
    real = np.flatnonzero(offsets[:, 0] < offsets[:, 1])
    return (int(real[0]), int(real[-1]) + 1) if len(real) else (0, len(offsets))
