"""How the items of one layer lie, and whether that is so in another: which item is which does not count."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.special import logsumexp

from thinkalike.measures.hsic import row_blocks
from thinkalike.measures.inputs import Array, Vectors, at_least, centred
from thinkalike.measures.neighbours import nearest, unit_rows

HEAT_TIMES = np.logspace(-1, 1, 256)
MOST_ITEMS = 2_000
"""Of more, a seeded sample has its neighbourhood graph taken apart"""


def prepare_uniformity(X: Vectors, name: str = "X") -> float:
    """log of the mean of exp(−2 ‖x_i − x_j‖²) over pairs of items at length 1, in [−8, 0].

    Low where items point in all directions. Wang and Isola 2020.
    """
    centred(X, name)
    unit = unit_rows(X, name).astype(np.float64)
    n, parts = len(unit), []
    for start, stop in row_blocks(n, 1):
        squared = (2 - 2 * (unit[start:stop] @ unit[start:].T)).clip(0)
        later = np.arange(start, n)[None, :] > np.arange(start, stop)[:, None]
        parts.append(logsumexp(-2 * squared[later]) if later.any() else -np.inf)
    return float(logsumexp(parts) - np.log(n * (n - 1) / 2))


def prepare_concentricity(X: Vectors, name: str = "X") -> float:
    """Mean cosine of the items with their mean, in [−1, 1]: near 1 where all lie in a narrow cone.

    Wang et al. 2022.
    """
    centred(X, name)
    middle = unit_rows(X.mean(axis=0, dtype=np.float64, keepdims=True), f"the mean of {name}")
    return float((unit_rows(X, name) @ middle[0]).mean())


def prepare_heat(X: Vectors, name: str = "X", *, k: int = 5) -> Array:
    """Mean heat left at an item after each of `HEAT_TIMES`, tr exp(−tL)/n, of shape (256,).

    L is the normalised Laplacian of the graph that links an item with its k nearest neighbours. From the
    eigenvalues, where the authors draw random vectors.
    """
    at_least(k + 2, X, name)
    C = centred(X, name)
    if len(C) > MOST_ITEMS:
        C = C[np.sort(np.random.default_rng(0).permutation(len(C))[:MOST_ITEMS])]
    n, near = len(C), nearest(C, k)
    linked = np.zeros((n, n))
    np.put_along_axis(linked, near, 1.0, axis=1)
    linked = np.maximum(linked, linked.T)
    scale = 1 / np.sqrt(linked.sum(axis=1))
    values = 1 - linalg.eigvalsh(linked * scale[:, None] * scale[None, :], overwrite_a=True)
    return np.exp(-np.outer(HEAT_TIMES, values)).mean(axis=1)


def difference(a: float, b: float) -> float:
    """|a − b|."""
    return abs(a - b)


def heat_difference(A: Array, B: Array) -> float:
    """10⁶ max_t exp(−2(t + 1/t)) |A(t) − B(t)|, in [0, 18 316). Tsitsulin et al. 2020."""
    return float(1e6 * (np.exp(-2 * (HEAT_TIMES + 1 / HEAT_TIMES)) * np.abs(A - B)).max())
