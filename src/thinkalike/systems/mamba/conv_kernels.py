"""Mamba's short convolution over time and the SiLU after it in Numba, forward and backward.

    v_t[d] = bias[d] + Σ_k weight[k, d] x_{t-k}[d],    out_t[d] = silu(v_t[d]),    x = 0 before the start

Blocks of channels, tasks, slots and flat arrays are as in `scan_kernels`. Of the past, as many steps as there
are taps are kept in a ring: step t is in slot t mod taps.
"""

from __future__ import annotations

import numpy as np

from thinkalike.systems.mamba.scan_maths import (
    BLOCK,
    ONE,
    inner,
    kernel,
    load,
    sigmoid,
    store,
)

# Slots of one step: v, the bias, and their gradients.
V, BIAS, OF_V, OF_BIAS = (BLOCK * slot for slot in range(4))


@inner
def _convolve(width: int, step: np.ndarray, past: np.ndarray, taps: np.ndarray, t: int) -> None:
    n_taps = taps.shape[0]
    for i in range(width):
        step[0, V + i] = step[0, BIAS + i]
    for k in range(n_taps):
        then = (t - k) % n_taps
        for i in range(width):
            step[0, V + i] += past[then, i] * taps[k, i]


@inner
def _silu(width: int, step: np.ndarray) -> None:
    for i in range(width):
        v = step[0, V + i]
        step[0, V + i] = v * sigmoid(v)


@kernel
def conv_forward(
    first: int,
    last: int,
    shape: tuple[int, int, int, int],
    inputs: tuple[np.ndarray, int, np.ndarray, np.ndarray],
    results: tuple[np.ndarray, ...],
) -> None:
    """Run tasks `first` to `last` of batch × blocks; `shape` is (batch, time, channels, taps).

    `inputs`, all flat: x with the distance between its rows; the weight (taps, channels), the tap of the
    present first; the bias (channels,). Written to `results`: the output (batch, time, channels).
    """
    x, x_row, weight, bias = inputs
    (out,) = results
    _, n_steps, n_channels, n_taps = shape
    n_blocks = (n_channels + BLOCK - 1) // BLOCK
    step = np.zeros((1, 4 * BLOCK), x.dtype)
    past, taps = np.zeros((n_taps, BLOCK), x.dtype), np.zeros((n_taps, BLOCK), x.dtype)
    for task in range(first, last):
        b, start = task // n_blocks, (task % n_blocks) * BLOCK
        width = min(BLOCK, n_channels - start)
        load(step, 0, BIAS, bias, start, width)
        for k in range(n_taps):
            load(taps, k, 0, weight, k * n_channels + start, width)
        past[:] = 0
        for t in range(n_steps):
            row = b * n_steps + t
            load(past, t % n_taps, 0, x, row * x_row + start, width)
            _convolve(width, step, past, taps, t)
            _silu(width, step)
            store(out, row * n_channels + start, width, step, 0, V)


@inner
def _unsilu(width: int, step: np.ndarray) -> None:
    """From the output's gradient to that of v, in the same slot."""
    for i in range(width):
        v = step[0, V + i]
        opening = sigmoid(v)
        step[0, OF_V + i] *= opening * (ONE + v * (ONE - opening))
        step[0, OF_BIAS + i] += step[0, OF_V + i]


@inner
def _spread(
    width: int,
    step: np.ndarray,
    past: np.ndarray,
    of_past: np.ndarray,
    then: int,
    taps: np.ndarray,
    of_taps: np.ndarray,
    k: int,
) -> None:
    for i in range(width):
        of_taps[k, i] += past[then, i] * step[0, OF_V + i]
        of_past[then, i] += taps[k, i] * step[0, OF_V + i]


@kernel
def conv_backward(
    first: int,
    last: int,
    shape: tuple[int, int, int, int],
    inputs: tuple[np.ndarray, int, np.ndarray, np.ndarray, np.ndarray, int],
    results: tuple[np.ndarray, ...],
) -> None:
    """The gradients of `conv_forward`: to its `inputs` comes the output's gradient.

    Written to `results`: the gradients of x (batch, time, channels), and of the weight (batch, taps,
    channels) and the bias (batch, channels), to be summed over the batch: tasks never write to one place.
    """
    x, x_row, weight, bias, grad, grad_row = inputs
    grad_x, grad_weight, grad_bias = results
    _, n_steps, n_channels, n_taps = shape
    n_blocks = (n_channels + BLOCK - 1) // BLOCK
    step = np.zeros((1, 4 * BLOCK), x.dtype)
    past, taps = np.zeros((n_taps, BLOCK), x.dtype), np.zeros((n_taps, BLOCK), x.dtype)
    of_past, of_taps = np.zeros((n_taps, BLOCK), x.dtype), np.zeros((n_taps, BLOCK), x.dtype)
    for task in range(first, last):
        b, start = task // n_blocks, (task % n_blocks) * BLOCK
        width = min(BLOCK, n_channels - start)
        load(step, 0, BIAS, bias, start, width)
        for k in range(n_taps):
            load(taps, k, 0, weight, k * n_channels + start, width)
        past[:] = 0
        of_past[:] = 0
        of_taps[:] = 0
        step[:, OF_BIAS:] = 0
        # The gradient of a step is whole once its last tap has been used: n_taps - 1 steps later.
        for t in range(n_steps + n_taps - 1):
            row = b * n_steps + t
            if t < n_steps:
                load(past, t % n_taps, 0, x, row * x_row + start, width)
                load(step, 0, OF_V, grad, row * grad_row + start, width)
                _convolve(width, step, past, taps, t)
                _unsilu(width, step)
                for k in range(n_taps):
                    _spread(width, step, past, of_past, (t - k) % n_taps, taps, of_taps, k)
            done = (t + 1) % n_taps
            if t >= n_taps - 1:
                store(grad_x, (row - n_taps + 1) * n_channels + start, width, of_past, done, 0)
            for i in range(width):
                of_past[done, i] = 0
        for k in range(n_taps):
            store(grad_weight, (b * n_taps + k) * n_channels + start, width, of_taps, k, 0)
        store(grad_bias, b * n_channels + start, width, step, 0, OF_BIAS)
