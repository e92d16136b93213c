"""The selective scan in Numba: one pass forward, one backward, over blocks of channels.

For each sequence, channel d and state n, with Δ = softplus(dt):

    h_t[n, d] = exp(Δ_t[d] A[n, d]) h_{t-1}[n, d] + Δ_t[d] u_t[d] B_t[n]
    y_t[d]    = Σ_n C_t[n] h_t[n, d] + D[d] u_t[d]
    out_t[d]  = y_t[d] · silu(z_t[d])

Channels are the inner loop: they lie side by side in memory and need no sum across SIMD lanes. A task is
one sequence × one block of channels, so that a block's states stay in the first-level cache. Nothing of
shape (batch, time, states, channels) is ever made: the forward pass keeps the state at every `CHUNK`-th
step, and the backward pass recomputes the steps between two of them.

Arrays over channels come flat, with the distance between two rows, so that a slice of a wider array (the
gate is the right half of a projection) needs no copy and still has unit stride.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

CHUNK = 16  # steps between kept states: with 16 states per channel they weigh as much as the input
BLOCK = 128  # channels per task

# Scratch is laid out in slots of one block. Fixed distances within one array let LLVM see that nothing
# overlaps, so that it vectorises. Per step: u, dt, Δ, Δu, y, z and the gradients of y, z, Δ, Δu.
U, DT, DELTA, DRIVE, Y, Z, OF_Y, OF_Z, OF_DELTA, OF_DRIVE = (BLOCK * slot for slot in range(10))
# Per state: A / ln 2, h and, on the way back, the gradients of h and A.
RATE, H, OF_H, OF_A = (BLOCK * slot for slot in range(4))
# Per step and state, on the way back: h before the step, and exp(ΔA).
BEFORE, DECAY = 0, BLOCK

# Sums may be reordered, but NaN and infinity keep their meaning: a broken activation must stay visible.
_FAST = {"reassoc", "contract", "arcp", "nsz"}
_inner = njit(fastmath=_FAST, error_model="numpy")
_kernel = njit(fastmath=_FAST, error_model="numpy", cache=True, nogil=True)

# 2^f = 1 + f Q(f) on |f| ≤ 1/2, minimax: with the rounding to float32, a relative error below 8e-8.
_Q0, _Q1, _Q2 = np.float32(0.69314718), np.float32(0.24022648), np.float32(0.055503324)
_Q3, _Q4, _Q5 = np.float32(0.009618438), np.float32(0.0013398901), np.float32(0.00015353342)
_ROUND = np.float32(12582912.0)  # 1.5 · 2²³: adding it leaves the nearest integer in the low bits
_ONE_BITS = np.int32(0x3F800000)
_LOWEST = np.float32(-126)
_LOG2_E = np.float32(1.4426950408889634)
_ONE, _TWO, _HALF = np.float32(1), np.float32(2), np.float32(0.5)
# artanh(s)/s = Σ s^2k / (2k+1); s ≤ 1/3, so the first term left out is below 2e-9.
_S1, _S2, _S3, _S4, _S5, _S6, _S7 = (np.float32(1 / (2 * k + 1)) for k in range(1, 8))


def _exp2(x: Any) -> Any:
    """2^x for x ≤ 0; for float32 a polynomial that vectorises, as Numba alone has no vector exponential."""
    return math.pow(2.0, x)


def _exp(x: Any) -> Any:
    """e^x for x ≤ 0."""
    return math.exp(x)


def _softplus(x: Any) -> Any:
    """log(1 + e^x) = max(x, 0) + log1p(v), v = e^-|x|; for float32, log1p(v) = 2 artanh(v / (2 + v))."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@overload(_exp2, jit_options={"fastmath": {"contract"}})  # reordering would undo the rounding trick
def _choose_exp2(x: Any) -> Any:
    if x != types.float32:
        return _exp2

    def exp2_float32(x: Any) -> Any:
        x = _LOWEST if x < _LOWEST else x  # written so that NaN stays NaN
        shifted = np.float32(x + _ROUND)
        f = x - (shifted - _ROUND)
        p = (((((_Q5 * f + _Q4) * f + _Q3) * f + _Q2) * f + _Q1) * f + _Q0) * f + _ONE
        bits = np.int32(np.int32(shifted.view(np.int32) << np.int32(23)) + _ONE_BITS)
        return p * bits.view(np.float32)

    return exp2_float32


@overload(_exp, jit_options={"fastmath": _FAST})
def _choose_exp(x: Any) -> Any:
    if x != types.float32:
        return _exp

    def exp_float32(x: Any) -> Any:
        return _exp2(x * _LOG2_E)

    return exp_float32


@overload(_softplus, jit_options={"fastmath": _FAST})
def _choose_softplus(x: Any) -> Any:
    if x != types.float32:
        return _softplus

    def softplus_float32(x: Any) -> Any:
        size = abs(x)
        v = _exp(-size)
        s = v / (_TWO + v)
        q = s * s
        series = ((((((_S7 * q + _S6) * q + _S5) * q + _S4) * q + _S3) * q + _S2) * q + _S1) * q + _ONE
        return _HALF * (x + size) + _TWO * s * series  # no max: x + |x| lets NaN through

    return softplus_float32


