"""Weighted Kendall τ of importance profiles, and its exact decomposition into features (Vigna 2015).

For two profiles x, y over F features let s(i, j) = sign(x_i − x_j) sign(y_i − y_j) and w_ij = 1/(r_i + 1) +
1/(r_j + 1), r the rank from 0 at the top:

    τ = Σ_ij s(i, j) w_ij / √(Σ_ij [x_i ≠ x_j] w_ij · Σ_ij [y_i ≠ y_j] w_ij).

τ_w is the mean of τ with ranks by (x, then y) and by (y, then x): `scipy.stats.weightedtau`. The row sums
over j are the contributions of the features. Features tied in x and in y share the mean of their weights,
which leaves τ as it is and makes the contributions independent of the order in which they are written.

Blocks of layers are compared under all relabellings of one system's features at once. Without ties τ_w(x, y)
is a scalar product: signs of x over pairs of features times weighted signs of y, and the other way round.
Relabelling y permutes its columns, so a block under thousands of relabellings is one matrix product. Ties
make the weights depend on both profiles; then a compiled loop does it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import factorial
from threading import Lock

import numba
import numpy as np
import numpy.typing as npt

from thinkalike.labels import Floats
from thinkalike.machine import compiled

ENUMERATED = 8
"""Up to so many features all relabellings are enumerated (8! = 40,320); above, they are sampled."""

# Numbers held at once in one temporary array: going through pairs of profiles there are half a dozen of them,
# relabelling a block two.
_PAIRS_AT_ONCE = 2_000_000
_RELABELLED_AT_ONCE = 4_000_000
_ONE_AT_A_TIME = Lock()  # not every way in which Numba runs a loop in parallel may be begun twice

Relabellings = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]


def tau_matrix(profiles: Floats) -> Floats:
    """τ_w of every row of `profiles` (n, F) with every other: (n, n) in [−1, 1], NaN for a constant row."""
    return contribution_matrix(profiles).sum(axis=2)


def contribution_matrix(profiles: Floats) -> Floats:
    """(n, n, F): what each feature contributes to each τ_w; sums to `tau_matrix` over the last axis."""
    n, n_features = profiles.shape
    result = np.empty((n, n, n_features))
    rows, columns = np.triu_indices(n)
    for part in _blocks(len(rows), n_features):
        values = contributions(profiles[rows[part]], profiles[columns[part]])
        result[rows[part], columns[part]] = values
        result[columns[part], rows[part]] = values
    return result


def tau(x: Floats, y: Floats) -> Floats:
    """τ_w over the last axis of two stacks of profiles (..., F)."""
    return contributions(x, y).sum(axis=-1)


def contributions(x: Floats, y: Floats) -> Floats:
    """Each feature's part of τ_w, (..., F): half of each of its pairs, averaged over the two rankings."""
    signs_x, signs_y = signs_of(x), signs_of(y)
    agree = signs_x * signs_y
    return 0.5 * (_by_ranking(agree, signs_x, signs_y) + _by_ranking(agree, signs_y, signs_x))


def tau_without(x: Floats, y: Floats, left_out: Sequence[Sequence[int]]) -> Floats:
    """τ_w of two profiles (F,) with each set of features left out; NaN where fewer than two remain."""
    kept = [np.delete(np.arange(len(x)), list(drop)) for drop in left_out]
    return np.array([tau(x[k], y[k]) if len(k) > 1 else np.nan for k in kept])


def signs_of(profiles: Floats) -> Floats:
    """(..., F, F) signs of the differences within each profile (..., F), row minus column."""
    return np.sign(profiles[..., :, None] - profiles[..., None, :])


def harmonic_sums(n_features: int) -> Floats:
    """(F + 1,): 0, 1, 1 + ½, …; at place r what the first r features weigh together."""
    return np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n_features + 1))])


def pair_weights(signs: Floats, tie_breaker: Floats) -> Floats:
    """(..., F, F): what each pair of features weighs, the sum of both `feature_weights`."""
    weights = feature_weights(signs, tie_breaker)
    return weights[..., :, None] + weights[..., None, :]


