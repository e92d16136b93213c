"""The compiled loops over pairs; compiled once and kept on disk."""

from __future__ import annotations

import numpy as np

from thinkalike.machine import compiled


@compiled(nogil=True)
def condense(products: np.ndarray, norms: np.ndarray, first: int, c: float, y: np.ndarray) -> None:
    """Add c (‖x_i‖² + ‖x_j‖² − 2 x_i·x_j) to the condensed y, for rows `first`… and all later columns.

    `products` holds x_i·x_j of shape (n_rows, m − first).
    """
    m = len(norms)
    for r in range(products.shape[0]):
        i = first + r
        start = i * m - i * (i + 1) // 2 - i - 1
        for j in range(i + 1, m):
            y[start + j] += c * (norms[i] + norms[j] - 2.0 * products[r, j - first])


@compiled(nogil=True, fastmath={"reassoc", "contract", "nsz"})
def pair_distances(x: np.ndarray, i: np.ndarray, j: np.ndarray, c: float, y: np.ndarray) -> None:
    """Add c ‖x_i − x_j‖² to y for given pairs."""
    for p in range(len(i)):
        a, b, total = i[p], j[p], 0.0
        for k in range(x.shape[1]):
            difference = np.float64(x[a, k]) - np.float64(x[b, k])
            total += difference * difference
        y[p] += c * total


@compiled(nogil=True)
def condensed_pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """All i < j in condensed order."""
    i, j = np.empty(n * (n - 1) // 2, dtype=np.int32), np.empty(n * (n - 1) // 2, dtype=np.int32)
    p = 0
    for a in range(n):
        for b in range(a + 1, n):
            i[p], j[p] = a, b
            p += 1
    return i, j


@compiled(nogil=True)
def tie_stops(
    y: np.ndarray, order: np.ndarray, i: np.ndarray, j: np.ndarray, rounding: np.ndarray, stops: np.ndarray
) -> int:
    """Where the runs of equal values end along `order`, into `stops`; returns the number of runs.

    Neighbours are equal when they are no further apart than rounding can have moved them.
    """
    largest, n_runs = 2.0 * rounding.max(), 0
    for k in range(1, len(order)):
        p, q = order[k - 1], order[k]
        gap = y[q] - y[p]
        if gap > largest or gap > max(rounding[i[p]] + rounding[j[p]], rounding[i[q]] + rounding[j[q]]):
            stops[n_runs] = k
            n_runs += 1
    stops[n_runs] = len(order)
    return n_runs + 1


@compiled(nogil=True)
def average_ranks(order: np.ndarray, stops: np.ndarray, ranks: np.ndarray) -> float:
    """Average ranks less their mean, into `ranks`; returns the sum of their squares."""
    start, spread, middle = 0, 0.0, (len(order) - 1) / 2.0
    for stop in stops:
        rank = (start + stop - 1) / 2.0 - middle
        for k in range(start, stop):
            ranks[order[k]] = rank
        spread += (stop - start) * rank * rank
        start = stop
    return spread