@_inner
def _sigmoid(x: Any) -> Any:
    v = _exp(-abs(x))
    return (v if x < 0 else _ONE) / (_ONE + v)


@_inner
def _load(scratch: np.ndarray, slot: int, flat: np.ndarray, at: int, width: int) -> None:
    """Fill a slot with `width` channels, and with zeros beyond: they stay zero all the way."""
    target, source = scratch[slot : slot + BLOCK], flat[at : at + width]
    for i in range(width):
        target[i] = source[i]
    for i in range(width, BLOCK):
        target[i] = 0


@_inner
def _store(flat: np.ndarray, at: int, width: int, scratch: np.ndarray, slot: int) -> None:
    target, source = flat[at : at + width], scratch[slot : slot + BLOCK]
    for i in range(width):
        target[i] = source[i]


@_inner
def _begin(step: np.ndarray, skip: np.ndarray) -> None:
    for i in range(BLOCK):
        delta = _softplus(step[DT + i])
        step[DELTA + i] = delta
        step[DRIVE + i] = delta * step[U + i]
        step[Y + i] = skip[i] * step[U + i]


@_inner
def _advance(step: np.ndarray, state: np.ndarray, b: Any, c: Any) -> None:
    """One step of one state."""
    for i in range(BLOCK):
        h = _exp2(step[DELTA + i] * state[RATE + i]) * state[H + i] + step[DRIVE + i] * b
        state[H + i] = h
        step[Y + i] += h * c


@_inner
def _gate(step: np.ndarray) -> None:
    for i in range(BLOCK):
        step[Y + i] *= step[Z + i] * _sigmoid(step[Z + i])


