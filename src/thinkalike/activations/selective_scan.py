"""Mamba on a CPU: the selective scan as one fused, differentiable operation, and its way into a loaded model.

transformers' fallback indexes a (batch, channels, time, states) tensor step by step; its backward pass is
slower still. `fused_scan` routes the mixers of one model through `selective_scan` while its block runs:

    with fused_scan(model):
        loss = model(ids, labels=ids).loss
        loss.backward()

Set `THINKALIKE_FUSED_SCAN=0`, or pass `enabled=False`, to have transformers' own path back.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from thinkalike.activations.scan_kernels import BLOCK, CHUNK, scan_backward, scan_forward
from thinkalike.errors import InvalidInput

SWITCH = "THINKALIKE_FUSED_SCAN"


def selective_scan(
    u: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, *, z: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""Run a selective state-space model over time (Gu and Dao, 2023, algorithm 2), differentiably.

    .. math:: h_t = e^{\Delta_t A} h_{t-1} + \Delta_t u_t B_t, \quad
              y_t = (C_t^\top h_t + D u_t) \cdot \mathrm{silu}(z_t), \quad \Delta = \mathrm{softplus}(dt)

    Parameters
    ----------
    u, dt, z
        Input, time step before the softplus (bias included) and gate, each (batch, time, channels).
    A
        (channels, states), not positive.
    B, C
        (batch, time, states).
    D
        (channels,), the skip connection.

    Returns
    -------
    tuple
        y (batch, time, channels) in the dtype of `u`, and the last state (batch, channels, states), which
        carries no gradient. float64 is computed in float64, everything else in float32.
    """
    if A.max() > 0:
        raise InvalidInput(
            f"A must not be positive, or states grow without bound; the largest value is {A.max():.3g}."
        )
    dtype = torch.float64 if u.dtype == torch.float64 else torch.float32
    inputs = [None if x is None else x.to(dtype) for x in (u, dt, A, B, C, D, z)]
    y, state = _SelectiveScan.apply(*inputs)
    return y.to(u.dtype), state


