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

import numpy as np

from thinkalike.systems.mamba.scan_maths import (
    BLOCK,
    ONE,
    exp2,
    inner,
    kernel,
    load,
    sigmoid,
    softplus,
    store,
)

CHUNK = 16  # steps between kept states: with 16 states per channel they weigh as much as the input

# Scratch is laid out in slots of one block. Fixed distances within one array let LLVM see that nothing
# overlaps, so that it vectorises. Per step: u, dt, Δ, Δu, y, z and the gradients of y, z, Δ, Δu.
U, DT, DELTA, DRIVE, Y, Z, OF_Y, OF_Z, OF_DELTA, OF_DRIVE = (BLOCK * slot for slot in range(10))
SHARED = OF_Y  # forward only: exp(ΔA) where it is the same for all states
# Per state: A / ln 2, h and, on the way back, the gradients of h and A.
RATE, H, OF_H, OF_A = (BLOCK * slot for slot in range(4))
# Per step and state, on the way back: h before the step, and exp(ΔA).
BEFORE, DECAY = 0, BLOCK


@inner
def _begin(width: int, steps: np.ndarray, k: int, skip: np.ndarray) -> None:
    for i in range(width):
        delta = softplus(steps[k, DT + i])
        steps[k, DELTA + i] = delta
        steps[k, DRIVE + i] = delta * steps[k, U + i]
        steps[k, Y + i] = skip[0, i] * steps[k, U + i]


@inner
def _advance(width: int, steps: np.ndarray, k: int, states: np.ndarray, n: int, b: float, c: float) -> None:
    """One step of one state."""
    for i in range(width):
        h = exp2(steps[k, DELTA + i] * states[n, RATE + i]) * states[n, H + i] + steps[k, DRIVE + i] * b
        states[n, H + i] = h
        steps[k, Y + i] += h * c


@inner
def _share_decay(width: int, steps: np.ndarray, k: int, states: np.ndarray) -> None:
    for i in range(width):
        steps[k, SHARED + i] = exp2(steps[k, DELTA + i] * states[0, RATE + i])


@inner
def _advance_shared(
    width: int, steps: np.ndarray, k: int, states: np.ndarray, n: int, b: float, c: float
) -> None:
    """`_advance` where all states decay alike."""
    for i in range(width):
        h = steps[k, SHARED + i] * states[n, H + i] + steps[k, DRIVE + i] * b
        states[n, H + i] = h
        steps[k, Y + i] += h * c


@inner
def _gate(width: int, steps: np.ndarray, k: int) -> None:
    for i in range(width):
        z = steps[k, Z + i]
        steps[k, Y + i] *= z * sigmoid(z)


