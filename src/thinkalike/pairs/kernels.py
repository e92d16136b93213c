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
def ascending(y: np.ndarray) -> np.ndarray:
    """The order of float64 values, none of them NaN; equal values stay in the order in which they came.

    A radix sort, eleven bits at a time, of the places between the smallest and the largest value in 32 bits;
    then values at the same place are put right. It passes memory three times, where comparing does it twenty.
    """
    n = len(y)
    lowest, width = (y.min(), y.max() - y.min()) if n else (0.0, 0.0)
    if not 1e-280 < width < 1e280:  # equal, or places cannot be counted
        return np.argsort(y, kind="mergesort")
    keys, order = np.empty(n, dtype=np.uint32), np.arange(n, dtype=np.int32)
    counts = np.zeros((3, 2048), dtype=np.int64)
    for p in range(n):
        key = np.uint32((y[p] - lowest) * (4294967295.0 / width))
        keys[p] = key
        counts[0, key & np.uint32(2047)] += 1
        counts[1, (key >> np.uint32(11)) & np.uint32(2047)] += 1
        counts[2, key >> np.uint32(22)] += 1
    other_keys, other_order = np.empty_like(keys), np.empty_like(order)
    for digit in range(3):
        shift, place = np.uint32(11 * digit), np.zeros(2048, dtype=np.int64)
        place[1:] = counts[digit].cumsum()[:-1]
        for p in range(n):
            bucket = (keys[p] >> shift) & np.uint32(2047)
            to = place[bucket]
            other_keys[to], other_order[to] = keys[p], order[p]
            place[bucket] = to + 1
        keys, other_keys = other_keys, keys
        order, other_order = other_order, order
    start = 0
    for stop in range(1, n + 1):
        if stop < n and keys[stop] == keys[start]:
            continue
        if stop - start > 16:
            run = order[start:stop].copy()
            order[start:stop] = run[np.argsort(y[run], kind="mergesort")]
        else:
            for p in range(start + 1, stop):
                own, q = order[p], p
                while q > start and y[order[q - 1]] > y[own]:
                    order[q] = order[q - 1]
                    q -= 1
                order[q] = own
        start = stop
    return order.astype(np.int64)


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