@_kernel
def scan_forward(
    first: int,
    last: int,
    shape: tuple[int, int, int, int],
    u: np.ndarray,
    u_row: int,
    dt: np.ndarray,
    dt_row: int,
    z: np.ndarray,
    z_row: int,
    rate: np.ndarray,
    B: np.ndarray,
    C: np.ndarray,
    D: np.ndarray,
    out: np.ndarray,
    kept: np.ndarray,
    final: np.ndarray,
) -> None:
    """Run tasks `first` to `last` of batch × blocks.

    `shape` is (batch, time, channels, states). `u`, `dt`, `z` are flat, `z` empty for no gate; `rate` is
    A / ln 2 (states, channels), not positive; `B`, `C` (batch · time, states); `D` (channels,). Written:
    `out` (flat), `kept` (batch, chunks, states, channels), the state before each chunk (empty: not wanted),
    and `final` (batch, states, channels).
    """
    _, n_steps, n_channels, n_states = shape
    n_blocks = (n_channels + BLOCK - 1) // BLOCK
    gated, keeping = z.size > 0, kept.size > 0
    step, skip = np.zeros(10 * BLOCK, u.dtype), np.zeros(BLOCK, u.dtype)
    states = np.zeros((n_states, 2 * BLOCK), u.dtype)
    for task in range(first, last):
        b, start = task // n_blocks, (task % n_blocks) * BLOCK
        width = min(BLOCK, n_channels - start)
        _load(skip, 0, D, start, width)
        for n in range(n_states):
            _load(states[n], RATE, rate[n], start, width)
        states[:, H:] = 0
        for t in range(n_steps):
            row = b * n_steps + t
            if keeping and t % CHUNK == 0:
                for n in range(n_states):
                    _store(kept[b, t // CHUNK, n], start, width, states[n], H)
            _load(step, U, u, row * u_row + start, width)
            _load(step, DT, dt, row * dt_row + start, width)
            _begin(step, skip)
            for n in range(n_states):
                _advance(step, states[n], B[row, n], C[row, n])
            if gated:
                _load(step, Z, z, row * z_row + start, width)
                _gate(step)
            _store(out, row * n_channels + start, width, step, Y)
        for n in range(n_states):
            _store(final[b, n], start, width, states[n], H)


@_inner
def _ungate(step: np.ndarray) -> None:
    """From the output's gradient to those of y and z."""
    for i in range(BLOCK):
        z, grad = step[Z + i], step[OF_Y + i]
        opening = _sigmoid(z)
        step[OF_Z + i] = grad * step[Y + i] * opening * (_ONE + z * (_ONE - opening))
        step[OF_Y + i] = grad * z * opening


@_inner
def _replay(step: np.ndarray, state: np.ndarray, moment: np.ndarray, b: Any, c: Any) -> None:
    """`_advance` that keeps what the way back needs."""
    for i in range(BLOCK):
        before = state[H + i]
        decay = _exp2(step[DELTA + i] * state[RATE + i])
        h = decay * before + step[DRIVE + i] * b
        moment[BEFORE + i] = before
        moment[DECAY + i] = decay
        state[H + i] = h
        step[Y + i] += h * c


@_inner
def _retreat(step: np.ndarray, state: np.ndarray, moment: np.ndarray, b: Any, c: Any) -> tuple[Any, Any]:
    """One step of one state, backwards, h included; returns the gradients of `b` and `c`."""
    grad_b, grad_c = step.dtype.type(0), step.dtype.type(0)
    for i in range(BLOCK):
        grad_c += step[OF_Y + i] * state[H + i]
        grad = state[OF_H + i] + step[OF_Y + i] * c
        grad_b += grad * step[DRIVE + i]
        step[OF_DRIVE + i] += grad * b
        grad *= moment[DECAY + i]
        state[OF_H + i] = grad
        before = moment[BEFORE + i]
        state[H + i] = before
        grad *= before
        state[OF_A + i] += grad * step[DELTA + i]
        step[OF_DELTA + i] += grad * state[RATE + i]
    return grad_b, grad_c


@_inner
def _finish(step: np.ndarray, skip: np.ndarray, of_skip: np.ndarray, ln2: Any) -> None:
    """The way back through `_begin`; the gradients of dt and u end in the slots of Δ and Δu."""
    for i in range(BLOCK):
        of_drive = step[OF_DRIVE + i]
        of_delta = step[OF_DELTA + i] * ln2 + of_drive * step[U + i]
        step[OF_DELTA + i] = of_delta * _sigmoid(step[DT + i])
        step[OF_DRIVE + i] = of_drive * step[DELTA + i] + step[OF_Y + i] * skip[i]
        of_skip[i] += step[OF_Y + i] * step[U + i]


@_kernel
def scan_backward(
    first: int,
    last: int,
    shape: tuple[int, int, int, int],
    u: np.ndarray,
    u_row: int,
    dt: np.ndarray,
    dt_row: int,
    z: np.ndarray,
    z_row: int,
    rate: np.ndarray,
    B: np.ndarray,
    C: np.ndarray,
    D: np.ndarray,
    kept: np.ndarray,
    grad: np.ndarray,
    grad_row: int,
    grad_u: np.ndarray,
    grad_dt: np.ndarray,
    grad_z: np.ndarray,
    grad_A: np.ndarray,
    grad_B: np.ndarray,
    grad_C: np.ndarray,
    grad_D: np.ndarray,
) -> None:
    """The gradients of `scan_forward`, from `grad`, that of its output.

    Written: `grad_u`, `grad_dt`, `grad_z` (flat, batch · time · channels); `grad_A` (batch, states, channels)
    and `grad_D` (batch, channels), to be summed over the batch; `grad_B`, `grad_C` (blocks, batch · time,
    states), to be summed over the blocks: tasks never write to the same place.
    """
    _, n_steps, n_channels, n_states = shape
    n_blocks = (n_channels + BLOCK - 1) // BLOCK
    gated = z.size > 0
    ln2 = u.dtype.type(math.log(2))
    skip, of_skip = np.zeros(BLOCK, u.dtype), np.zeros(BLOCK, u.dtype)
    steps = np.zeros((CHUNK, 10 * BLOCK), u.dtype)
    states = np.zeros((n_states, 4 * BLOCK), u.dtype)
    path = np.zeros((CHUNK, n_states, 2 * BLOCK), u.dtype)
    for task in range(first, last):
        b, block = task // n_blocks, task % n_blocks
        start = block * BLOCK
        width = min(BLOCK, n_channels - start)
        _load(skip, 0, D, start, width)
        of_skip[:] = 0
        states[:] = 0
        for n in range(n_states):
            _load(states[n], RATE, rate[n], start, width)
        for chunk in range((n_steps - 1) // CHUNK, -1, -1):
            begin = b * n_steps + chunk * CHUNK
            n_here = min(CHUNK, n_steps - chunk * CHUNK)
            for n in range(n_states):
                _load(states[n], H, kept[b, chunk, n], start, width)
            for k in range(n_here):
                row, step = begin + k, steps[k]
                _load(step, U, u, row * u_row + start, width)
                _load(step, DT, dt, row * dt_row + start, width)
                _load(step, OF_Y, grad, row * grad_row + start, width)
                _begin(step, skip)
                for n in range(n_states):
                    _replay(step, states[n], path[k, n], B[row, n], C[row, n])
                if gated:
                    _load(step, Z, z, row * z_row + start, width)
                    _ungate(step)
                    _store(grad_z, row * n_channels + start, width, step, OF_Z)
            for k in range(n_here - 1, -1, -1):
                row, step = begin + k, steps[k]
                step[OF_DELTA:] = 0
                for n in range(n_states):
                    grad_B[block, row, n], grad_C[block, row, n] = _retreat(
                        step, states[n], path[k, n], B[row, n], C[row, n]
                    )
                _finish(step, skip, of_skip, ln2)
                _store(grad_dt, row * n_channels + start, width, step, OF_DELTA)
                _store(grad_u, row * n_channels + start, width, step, OF_DRIVE)
        for n in range(n_states):
            _store(grad_A[b, n], start, width, states[n], OF_A)
        _store(grad_D[b], start, width, of_skip, 0)
