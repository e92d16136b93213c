r"""Distances between profiles, as the third version of Salle et al. has them, beside τ_w.

Between layers: the Euclidean distance of their importances, and R², the squared correlation of the two.

Between models: dynamic time warping of their layers' raw importances (the embeddings left out), with the step
pattern *symmetric2* of Sakoe and Chiba (1978): a step along both counts its cost twice,

    D_ij = min(D_{i−1,j} + c_ij, D_{i,j−1} + c_ij, D_{i−1,j−1} + 2 c_ij),

so that every warping has the weight n + m, by which D_nm is divided. `thinkalike.comparison.trajectories` has
ours: importances as shares, and the mean along the path.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
from scipy.spatial.distance import cdist

from thinkalike.labels import Floats
from thinkalike.machine import compiled


def euclidean_matrix(x: Floats, y: Floats) -> Floats:
    """(n, m) Euclidean distances of importances (n, F) and (m, F)."""
    return cdist(x, y)


def r_squared_matrix(x: Floats, y: Floats) -> Floats:
    """(n, m) squared Pearson correlations of importances (n, F) and (m, F); NaN for constant ones."""
    unit_x, unit_y = _unit(x), _unit(y)
    return np.minimum((unit_x @ unit_y.T) ** 2, 1.0)


def warped(x: Floats, y: Floats) -> float:
    """The normalised distance of two sequences of importances (n, F) and (m, F) by symmetric2."""
    return float(_symmetric2(np.ascontiguousarray(x), np.ascontiguousarray(y)))


def warped_matrix(profiles: Sequence[Floats]) -> Floats:
    """The same between all of `profiles`, each (n_layers, F): (n, n)."""
    lengths = np.array([len(one) for one in profiles])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    values = np.zeros((len(profiles), len(profiles)))
    _fill_symmetric2(np.concatenate(profiles), starts, values)
    return values


def _unit(x: Floats) -> Floats:
    centred = x - x.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        unit: Floats = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    return unit


@compiled(error_model="numpy")
def _symmetric2(x, y):  # type: ignore[no-untyped-def]
    n, m = len(x), len(y)
    before, now = np.empty(m), np.empty(m)
    for i in range(n):
        for j in range(m):
            cost = 0.0
            for f in range(x.shape[1]):
                cost += (x[i, f] - y[j, f]) ** 2
            cost = np.sqrt(cost)
            if i == 0 and j == 0:
                now[j] = cost
            elif i == 0:
                now[j] = now[j - 1] + cost
            elif j == 0:
                now[j] = before[j] + cost
            else:
                now[j] = min(before[j - 1] + 2 * cost, min(before[j], now[j - 1]) + cost)
        before, now = now, before
    return before[m - 1] / (n + m)


@compiled(parallel=True, error_model="numpy")
def _fill_symmetric2(rows, starts, values):  # type: ignore[no-untyped-def]
    for a in numba.prange(len(values)):
        for b in range(a):
            one = rows[starts[a] : starts[a + 1]]
            other = rows[starts[b] : starts[b + 1]]
            values[a, b] = values[b, a] = _symmetric2(one, other)
