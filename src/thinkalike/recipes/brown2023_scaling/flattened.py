"""Sample-level CKA (footnote 6 of Brown et al. 2023): an item is a passage, (sequence × feature) flat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats
from thinkalike.measures.cka import cka_all_pairs
from thinkalike.systems.batch import Batch
from thinkalike.systems.calling import bottom_states
from thinkalike.systems.stack import layers_of
from thinkalike.types import Tokenizer

if TYPE_CHECKING:
    from torch import nn

FEWEST = 8
"""Passages that a value is from at least"""


def whole_passages(texts: Sequence[str], tokenizer: Tokenizer, length: int, n: int) -> Batch:
    """`n` passages of `length` tokens, evenly over the texts as one stream: nothing is padded."""
    encoded = tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
    stream = np.array([token for ids in encoded for token in ids], dtype=np.int64)
    whole = len(stream) // length
    if whole < FEWEST:
        raise InvalidInput(
            f"A part of the text has {whole} passages of {length} tokens, and {FEWEST} are needed: give more "
            "text, fewer parts, or a smaller flattened_length."
        )
    chosen = np.unique(np.linspace(0, whole - 1, n).round().astype(int))
    return Batch.of(list(stream[: whole * length].reshape(whole, length)[chosen]))


def flattened_cka(models: Mapping[str, nn.Module], tokens: Batch) -> dict[tuple[str, str], Floats]:
    """Unbiased CKA between the blocks of every two models, a passage being one vector."""
    rows: dict[str, Floats] = {}
    depths = {}
    for name, model in models.items():
        stack = layers_of(model)
        depths[name] = stack.n_blocks
        states = bottom_states(stack, range(1, stack.n_blocks + 1), tokens)
        for layer in range(1, stack.n_blocks + 1):
            rows[f"{name}:{layer}"] = states[layer].double().cpu().numpy().reshape(len(tokens), -1)
    values = cka_all_pairs(list(rows.items()), None)
    ends = dict(zip(depths, np.cumsum(list(depths.values())), strict=True))
    spans = {name: slice(int(ends[name]) - depths[name], int(ends[name])) for name in depths}
    return {(a, b): values[spans[a], spans[b]] for a in models for b in models}
