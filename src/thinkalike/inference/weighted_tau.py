"""Weighted Kendall τ of importance profiles, and its exact decomposition into features (Vigna 2015).

For two profiles x, y over F features let s(i, j) = sign(x_i − x_j) sign(y_i − y_j) and w_ij = 1/(r_i + 1) +
1/(r_j + 1), r the rank from 0 at the top:

    τ = Σ_ij s(i, j) w_ij / √(Σ_ij [x_i ≠ x_j] w_ij · Σ_ij [y_i ≠ y_j] w_ij).

τ_w is the mean of τ with ranks by (x, then y) and by (y, then x): `scipy.stats.weightedtau`. The row sums
over j are the contributions of the features. Features tied in x and in y share the mean of their weights,
which leaves τ as it is and makes the contributions independent of the order in which they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from thinkalike.labels import Floats

_BLOCK = 2_000_000  # numbers held at once per temporary array


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
    signs_x = np.sign(x[..., :, None] - x[..., None, :])
    signs_y = np.sign(y[..., :, None] - y[..., None, :])
    agree = signs_x * signs_y
    return 0.5 * (_by_ranking(agree, signs_x, signs_y) + _by_ranking(agree, signs_y, signs_x))


def tau_without(x: Floats, y: Floats, left_out: Sequence[Sequence[int]]) -> Floats:
    """τ_w of two profiles (F,) with each set of features left out; NaN where fewer than two remain."""
    kept = [np.delete(np.arange(len(x)), list(drop)) for drop in left_out]
    return np.array([tau(x[k], y[k]) if len(k) > 1 else np.nan for k in kept])


def feature_weights(signs: Floats, tie_breaker: Floats) -> Floats:
    """Mean hyperbolic weight of each feature under the ranking by `signs`, ties broken by the other profile.

    Signs are (..., F, F), row minus column. A feature with r above it that shares its place with t − 1
    others stands for ranks r … r + t − 1.
    """
    tied = signs == 0
    above = ((signs < 0) | (tied & (tie_breaker < 0))).sum(axis=-1)
    sharing = (tied & (tie_breaker == 0)).sum(axis=-1)
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, signs.shape[-1] + 1))])
    return (harmonic[above + sharing] - harmonic[above]) / sharing


def _by_ranking(agree: Floats, signs: Floats, other: Floats) -> Floats:
    weights = feature_weights(signs, other)
    pair_weights = weights[..., :, None] + weights[..., None, :]
    norm = np.sqrt(
        (pair_weights * signs**2).sum(axis=(-2, -1)) * (pair_weights * other**2).sum(axis=(-2, -1))
    )
    with np.errstate(invalid="ignore"):
        return (agree * pair_weights).sum(axis=-1) / norm[..., None]


def _blocks(n_pairs: int, n_features: int) -> Iterator[slice]:
    step = max(1, _BLOCK // n_features**2)
    return (slice(start, start + step) for start in range(0, n_pairs, step))
