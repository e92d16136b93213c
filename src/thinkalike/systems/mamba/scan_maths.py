"""What the kernels of Mamba share: exponentials that vectorise, and blocks of channels in scratch.

Numba alone calls the scalar exponential of the C library; for float32, polynomials take its place here.
float64, which only gradient checks use, keeps the library's.

Numba's cache on disk looks at the files of the kernels alone: after a change here, touch those.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numba import njit, types
from numba.extending import overload

from thinkalike.machine import compiled

Real: TypeAlias = np.floating
"""A number as Numba has it; one name for all: an overload and its functions must be annotated alike"""

BLOCK = 256  # channels that a kernel works on at a time: their states stay in the first-level cache

# Sums may be reordered, but NaN and infinity keep their meaning: a broken activation must stay visible.
_FAST = {"reassoc", "contract", "arcp", "nsz"}
inner = njit(fastmath=_FAST, error_model="numpy", forceinline=True)
kernel = compiled(fastmath=_FAST, error_model="numpy", nogil=True)

# 2^f = 1 + f Q(f) on |f| ≤ 1/2, minimax: with the rounding to float32, a relative error below 2e-7.
_Q0, _Q1, _Q2 = np.float32(0.6931470), np.float32(0.24022242), np.float32(0.05550734)
_Q3, _Q4 = np.float32(0.009671533), np.float32(0.0013264699)
_ROUND = np.float32(12582912.0)  # 1.5 · 2²³: adding it leaves the nearest integer in the low bits
_ONE_BITS = np.int32(0x3F800000)
_LOWEST = np.float32(-126)
_LOG2_E = np.float32(1.4426950408889634)
ONE, _TWO, _HALF = np.float32(1), np.float32(2), np.float32(0.5)
# artanh(s) = s + s³ R(s²) on s ≤ 1/3, minimax: a relative error below 1e-8.
_R0, _R1, _R2, _R3 = (np.float32(c) for c in (0.3333321, 0.20010763, 0.14000903, 0.14005995))


def exp2(x: Real) -> float:
    """2^x for x ≤ 0."""
    return math.pow(2.0, x)


def exp(x: Real) -> float:
    """e^x for x ≤ 0."""
    return math.exp(x)


def softplus(x: Real) -> float:
    """log(1 + e^x) = max(x, 0) + log1p(v), v = e^-|x|; for float32, log1p(v) = 2 artanh(v / (2 + v))."""
    return max(float(x), 0.0) + math.log1p(math.exp(-abs(x)))


@overload(exp2, jit_options={"fastmath": {"contract"}})  # reordering would undo the rounding trick
def _choose_exp2(x: Real) -> Callable[[Real], float | Real]:
    if x != types.float32:
        return exp2

    def exp2_float32(x: Real) -> float | Real:
        x = _LOWEST if x < _LOWEST else x  # unlike max, keeps NaN
        shifted = np.float32(x + _ROUND)
        f = x - (shifted - _ROUND)
        p = ((((_Q4 * f + _Q3) * f + _Q2) * f + _Q1) * f + _Q0) * f + ONE
        bits = np.int32(np.int32(shifted.view(np.int32) << np.int32(23)) + _ONE_BITS)
        return p * bits.view(np.float32)

    return exp2_float32


@overload(exp, jit_options={"fastmath": _FAST})
def _choose_exp(x: Real) -> Callable[[Real], float | Real]:
    if x != types.float32:
        return exp

    def exp_float32(x: Real) -> float | Real:
        return exp2(x * _LOG2_E)

    return exp_float32


@overload(softplus, jit_options={"fastmath": _FAST})
def _choose_softplus(x: Real) -> Callable[[Real], float | Real]:
    if x != types.float32:
        return softplus

    def softplus_float32(x: Real) -> float | Real:
        size = abs(x)
        v = exp(-size)
        s = v / (_TWO + v)
        q = s * s
        artanh = s + s * q * (((_R3 * q + _R2) * q + _R1) * q + _R0)
        return _HALF * (x + size) + _TWO * artanh  # no max: x + |x| lets NaN through

    return softplus_float32


@inner
def sigmoid(x: Real) -> float | Real:
    v = exp(-abs(x))
    return (v if x < 0 else ONE) / (ONE + v)


@inner
def load(scratch: np.ndarray, line: int, slot: int, flat: np.ndarray, at: int, width: int) -> None:
    """Fill a slot with `width` channels."""
    for i in range(width):
        scratch[line, slot + i] = flat[np.uintp(at + i)]  # unsigned: no test for an index from the end


@inner
def store(flat: np.ndarray, at: int, width: int, scratch: np.ndarray, line: int, slot: int) -> None:
    """Write the `width` channels of a slot."""
    for i in range(width):
        flat[np.uintp(at + i)] = scratch[line, slot + i]
