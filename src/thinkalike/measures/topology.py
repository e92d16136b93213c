"""Representation topology divergence: which clusters and loops two layers do not share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import pdist, squareform

from thinkalike.errors import InvalidInput, MissingExtra
from thinkalike.measures.inputs import Array, Vectors, centred


def prepare_distances(
    X: Vectors, name: str = "X", *, most: int = 200, draws: int = 5, seed: int = 0
) -> Array:
    """Euclidean distances divided by their 0.9 quantile, for `draws` random sets of at most `most` items.

    The same items are drawn for every layer: shape (draws, m, m), one draw of all items if there are few.
    """
    C = centred(X, name)
    rng = np.random.default_rng(seed)
    drawn = [np.arange(len(C))] if len(C) <= most else [rng.choice(len(C), most, False) for _ in range(draws)]
    stack = []
    for rows in drawn:
        distances = pdist(C[rows])
        scale = np.quantile(distances, 0.9)
        if scale == 0:
            raise InvalidInput(f"{name} gives nearly all items the same vector: there is no topology in it.")
        stack.append(squareform(distances / scale))
    return np.array(stack)


def divergence(A: Array, B: Array) -> float:
    """Summed bars of the cross-barcode in dimension 1, mean over the draws and both directions, in [0, ∞).

    0 when both layers' distances are the same. The sum is over features of all scales, so it grows with the
    number of items drawn: compare only values from equally many. Barannikov et al. 2022.
    """
    both = [(bar_length(a, b) + bar_length(b, a)) / 2 for a, b in zip(A, B, strict=True)]
    return float(np.mean(both))


def bar_length(w: Array, v: Array) -> float:
    """Summed length of the bars of the R-cross-barcode of two (n, n) distance matrices, in dimension 1."""
    thresh = float(w.max())  # from there on the cone over all of w is contractible, and every bar has ended
    bars = _ripser()(cross_distances(w, v), distance_matrix=True, maxdim=1, thresh=thresh)["dgms"][1]
    return float(np.minimum(bars, thresh)[:, 1].sum() - bars[:, 0].sum()) if len(bars) else 0.0


def cross_distances(w: Array, v: Array) -> Array:
    """The graph whose Rips complex is the mapping cone of w ≤ t into min(w, v) ≤ t: (2n + 1, 2n + 1).

    Items stand twice, once at distances w and once at min(w, v); copy i of the first is joined to copy j ≥ i
    of the second at w_ij, and a last point to the first copies at 0. Other pairs are never joined.
    """
    n = len(w)
    never = 2 * max(w.max(), v.max()) + 1
    joined = np.where(np.triu(np.ones((n, n), dtype=bool)), w, never)
    graph = np.full((2 * n + 1, 2 * n + 1), never)
    graph[:n, :n] = w
    graph[n : 2 * n, n : 2 * n] = np.minimum(w, v)
    graph[:n, n : 2 * n] = joined
    graph[n : 2 * n, :n] = joined.T
    graph[-1, :n] = graph[:n, -1] = 0
    np.fill_diagonal(graph, 0)
    return graph


def _ripser() -> Callable[..., dict[str, list[Array]]]:
    try:
        from ripser import ripser
    except ImportError:
        raise MissingExtra.needed("ripser", "topology") from None
    return ripser