def feature_weights(signs: Floats, tie_breaker: Floats) -> Floats:
    """Mean hyperbolic weight of each feature under the ranking by `signs`, ties broken by the other profile.

    Signs are (..., F, F), row minus column. A feature with r above it that shares its place with t − 1
    others stands for ranks r … r + t − 1.
    """
    tied = signs == 0
    above = ((signs < 0) | (tied & (tie_breaker < 0))).sum(axis=-1)
    sharing = (tied & (tie_breaker == 0)).sum(axis=-1)
    harmonic = harmonic_sums(signs.shape[-1])
    return (harmonic[above + sharing] - harmonic[above]) / sharing


def _by_ranking(agree: Floats, signs: Floats, other: Floats) -> Floats:
    weights = pair_weights(signs, other)
    norm = np.sqrt((weights * signs**2).sum(axis=(-2, -1)) * (weights * other**2).sum(axis=(-2, -1)))
    with np.errstate(invalid="ignore"):
        return (agree * weights).sum(axis=-1) / norm[..., None]


def _blocks(n_pairs: int, n_features: int) -> Iterator[slice]:
    step = max(1, _PAIRS_AT_ONCE // n_features**2)
    return (slice(start, start + step) for start in range(0, n_pairs, step))


def relabellings(n_features: int, *, n_samples: int = 10_000, seed: int = 0) -> Relabellings:
    """(n, F) orders of the features, the identity first: all of them for F ≤ 8, else `n_samples` drawn."""
    if n_features <= ENUMERATED:
        orders = itertools.chain.from_iterable(itertools.permutations(range(n_features)))
        return np.fromiter(orders, dtype=np.int64).reshape(factorial(n_features), n_features)
    identity = np.arange(n_features)
    drawn = np.random.default_rng(seed).permuted(np.tile(identity, (n_samples, 1)), axis=1)
    return np.concatenate([identity[None], drawn])


def relabelled_taus(x: Floats, y: Floats, orders: Relabellings) -> Iterator[Floats]:
    """τ_w of each row of `x` (n, F) with each row of `y[:, order]` (m, F), in parts (n_orders, n, m)."""
    n_features = x.shape[1]
    step = max(1, _RELABELLED_AT_ONCE // (len(y) * max(len(x), n_features**2)))
    tied_x, tied_y = _tied_rows(x), _tied_rows(y)
    parts: list[tuple[Places, Places, type[_Untied] | type[_Tied]]] = [
        (np.flatnonzero(~tied_x), np.flatnonzero(~tied_y), _Untied),
        (np.flatnonzero(tied_x), np.arange(len(y)), _Tied),
        (np.flatnonzero(~tied_x), np.flatnonzero(tied_y), _Tied),
    ]
    blocks = [(np.ix_(i, j), kind(x[i], y[j])) for i, j, kind in parts if len(i) and len(j)]
    for start in range(0, len(orders), step):
        some = orders[start : start + step]
        result = np.empty((len(some), len(x), len(y)))
        for place, block in blocks:
            result[:, place[0], place[1]] = block(some)
        yield result


def _tied_rows(profiles: Floats) -> npt.NDArray[np.bool_]:
    return (np.diff(np.sort(profiles, axis=1), axis=1) == 0).any(axis=1)


class _Untied:
    """τ_w of relabelled blocks without ties, as a matrix product over pairs of features."""

    def __init__(self, x: Floats, y: Floats) -> None:
        n_features = x.shape[1]
        self.first, self.second = np.triu_indices(n_features, k=1)
        signs, weighted = _flat_signs(x)
        pairs = self.first * n_features + self.second
        scale = 2.0 * (n_features - 1) * (1.0 / np.arange(1, n_features + 1)).sum()
        self.left = np.concatenate([weighted[:, pairs], signs[:, pairs]], axis=1) / scale
        self.right = np.stack(_flat_signs(y), axis=1)  # (m, 2, F²)

    def __call__(self, orders: Relabellings) -> Floats:
        pairs = orders[:, self.first] * orders.shape[1] + orders[:, self.second]
        moved = self.right[:, :, pairs]  # (m, 2, n_orders, n_pairs)
        moved = moved.transpose(2, 0, 1, 3).reshape(len(orders) * len(self.right), -1)
        return (moved @ self.left.T).reshape(len(orders), len(self.right), -1).transpose(0, 2, 1)


def _flat_signs(profiles: Floats) -> tuple[Floats, Floats]:
    """Signs of differences, (n, F²), and the same times the weights of their pairs."""
    signs = signs_of(profiles)
    flat = (len(profiles), -1)
    return signs.reshape(flat), (signs * pair_weights(signs, signs)).reshape(flat)


class _Tied:
    """τ_w of relabelled blocks with ties, by a compiled loop."""

    def __init__(self, x: Floats, y: Floats) -> None:
        self.signs_x, self.signs_y = sign_table(x), sign_table(y)
        self.harmonic = harmonic_sums(x.shape[1])

    def __call__(self, orders: Relabellings) -> Floats:
        result = np.empty((len(orders), len(self.signs_x), len(self.signs_y)))
        if len(orders) == 1:  # threads would wait for each other longer than they work
            _fill_order(self.signs_x, self.signs_y, orders[0], self.harmonic, result[0])
            return result
        with _ONE_AT_A_TIME:
            _fill_tied(self.signs_x, self.signs_y, orders, self.harmonic, result)
        return result


def sign_table(profiles: Floats) -> npt.NDArray[np.int64]:
    """`signs_of` profiles (n, F) as whole numbers, for the compiled loops."""
    return signs_of(profiles).astype(np.int64)


@compiled(error_model="numpy", nogil=True)
def _fill_order(signs_x, signs_y, order, harmonic, result):  # type: ignore[no-untyped-def]
    """result[n, m] = τ_w of profile n of x and profile m of y under one relabelling."""
    n_features = len(order)
    moved = np.empty((n_features, n_features), dtype=np.int64)
    for m in range(len(signs_y)):
        for i in range(n_features):
            for j in range(n_features):
                moved[i, j] = signs_y[m, order[i], order[j]]
        for n in range(len(signs_x)):
            result[n, m] = tau_of_signs(signs_x[n], moved, harmonic)


@compiled(parallel=True, error_model="numpy")
def _fill_tied(signs_x, signs_y, orders, harmonic, result):  # type: ignore[no-untyped-def]
    """result[k, n, m] = τ_w of profile n of x and profile m of y under relabelling k."""
    for k in numba.prange(len(orders)):
        _fill_order(signs_x, signs_y, orders[k], harmonic, result[k])


@compiled(error_model="numpy")
def tau_of_signs(signs_x, signs_y, harmonic):  # type: ignore[no-untyped-def]
    """τ_w from the signs of the differences, (F, F) each; every sum over pairs is a sum over features."""
    # Σ over features of weight × (agreement, pairs untied in x, pairs untied in y), for ranks by x, then y …
    agree_x, in_x_x, in_y_x = 0.0, 0.0, 0.0
    agree_y, in_x_y, in_y_y = 0.0, 0.0, 0.0  # … and by y, then x
    for i in range(len(signs_x)):
        above_x, above_y, sharing, agree, untied_x, untied_y = 0, 0, 0, 0, 0, 0
        for j in range(len(signs_x)):
            x, y = signs_x[i, j], signs_y[i, j]
            above_x += 2 * x + y < 0
            above_y += 2 * y + x < 0
            sharing += (x == 0) & (y == 0)
            agree += x * y
            untied_x += x != 0
            untied_y += y != 0
        # Each pair (i, j) weighs weight_i + weight_j: feature i's weight counts once per pair that it is in.
        weight = (harmonic[above_x + sharing] - harmonic[above_x]) / sharing
        agree_x += weight * agree
        in_x_x += weight * untied_x
        in_y_x += weight * untied_y
        weight = (harmonic[above_y + sharing] - harmonic[above_y]) / sharing
        agree_y += weight * agree
        in_x_y += weight * untied_x
        in_y_y += weight * untied_y
    return 0.5 * (agree_x / np.sqrt(in_x_x * in_y_x) + agree_y / np.sqrt(in_x_y * in_y_y))
