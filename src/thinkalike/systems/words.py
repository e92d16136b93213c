"""Tokens and words: which tokens a word is made of, and how their vectors become one.

Alignment is by character offsets in the whole text, so a word is found in its context, whatever the tokenizer
does with spaces, case or bytes; single words are never tokenised by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thinkalike.errors import UnknownName

if TYPE_CHECKING:
    import torch

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

POOLINGS = ("last", "first", "mean", "all", "cls")


def check_pooling(pooling: str) -> None:
    if pooling not in POOLINGS:
        raise UnknownName.among("pooling", pooling, POOLINGS)


def tokens_of_spans(
    offsets: npt.NDArray[np.integer], starts: npt.NDArray[np.integer], ends: npt.NDArray[np.integer]
) -> Bools:
    """Which tokens share a character with each text[start:end]: (n_spans, n_tokens).

    Parameters
    ----------
    offsets : (n_tokens, 2)
        First character and one past the last of each token; equal for special tokens, which belong to no
        text. A token may bring its leading space along: only the overlap counts. The bytes of one character
        (an emoji) are several tokens with the same offsets, and all of them belong.
    starts, ends : (n_spans,)
    """
    begins, stops = offsets[:, 0], offsets[:, 1]
    return (begins < ends[:, None]) & (stops > starts[:, None]) & (begins < stops)


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of positions: group g is positions[bounds[g] : bounds[g + 1]]."""

    positions: Ints
    bounds: Ints

    @classmethod
    def of_members(cls, group: Ints, positions: Ints, n_groups: int) -> Groups:
        """From the group of each position; within a group, the order stays."""
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group, minlength=n_groups)
        return cls(positions[order], np.concatenate([[0], np.cumsum(sizes)]))

    @property
    def sizes(self) -> Ints:
        return np.diff(self.bounds)

    def chosen(self, pooling: str) -> Groups:
        """Of a word's tokens those that make up its vector: the last (Salle et al.), the first, or all."""
        if pooling not in ("last", "first"):
            return self
        some = self.sizes > 0
        at = self.bounds[1:][some] - 1 if pooling == "last" else self.bounds[:-1][some]
        return Groups(self.positions[at], np.concatenate([[0], np.cumsum(some)]))

    def without_empty(self) -> Groups:
        sizes = self.sizes
        return Groups(self.positions, np.concatenate([[0], np.cumsum(sizes[sizes > 0])]))

    def one_by_one(self) -> Groups:
        """Every position a group of its own."""
        return Groups(self.positions, np.arange(len(self.positions) + 1))

    def padded(self, which: Ints) -> tuple[Ints, Bools]:
        """The groups `which` as one matrix (n_groups, longest) and its mask; the filling is 0."""
        sizes = self.sizes[which]
        steps = np.arange(sizes.max())
        mask = steps < sizes[:, None]
        at = np.where(mask, self.bounds[which][:, None] + steps, 0)
        return np.where(mask, self.positions[at], 0), mask


def mean_over(states: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Float32 means of `states` (n_tokens, n_units) over groups of positions (n_groups, longest), by mask."""
    import torch

    if positions.shape[1] == 1:
        return states.index_select(0, positions[:, 0]).to(torch.float32)
    picked, weights = states[positions].to(torch.float32), mask.to(torch.float32)
    # A sum over the few tokens of a word in fixed order: the same bytes every time, on a GPU too.
    return (picked * weights[:, :, None]).sum(1) / weights.sum(1, keepdim=True)
