"""Mamba on a CPU: the fused scan's way into a loaded model, for as long as a block runs.

transformers' fallback for Mamba indexes a (batch, channels, time, states) tensor step by step, and its
backward pass is slower still; the one for Mamba-2 pads every text to 256 tokens. Here the mixers of one
model, and of no other, go through `selective_scan`, and its norms take less memory:

    with fused_scan(model):
        loss = model(ids, labels=ids).loss
        loss.backward()

Set `THINKALIKE_FUSED_SCAN=0`, or pass `enabled=False`, to have transformers' own path back.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn

from thinkalike.systems.mamba.scan_operations import selective_scan, silu_convolution

__all__ = ["SWITCH", "fused_scan", "selective_scan"]

SWITCH = "THINKALIKE_FUSED_SCAN"
Layer = Callable[[Tensor], Tensor]


class Cache(Protocol):
    """What transformers hands from token to token."""

    def get_recurrent_state(self, layer_idx: int, state_idx: int) -> Tensor | None: ...
    def update_recurrent_state(self, states: Tensor, layer_idx: int) -> object: ...
    def update_conv_state(self, states: Tensor, layer_idx: int, *, conv_kernel_size: int) -> object: ...


class Mixer(Protocol):
    """What the mixers of both versions have, as transformers calls it."""

    layer_idx: int
    activation: str
    conv_kernel_size: int
    ssm_state_size: int
    conv1d: nn.Conv1d
    A_log: Tensor
    D: Tensor
    in_proj: Layer
    out_proj: Layer


class MambaMixer(Mixer, Protocol):
    time_step_rank: int
    x_proj: Layer
    dt_proj: Layer


class Mamba2Mixer(Mixer, Protocol):
    intermediate_size: int
    n_groups: int
    conv_dim: int
    num_heads: int
    head_dim: int
    dt_bias: Tensor
    norm: Callable[[Tensor, Tensor], Tensor]


class Norm(Protocol):
    weight: Tensor
    variance_epsilon: float


@contextmanager
def fused_scan(model: nn.Module, *, enabled: bool = True) -> Iterator[None]:
    """While the block runs, let the Mamba mixers of `model` use the fused scan where they are on a CPU.

    Only these and the norms are touched, and they are as before afterwards. Models without Mamba are left
    alone, as are tensors on other devices and tokens that continue a cache. Off with `enabled=False` or
    `THINKALIKE_FUSED_SCAN=0`.
    """
    replaced: list[nn.Module] = []
    try:
        for module in model.modules() if enabled and os.environ.get(SWITCH, "1") != "0" else []:
            forward = FASTER.get(type(module).__name__)
            # A module with a forward of its own (offloaded by accelerate, or already fused) keeps it.
            if forward and "forward" not in vars(module):
                module.forward = functools.partial(forward, module, module.forward)
                replaced.append(module)
        yield
    finally:
        for module in replaced:
            del module.forward


def _mix(
    fused: Callable[..., Tensor],
    mixer: Mixer,
    original: Callable[..., Tensor],
    hidden_states: Tensor,
    cache_params: Cache | None = None,
    attention_mask: Tensor | None = None,
    **kwargs: object,
) -> Tensor:
    """The fused forward of `mixer` where it applies, else its own."""
    packed = any(kwargs.get(name) is not None for name in ("seq_idx", "cu_seqlens"))
    unbounded = tuple(getattr(mixer, "time_step_limit", UNBOUNDED)) == UNBOUNDED
    if (
        _is_ours(hidden_states)
        and unbounded
        and mixer.activation in SILU
        and not packed
        and not _continues(mixer, cache_params)
    ):
        return fused(mixer, hidden_states, cache_params, attention_mask)
    return original(hidden_states, cache_params=cache_params, attention_mask=attention_mask, **kwargs)


def _is_ours(x: Tensor) -> bool:
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def _continues(mixer: Mixer, cache_params: Cache | None) -> bool:
    """Whether there is a state to go on from."""
    return (
        cache_params is not None
        and cache_params.get_recurrent_state(mixer.layer_idx, state_idx=0) is not None
    )


def _mamba(
    mixer: MambaMixer, hidden_states: Tensor, cache_params: Cache | None, mask: Tensor | None
) -> Tensor:
    """What transformers' `MambaMixer` computes, in (batch, time, channels) throughout."""
    x, gate = mixer.in_proj(_masked(hidden_states, mask)).chunk(2, dim=-1)
    x = _masked(_convolved(mixer, x, cache_params), mask)
    dt, B, C = mixer.x_proj(x).split(
        [mixer.time_step_rank, mixer.ssm_state_size, mixer.ssm_state_size], dim=-1
    )
    A = -torch.exp(mixer.A_log.float())
    y, state = selective_scan(x, mixer.dt_proj(dt), A, B, C, mixer.D, z=gate)
    if cache_params is not None:
        cache_params.update_recurrent_state(state, mixer.layer_idx)
    return mixer.out_proj(y)


