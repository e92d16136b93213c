"""The two slow steps of Mamba on a CPU as differentiable operations: the scan and the convolution."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from thinkalike.errors import InvalidInput
from thinkalike.systems.mamba.conv_kernels import conv_backward, conv_forward
from thinkalike.systems.mamba.scan_kernels import CHUNK, scan_backward, scan_forward
from thinkalike.systems.mamba.scan_maths import BLOCK

Operands: TypeAlias = tuple[np.ndarray | int, ...]
"""What a kernel reads: flat arrays, and distances between their rows"""


class Context(Protocol):
    """What autograd hands from the forward to the backward pass."""

    needs_input_grad: tuple[bool, ...]
    saved_tensors: tuple[Tensor, ...]

    def save_for_backward(self, *tensors: Tensor) -> None: ...
    def mark_non_differentiable(self, *tensors: Tensor) -> None: ...


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
        (channels, states), not positive, or (channels, 1) if all states decay alike, as in Mamba-2.
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
    n_batch, n_steps, n_channels = u.shape
    n_states = B.shape[-1]
    _check_shape("dt", dt, u.shape)
    _check_shape("A", A, (n_channels, 1 if A.shape[-1] == 1 else n_states))
    _check_shape("B", B, (n_batch, n_steps, n_states))
    _check_shape("C", C, (n_batch, n_steps, n_states))
    _check_shape("D", D, (n_channels,))
    if z is not None:
        _check_shape("z", z, u.shape)
    if A.max() > 0:
        raise InvalidInput(
            f"A must not be positive, or the states explode; its largest value is {A.max():.3g}."
        )
    dtype = _working_dtype(u)
    y, state = _SelectiveScan.apply(*(None if x is None else x.to(dtype) for x in (u, dt, A, B, C, D, z)))
    return y.to(u.dtype), state


def silu_convolution(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    r"""Convolve every channel with its own past: :math:`\mathrm{silu}(b + \sum_k w_k x_{t-K+1+k})`.

    `x` (batch, time, channels), and so the result; `weight` (channels, taps), the last for the present;
    `bias` (channels,). Differentiable; float64 is computed in float64, everything else in float32.
    """
    n_channels, n_taps = x.shape[-1], weight.shape[-1]
    _check_shape("weight", weight, (n_channels, n_taps))
    bias = weight.new_zeros(n_channels) if bias is None else bias
    _check_shape("bias", bias, (n_channels,))
    dtype = _working_dtype(x)
    return _SiluConvolution.apply(x.to(dtype), weight.to(dtype), bias.to(dtype)).to(x.dtype)


class _SelectiveScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Context, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        u, _, _, B, *_ = inputs
        n_batch, n_steps, n_channels = u.shape
        n_states = B.shape[2]
        out, final = u.new_empty(u.shape), u.new_empty(n_batch, n_states, n_channels)
        n_chunks = -(-n_steps // CHUNK) if any(ctx.needs_input_grad) else 0
        kept = u.new_empty(n_batch, n_chunks, n_states, n_channels)
        _run(scan_forward, (*u.shape, n_states), _scan_inputs(*inputs), [out, kept, final])
        ctx.save_for_backward(*inputs, kept)
        state = final.transpose(1, 2)
        ctx.mark_non_differentiable(state)
        return out, state

    @staticmethod
    @once_differentiable
    def backward(ctx: Context, grad: Tensor, of_state: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, kept = ctx.saved_tensors
        u, _, A, B, _, _, z = inputs
        n_batch, _, n_channels = u.shape
        n_states = B.shape[2]
        inputs[2] = A.expand(-1, n_states)
        grad_u, grad_dt, grad_z = (u.new_empty(u.shape) for _ in range(3))
        grad_A, grad_D = u.new_empty(n_batch, n_states, n_channels), u.new_empty(n_batch, n_channels)
        grad_B, grad_C = (u.new_empty(_n_blocks(n_channels), *B.shape) for _ in range(2))
        gradients = [grad_u, grad_dt, grad_z, grad_A, grad_D, grad_B, grad_C]
        everything = (*_scan_inputs(*inputs), _flat(kept), *_rows(grad))
        _run(scan_backward, (*u.shape, n_states), everything, gradients)
        summed_A, summed_B, summed_C, summed_D = (x.sum(0) for x in (grad_A, grad_B, grad_C, grad_D))
        return (
            grad_u,
            grad_dt,
            summed_A.t().sum_to_size(A.shape),
            summed_B,
            summed_C,
            summed_D,
            None if z is None else grad_z,
        )


class _SiluConvolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Context, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        out = x.new_empty(x.shape)
        ctx.save_for_backward(x, weight, bias)
        _run(conv_forward, (*x.shape, weight.shape[1]), _conv_inputs(x, weight, bias), [out])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Context, grad: Tensor) -> tuple[Tensor, ...]:
        x, weight, bias = ctx.saved_tensors
        n_channels, n_taps = weight.shape
        grad_x, grad_bias = x.new_empty(x.shape), x.new_empty(len(x), n_channels)
        grad_weight = x.new_empty(len(x), n_taps, n_channels)
        inputs = (*_conv_inputs(x, weight, bias), *_rows(grad))
        _run(conv_backward, (*x.shape, n_taps), inputs, [grad_x, grad_weight, grad_bias])
        return grad_x, grad_weight.sum(0).t().flip(1), grad_bias.sum(0)


def _scan_inputs(
    u: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, z: Tensor | None
) -> Operands:
    gate = (_flat(u.new_empty(0)), 0) if z is None else _rows(z)
    return *_rows(u), *_rows(dt), *gate, _flat(A.t() / math.log(2)), _flat(B), _flat(C), _flat(D)


def _conv_inputs(x: Tensor, weight: Tensor, bias: Tensor) -> Operands:
    return *_rows(x), _flat(weight.flip(1).t()), _flat(bias)


def _flat(tensor: Tensor) -> np.ndarray:
    return tensor.detach().contiguous().view(-1).numpy()


def _rows(tensor: Tensor) -> tuple[np.ndarray, int]:
    """A (batch, time, channels) tensor as a flat array and the distance between rows; a copy if need be."""
    tensor = tensor.detach()
    n_batch, n_steps, n_channels = tensor.shape
    stride = tensor.stride(1)
    if tensor.stride(2) != 1 or stride < n_channels or (n_batch > 1 and tensor.stride(0) != n_steps * stride):
        tensor, stride = tensor.contiguous(), n_channels
    length = (n_batch * n_steps - 1) * stride + n_channels
    return tensor.as_strided((length,), (1,)).numpy(), stride


def _run(
    kernel: Callable[..., None], shape: tuple[int, ...], inputs: Operands, results: list[Tensor]
) -> None:
    """All tasks of `kernel`, which holds no lock, in as many threads as torch uses."""
    arguments = tuple(shape), inputs, tuple(_flat(result) for result in results)
    n_tasks = shape[0] * _n_blocks(shape[2])
    n_threads = min(torch.get_num_threads(), n_tasks)
    if n_threads == 1:
        kernel(0, n_tasks, *arguments)
        return
    with ThreadPoolExecutor(n_threads) as threads:  # for one call: nothing that a fork could break
        parts = [threads.submit(kernel, *part, *arguments) for part in _parts(n_tasks, n_threads)]
    for part in parts:
        part.result()


def _parts(n_tasks: int, n_threads: int) -> list[tuple[int, int]]:
    """Large parts first, small ones at the end, so that a thread that started late is not waited for long."""
    parts, first = [], 0
    while first < n_tasks:
        last = first + max(1, (n_tasks - first) // (2 * n_threads))
        parts.append((first, last))
        first = last
    return parts


def _n_blocks(n_channels: int) -> int:
    return -(-n_channels // BLOCK)


def _working_dtype(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def _check_shape(name: str, tensor: Tensor, expected: tuple[int, ...]) -> None:
    # The kernels do not look: a wrong shape would read beyond the end.
    if tensor.shape != torch.Size(expected) or not tensor.numel():
        raise InvalidInput(
            f"{name} has the shape {tuple(tensor.shape)}; expected {tuple(expected)}, not empty."
        )
    if tensor.device.type != "cpu":
        raise InvalidInput(
            f"{name} is on {tensor.device}; the fused scan runs on the CPU only: use {name}.cpu()."
        )