class _SelectiveScan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, u: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, z: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        shape = (*u.shape, A.shape[1])
        n_batch, n_steps, n_channels, n_states = shape
        out = u.new_empty(u.shape)
        final = u.new_empty(n_batch, n_states, n_channels)
        n_chunks = -(-n_steps // CHUNK) if any(ctx.needs_input_grad) else 0
        kept = u.new_empty(n_batch, n_chunks, n_states, n_channels)
        inputs, results = _arguments(u, dt, A, B, C, D, z), (_array(kept), _array(final))
        _in_threads(scan_forward, shape, *inputs, _array(out).ravel(), *results)
        ctx.save_for_backward(u, dt, A, B, C, D, z, kept)
        state = final.transpose(1, 2)
        ctx.mark_non_differentiable(state)
        return out, state

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        u, dt, A, B, C, D, z, kept = ctx.saved_tensors
        shape = (*u.shape, A.shape[1])
        n_batch, n_steps, n_channels, n_states = shape
        grad_u, grad_dt = u.new_empty(u.shape), u.new_empty(u.shape)
        grad_z = u.new_empty(u.shape if z is not None else 0)
        grad_A = u.new_empty(n_batch, n_states, n_channels)
        grad_D = u.new_empty(n_batch, n_channels)
        grad_B = u.new_empty(_n_blocks(n_channels), n_batch * n_steps, n_states)
        grad_C = torch.empty_like(grad_B)
        _in_threads(
            scan_backward,
            shape,
            *_arguments(u, dt, A, B, C, D, z),
            _array(kept),
            *_rows(grad),
            *(_array(g).ravel() for g in (grad_u, grad_dt, grad_z)),
            *(_array(g) for g in (grad_A, grad_B, grad_C, grad_D)),
        )
        return (
            grad_u,
            grad_dt,
            grad_A.sum(0).t(),
            grad_B.sum(0).view(B.shape),
            grad_C.sum(0).view(C.shape),
            grad_D.sum(0),
            grad_z if z is not None else None,
        )


def _arguments(
    u: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, z: Tensor | None
) -> tuple[Any, ...]:
    gate = _rows(z) if z is not None else (_array(u.new_empty(0)), 0)
    states = (_array(x.reshape(-1, x.shape[-1])) for x in (B, C))
    return (*_rows(u), *_rows(dt), *gate, _array(A.t() / math.log(2)), *states, _array(D))


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()


def _rows(tensor: Tensor) -> tuple[np.ndarray, int]:
    """A (batch, time, channels) tensor as a flat array and the distance between rows; a copy if need be."""
    tensor = tensor.detach()
    n_batch, n_steps, n_channels = tensor.shape
    stride = tensor.stride(1)
    if tensor.stride(2) != 1 or stride < n_channels or (n_batch > 1 and tensor.stride(0) != n_steps * stride):
        tensor, stride = tensor.contiguous(), n_channels
    length = (n_batch * n_steps - 1) * stride + n_channels
    return tensor.as_strided((length,), (1,)).numpy(), stride


def _n_blocks(n_channels: int) -> int:
    return -(-n_channels // BLOCK)


def _in_threads(kernel: Callable[..., None], shape: tuple[int, int, int, int], *arguments: Any) -> None:
    """Share the tasks of `kernel`, which holds no lock, among as many threads as torch uses.

    Threads live for one call: nothing to close, nothing that a fork could break.
    """
    n_tasks = shape[0] * _n_blocks(shape[2])
    n_threads = max(1, min(torch.get_num_threads(), n_tasks))
    edges = [n_tasks * i // n_threads for i in range(n_threads + 1)]
    others = [
        threading.Thread(target=kernel, args=(*edge, shape, *arguments))
        for edge in itertools.pairwise(edges[1:])
    ]
    for thread in others:
        thread.start()
    kernel(edges[0], edges[1], shape, *arguments)
    for thread in others:
        thread.join()


@contextmanager
def fused_scan(model: nn.Module, *, enabled: bool = True) -> Iterator[None]:
    """While the block runs, let the Mamba mixers of `model` use `selective_scan` where they are on a CPU.

    Only these modules are touched, and they are as before afterwards. Models without Mamba are left alone, as
    are tensors on other devices and steps of one token from a cache. Off with `enabled=False` or
    `THINKALIKE_FUSED_SCAN=0`.
    """
    mixers = _mixers(model) if enabled and os.environ.get(SWITCH, "1") != "0" else []
    for mixer, forward in mixers:
        mixer.forward = functools.partial(forward, mixer, mixer.forward)
    try:
        yield
    finally:
        for mixer, _ in mixers:
            del mixer.forward


def _mixers(model: nn.Module) -> list[tuple[nn.Module, Callable[..., Tensor]]]:
    # A module with a forward of its own (offloaded by accelerate, or already fused) keeps it.
    return [
        (module, FUSED[type(module).__name__])
        for module in model.modules()
        if type(module).__name__ in FUSED and "forward" not in vars(module)
    ]


def _mamba_forward(
    mixer: Any,
    original: Callable[..., Tensor],
    hidden_states: Tensor,
    cache_params: Any = None,
    attention_mask: Tensor | None = None,
    **kwargs: Any,
) -> Tensor:
    """What transformers' `MambaMixer` computes, in (batch, time, channels) throughout."""
    if _not_for_us(hidden_states, cache_params, kwargs):
        return original(hidden_states, cache_params=cache_params, attention_mask=attention_mask, **kwargs)
    x, gate = mixer.in_proj(_masked(hidden_states, attention_mask)).chunk(2, dim=-1)
    x = _masked(_causal_convolution(mixer, x, cache_params), attention_mask)
    sizes = [mixer.time_step_rank, mixer.ssm_state_size, mixer.ssm_state_size]
    dt, B, C = mixer.x_proj(x).split(sizes, dim=-1)
    A = -torch.exp(mixer.A_log.float())
    y, state = selective_scan(x, mixer.dt_proj(dt), A, B, C, mixer.D, z=gate)
    if cache_params is not None:
        cache_params.update_recurrent_state(state, mixer.layer_idx)
    return mixer.out_proj(y.to(hidden_states.dtype))


def _causal_convolution(mixer: Any, x: Tensor, cache_params: Any) -> Tensor:
    """The depthwise convolution over time and its activation, (batch, time, channels) to the same."""
    n_steps = x.shape[1]
    x = x.transpose(1, 2)
    if cache_params is not None:
        x = cache_params.update_conv_state(x, mixer.layer_idx, conv_kernel_size=mixer.conv_kernel_size)
    length = x.shape[-1]
    return mixer.act(mixer.conv1d(x)[..., :length][..., -n_steps:].transpose(1, 2))


def _masked(x: Tensor, mask: Tensor | None) -> Tensor:
    return x if mask is None else (x * mask[:, :, None]).to(x.dtype)


def _not_for_us(hidden_states: Tensor, cache_params: Any, kwargs: dict[str, Any]) -> bool:
    decoding = cache_params is not None and hidden_states.shape[1] == 1
    packed = any(kwargs.get(name) is not None for name in ("seq_idx", "cu_seqlens"))
    return hidden_states.device.type != "cpu" or decoding or packed or torch.compiler.is_compiling()


FUSED: dict[str, Callable[..., Tensor]] = {"MambaMixer": _mamba_forward}