def _mamba2(
    mixer: Mamba2Mixer, hidden_states: Tensor, cache_params: Cache | None, mask: Tensor | None
) -> Tensor:
    """What transformers' `Mamba2Mixer` computes: a head's channels share Δ and A, a group's share B and C."""
    n_inner, n_groups, n_states = mixer.intermediate_size, mixer.n_groups, mixer.ssm_state_size
    projected = mixer.in_proj(_masked(hidden_states, mask))
    gate, x, dt = projected.split([n_inner, mixer.conv_dim, mixer.num_heads], dim=-1)
    x = _masked(_convolved(mixer, x, cache_params), mask).float()
    x, B, C = x.split([n_inner, n_groups * n_states, n_groups * n_states], dim=-1)
    dt, A, D = (
        per_head.float().repeat_interleave(mixer.head_dim, dim=-1)
        for per_head in (dt + mixer.dt_bias, -torch.exp(mixer.A_log.float()), mixer.D)
    )
    groups = [
        selective_scan(*parts)
        for parts in zip(
            *(per_channel.chunk(n_groups, dim=-1) for per_channel in (x, dt)),
            A[:, None].chunk(n_groups),
            *(per_group.chunk(n_groups, dim=-1) for per_group in (B, C)),
            D.chunk(n_groups),
            strict=True,
        )
    ]
    y, state = (torch.cat(parts, dim) for parts, dim in zip(zip(*groups, strict=True), (-1, 1), strict=True))
    if cache_params is not None:
        heads = state.view(len(x), mixer.num_heads, mixer.head_dim, n_states)
        cache_params.update_recurrent_state(heads, layer_idx=mixer.layer_idx)
    return mixer.out_proj(mixer.norm(y, gate).to(hidden_states.dtype))


def _normed(norm: Norm, original: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """What transformers' `MambaRMSNorm` computes; without gradients it takes two arrays of this size less."""
    if not _is_ours(x) or norm.weight.dtype != x.dtype:
        return original(x)
    values = x.float()
    mean_square = torch.linalg.vector_norm(values, dim=-1, keepdim=True).square() / x.shape[-1]
    scaled = values * torch.rsqrt(mean_square + norm.variance_epsilon)
    return scaled.to(x.dtype).mul_(norm.weight)


def _convolved(mixer: Mixer, x: Tensor, cache_params: Cache | None) -> Tensor:
    """The depthwise convolution over time and its activation, (batch, time, channels) to the same."""
    if cache_params is not None:
        taps = mixer.conv_kernel_size
        cache_params.update_conv_state(x.transpose(1, 2), mixer.layer_idx, conv_kernel_size=taps)
    return silu_convolution(x, mixer.conv1d.weight.squeeze(1), mixer.conv1d.bias)


def _masked(x: Tensor, mask: Tensor | None) -> Tensor:
    return x if mask is None or (mask == 1).all() else (x * mask[:, :, None]).to(x.dtype)


SILU = ("silu", "swish")
UNBOUNDED = (0.0, math.inf)
FASTER: dict[str, Callable[..., Tensor]] = {
    "MambaMixer": functools.partial(_mix, _mamba),
    "Mamba2Mixer": functools.partial(_mix, _mamba2),
    "MambaRMSNorm": _normed,
    "Mamba2RMSNorm": _normed,
}