@kernel
def scan_forward(
    first: int,
    last: int,
    shape: tuple[int, int, int, int],
    inputs: tuple[
        np.ndarray, int, np.ndarray, int, np.ndarray, int, np.ndarray, np.ndarray, np.ndarray, np.ndarray
    ],
    results: tuple[np.ndarray, ...],
) -> None:
    """Run tasks `first` to `last` of batch × blocks; `shape` is (batch, time, channels, states).

    `inputs`, all flat: u, dt and z, each with the distance between its rows (z is empty for no gate);
    A / ln 2 (states, channels), not positive, or (1, channels) if all states decay alike; B, C (batch, time,
    states); D (channels,). Written to `results`: the output (batch, time, channels); the states before each
    chunk (batch, chunks, states, channels), unless that is empty; the last states (batch, states, channels).
    """
    u, u_row, dt, dt_row, z, z_row, rate, B, C, D = inputs
    out, kept, final = results
    _, n_steps, n_channels, n_states = shape
    n_blocks, n_chunks = (n_channels + BLOCK - 1) // BLOCK, (n_steps + CHUNK - 1) // CHUNK
    gated, keeping, shared = z.size > 0, kept.size > 0, rate.size == n_channels
    skip, steps = np.zeros((1, BLOCK), u.dtype), np.zeros((1, 7 * BLOCK), u.dtype)
    states = np.zeros((n_states, 2 * BLOCK), u.dtype)
    for task in range(first, last):
        b, start = task // n_blocks, (task % n_blocks) * BLOCK
        width = min(BLOCK, n_channels - start)
        load(skip, 0, 0, D, start, width)
        for n in range(rate.size // n_channels):
            load(states, n, RATE, rate, n * n_channels + start, width)
        states[:, H:] = 0
        for t in range(n_steps):
            row = b * n_steps + t
            if keeping and t % CHUNK == 0:
                at = (b * n_chunks + t // CHUNK) * n_states * n_channels + start
                for n in range(n_states):
                    store(kept, at + n * n_channels, width, states, n, H)
            load(steps, 0, U, u, row * u_row + start, width)
            load(steps, 0, DT, dt, row * dt_row + start, width)
            _begin(width, steps, 0, skip)
            if shared:
                _share_decay(width, steps, 0, states)
            for n in range(n_states):
                at = row * n_states + n
                if shared:
                    _advance_shared(width, steps, 0, states, n, B[at], C[at])
                else:
                    _advance(width, steps, 0, states, n, B[at], C[at])
            if gated:
                load(steps, 0, Z, z, row * z_row + start, width)
                _gate(width, steps, 0)
            store(out, row * n_channels + start, width, steps, 0, Y)
        for n in range(n_states):
            store(final, (b * n_states + n) * n_channels + start, width, states, n, H)


@inner
def _ungate(width: int, steps: np.ndarray, k: int) -> None:
    """From the output's gradient to those of y and z."""
    for i in range(width):
        z, grad = steps[k, Z + i], steps[k, OF_Y + i]
        opening = sigmoid(z)
        steps[k, OF_Z + i] = grad * steps[k, Y + i] * opening * (ONE + z * (ONE - opening))
        steps[k, OF_Y + i] = grad * z * opening


@inner
def _replay(
    width: int,
    steps: np.ndarray,
    k: int,
    states: np.ndarray,
    n: int,
    moments: np.ndarray,
    m: int,
    b: float,
    c: float,
) -> None:
    """`_advance` that keeps what the way back needs."""
    for i in range(width):
        before = states[n, H + i]
        decay = exp2(steps[k, DELTA + i] * states[n, RATE + i])
        h = decay * before + steps[k, DRIVE + i] * b
        moments[m, BEFORE + i] = before
        moments[m, DECAY + i] = decay
        states[n, H + i] = h
        steps[k, Y + i] += h * c


@inner
def _retreat(
    width: int,
    steps: np.ndarray,
    k: int,
    states: np.ndarray,
    n: int,
    moments: np.ndarray,
    m: int,
    b: float,
    c: float,
) -> tuple[float, float]:
    """One step of one state, backwards, h included; returns the gradients of `b` and `c`."""
    grad_b, grad_c = steps.dtype.type(0), steps.dtype.type(0)
    for i in range(width):
        grad_c += steps[k, OF_Y + i] * states[n, H + i]
        grad = states[n, OF_H + i] + steps[k, OF_Y + i] * c
        grad_b += grad * steps[k, DRIVE + i]
        steps[k, OF_DRIVE + i] += grad * b
        grad *= moments[m, DECAY + i]
        states[n, OF_H + i] = grad
        before = moments[m, BEFORE + i]
        states[n, H + i] = before
        grad *= before
        states[n, OF_A + i] += grad * steps[k, DELTA + i]
        steps[k, OF_DELTA + i] += grad * states[n, RATE + i]
    return grad_b, grad_c


@inner
def _finish(width: int, steps: np.ndarray, k: int, skip: np.ndarray, of_skip: np.ndarray, ln2: float) -> None:
    """The way back through `_begin`; the gradients of dt and u end in the slots of Δ and Δu."""
    for i in range(width):
        of_drive = steps[k, OF_DRIVE + i]
        of_delta = steps[k, OF_DELTA + i] * ln2 + of_drive * steps[k, U + i]
        steps[k, OF_DELTA + i] = of_delta * sigmoid(steps[k, DT + i])
        steps[k, OF_DRIVE + i] = of_drive * steps[k, DELTA + i] + steps[k, OF_Y + i] * skip[0, i]
        of_skip[0, i] += steps[k, OF_Y + i] * steps[k, U + i]


@kernel
def scan_backward(
    first: int,
    last: int,
    shape: tuple[int, int, int, int],
    inputs: tuple[
        np.ndarray,
        int,
        np.ndarray,
        int,
        np.ndarray,
        int,
        np.ndarray,
        np.ndarray,
        np.ndarray,
        np.ndarray,
        np.ndarray,
        np.ndarray,
        int,
    ],
    results: tuple[np.ndarray, ...],
) -> None:
    """The gradients of `scan_forward`: to its `inputs` come the states it kept and the output's gradient.

    Written to `results`: the gradients of u, dt, z (batch, time, channels), of A (batch, states, channels)
    and D (batch, channels), to be summed over the batch, and of B, C (blocks, batch, time, states), to be
    summed over the blocks: tasks never write to one place.
    """
    u, u_row, dt, dt_row, z, z_row, rate, B, C, D, kept, grad, grad_row = inputs
    grad_u, grad_dt, grad_z, grad_A, grad_D, grad_B, grad_C = results
    n_batch, n_steps, n_channels, n_states = shape
    n_blocks, n_chunks = (n_channels + BLOCK - 1) // BLOCK, (n_steps + CHUNK - 1) // CHUNK
    gated = z.size > 0
    ln2 = u.dtype.type(math.log(2))
    skip, of_skip = np.zeros((1, BLOCK), u.dtype), np.zeros((1, BLOCK), u.dtype)
    steps, states = np.zeros((CHUNK, 10 * BLOCK), u.dtype), np.zeros((n_states, 4 * BLOCK), u.dtype)
    moments = np.zeros((CHUNK * n_states, 2 * BLOCK), u.dtype)
    for task in range(first, last):
        b, block = task // n_blocks, task % n_blocks
        start = block * BLOCK
        width = min(BLOCK, n_channels - start)
        load(skip, 0, 0, D, start, width)
        of_skip[:] = 0
        states[:] = 0
        for n in range(n_states):
            load(states, n, RATE, rate, n * n_channels + start, width)
        for chunk in range(n_chunks - 1, -1, -1):
            begin = b * n_steps + chunk * CHUNK
            n_here = min(CHUNK, n_steps - chunk * CHUNK)
            for n in range(n_states):
                at = ((b * n_chunks + chunk) * n_states + n) * n_channels + start
                load(states, n, H, kept, at, width)
            for k in range(n_here):
                row = begin + k
                load(steps, k, U, u, row * u_row + start, width)
                load(steps, k, DT, dt, row * dt_row + start, width)
                load(steps, k, OF_Y, grad, row * grad_row + start, width)
                _begin(width, steps, k, skip)
                for n in range(n_states):
                    at, moment = row * n_states + n, k * n_states + n
                    _replay(width, steps, k, states, n, moments, moment, B[at], C[at])
                if gated:
                    load(steps, k, Z, z, row * z_row + start, width)
                    _ungate(width, steps, k)
                    store(grad_z, row * n_channels + start, width, steps, k, OF_Z)
            for k in range(n_here - 1, -1, -1):
                row = begin + k
                for i in range(width):
                    steps[k, OF_DELTA + i] = 0
                    steps[k, OF_DRIVE + i] = 0
                for n in range(n_states):
                    at, moment = row * n_states + n, k * n_states + n
                    grads = _retreat(width, steps, k, states, n, moments, moment, B[at], C[at])
                    to = block * n_batch * n_steps * n_states + at
                    grad_B[to], grad_C[to] = grads
                _finish(width, steps, k, skip, of_skip, ln2)
                store(grad_dt, row * n_channels + start, width, steps, k, OF_DELTA)
                store(grad_u, row * n_channels + start, width, steps, k, OF_DRIVE)
        for n in range(n_states):
            store(grad_A, (b * n_states + n) * n_channels + start, width, states, n, OF_A)
        store(grad_D, b * n_channels + start, width, of_skip, 0, 0)
