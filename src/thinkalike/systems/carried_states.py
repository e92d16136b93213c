"""The states that recurrent blocks carry from token to token, read after each token.

A state is what the block remembers of the text so far, flattened: (channels × states) of Mamba, (heads ×
channels × states) of Mamba-2; of RWKV, whose states are sums of weighted values and of weights, the one over
the other: the mean of the values so far, weighted as the block weights them. The model reads the texts token
by token, as it would write them, and its cache is looked at after each; so no more than one state per text
and block is ever held.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Protocol, cast

import torch
from torch import Tensor

from thinkalike.systems.calling import Reading, arguments
from thinkalike.systems.hooks import Layer
from thinkalike.systems.stack import Stack
from thinkalike.types import Answer


def read_carried_states(stack: Stack, reading: Reading, *, labels: Sequence[Layer]) -> dict[Layer, Tensor]:
    """Layer → rows (n_rows, n_units), float32: means over the tokens of each row of the states after them."""
    ids = arguments(stack, reading.batch)["input_ids"]
    assert isinstance(ids, Tensor)
    where, counted = (
        torch.from_numpy(array).to(ids.device) for array in (reading.positions, reading.counted)
    )
    texts, times = where // ids.shape[1], where % ids.shape[1]
    name = _cache_name(stack)
    counts_places = "position_ids" in inspect.signature(stack.model.forward).parameters
    cache: Answer = None
    sums: dict[Layer, Tensor] = {}
    for time in range(int(times[counted].max()) + 1):
        now = {"input_ids": ids[:, [time]], name: cache, "use_cache": True}
        if counts_places:  # some that also attend count them wrongly where their first block does not
            now["position_ids"] = torch.full_like(ids[:, [time]], time)
        cache = stack.model(**now)[name]
        rows, columns = torch.nonzero((times == time) & counted, as_tuple=True)
        for label in labels:
            state = _state(cache, label).flatten(1).float()
            if label not in sums:
                sums[label] = torch.zeros(len(where), state.shape[1], device=state.device)
            sums[label].index_add_(0, rows, state[texts[rows, columns]])
    n_tokens = counted.sum(1, keepdim=True)
    return {label: total / n_tokens for label, total in sums.items()}


class Carries(Protocol):
    """The cache of all other recurrent models."""

    def get_recurrent_state(self, layer_idx: int) -> Tensor: ...


def _cache_name(stack: Stack) -> str:
    """What transformers calls the cache of this model."""
    taken = inspect.signature(stack.model.forward).parameters
    return next((name for name in ("cache_params", "state") if name in taken), "past_key_values")


def _state(cache: Answer, label: Layer) -> Tensor:
    """The state of a block, one per text."""
    block = int(label) - 1
    if isinstance(cache, list):  # of RWKV: the last inputs of both halves, Σ weight · value, Σ weight, scale
        _, _, values, weights, _ = (part[:, :, block] for part in cache)
        return torch.as_tensor(values / weights)
    return cast("Carries", cache).get_recurrent_state(block)
