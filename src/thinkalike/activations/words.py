"""Tokens and words: which tokens a word is made of, and how their vectors become one.

Alignment is by character offsets in the whole text, so a word is found in its context, whatever the tokenizer
does with spaces, case or bytes; single words are never tokenised by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thinkalike.errors import UnknownName

if TYPE_CHECKING:
    import torch

Ints = npt.NDArray[np.int64]

POOLINGS = ("last", "first", "mean", "all", "cls")


def check_pooling(pooling: str) -> None:
    if pooling not in POOLINGS:
        raise UnknownName.among("pooling", pooling, POOLINGS)


def tokens_of_span(offsets: npt.NDArray[np.integer], start: int, end: int) -> Ints:
    """The positions of the tokens that share a character with text[start:end].

    Parameters
    ----------
    offsets : (n_tokens, 2)
        First character and one past the last of each token; equal for special tokens, which belong to no
        text. A token may bring its leading space along: only the overlap counts. The bytes of one character
        (an emoji) are several tokens with the same offsets, and all of them belong.
    """
    begins, ends = offsets[:, 0], offsets[:, 1]
    return np.flatnonzero((begins < end) & (ends > start) & (begins < ends))


def chosen(tokens: Ints, pooling: str) -> Ints:
    """Of a word's tokens those that make up its vector: the last (as in Salle et al.), the first, or all."""
    if pooling == "last":
        return tokens[-1:]
    if pooling == "first":
        return tokens[:1]
    return tokens


def padded(groups: list[Ints]) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Groups of positions as one matrix (n_groups, longest) and its mask; the filling repeats position 0."""
    sizes = np.array([len(group) for group in groups])
    mask = np.arange(sizes.max()) < sizes[:, None]
    positions = np.zeros(mask.shape, dtype=np.int64)
    positions[mask] = np.concatenate(groups)
    return positions, mask


def mean_over(states: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Float32 means of `states` (n_tokens, n_units) over groups of positions (n_groups, longest), by mask."""
    import torch

    picked = states[positions[:, 0]] if positions.shape[1] == 1 else states[positions]
    picked = picked.to(torch.float32)
    if picked.ndim == 2:
        return picked
    weights = mask.to(picked.dtype)
    # A sum over the few tokens of a word in fixed order: the same bytes every time, on a GPU too.
    return (picked * weights[:, :, None]).sum(1) / weights.sum(1, keepdim=True)
