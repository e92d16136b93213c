"""Representational similarity: every correlation (Spearman, Pearson, Kendall) of every distance.

Spearman is the engine in `rsa.py`; here are the other two, and all of them in the form that the table wants.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.stats import kendalltau

from thinkalike.errors import InvalidInput
from thinkalike.measures.hsic import row_blocks
from thinkalike.measures.inputs import Array, Vectors, at_least, centred
from thinkalike.measures.measure import Named
from thinkalike.measures.neighbours import unit_rows
from thinkalike.pairs.distances import QuadraticTarget, centred_rows
from thinkalike.pairs.pairset import Pairs
from thinkalike.pairs.ranks import centred_ranks, pair_distances, sort_distances, standardised_ranks

DISTANCES = ("euclidean", "cosine", "correlation")
CORRELATIONS = ("spearman", "pearson", "kendall")
MOST_PAIRS = 2_000_000  # for Kendall, the slowest; of more, a seeded sample

Ranks = npt.NDArray[np.float32]


def rsa_name(distance: str, correlation: str) -> str:
    """`rsa` alone is Spearman on Euclidean distances; what differs from that is in the name.

    >>> rsa_name("cosine", "spearman")
    'rsa-cosine'
    """
    named = [distance] * (distance != "euclidean") + [correlation] * (correlation != "spearman")
    return "-".join(["rsa", *named])


def prepare_items(X: Vectors, name: str = "X", *, distance: str = "euclidean") -> Array:
    """Rows whose squared Euclidean distances are the squared `distance`, or twice it for the two angles."""
    at_least(3, X, name)
    C = centred(X, name)
    if distance == "euclidean":
        return C
    directions = unit_rows(X if distance == "cosine" else centred_rows(X.astype(np.float64)), name)
    return directions - directions.mean(axis=0)  # far from 0 they are almost equal, and products would blur


def spearman(X: Array, Y: Array) -> float:
    """Spearman's ρ between the pairwise distances of two prepared layers, ties averaged, in [−1, 1].

    Kriegeskorte et al. 2008.
    """
    return float(_spearman([("X", X), ("Y", Y)])[0, 1])


def spearman_all_pairs(a: Named, b: Named | None, *, distance: str) -> Array:
    """Each layer ranked once, then one product of ranks."""
    return _between(a, b, _spearman([*a, *(b or [])], partial(prepare_items, distance=distance)))


def _spearman(layers: Named, prepare: partial[Array] | None = None) -> Array:
    from thinkalike.measures.rsa import rsa_matrix  # compiles with Numba: only when asked for

    names = [name for name, _ in layers]
    prepared = (X if prepare is None else prepare(X, name) for name, X in layers)  # one at a time in memory
    return np.clip(_defined(rsa_matrix(prepared, names=names).values, names), -1, 1)


def pearson(X: Array, Y: Array, *, squared: bool) -> float:
    """Pearson's r between the pairwise distances of two prepared layers, in [−1, 1]."""
    return float(_defined(pearson_matrix([X, Y], squared=squared), ["X", "Y"])[0, 1])


def pearson_all_pairs(a: Named, b: Named | None, *, distance: str) -> Array:
    """One pass over blocks of pairs for all layers together."""
    named = [*a, *(b or [])]
    layers = [prepare_items(X, name, distance=distance) for name, X in named]
    values = pearson_matrix(layers, squared=distance != "euclidean")
    return _between(a, b, _defined(values, [name for name, _ in named]))


def pearson_matrix(layers: Sequence[Array], *, squared: bool) -> Array:
    """Correlations (L, L) of the distances, or squared distances, among the rows of each layer.

    Products are summed around each layer's root mean squared distance, so that little cancels. NaN for a
    layer whose distances are all equal.
    """
    n, L = len(layers[0]), len(layers)
    squares = [(X * X).sum(axis=1) for X in layers]
    shifts = np.array([2 * np.var(X, axis=0).sum() for X in layers])
    shifts = shifts if squared else np.sqrt(shifts)
    sums, products = np.zeros(L), np.zeros((L, L))
    for start, stop in row_blocks(n, L):
        later = np.arange(start, n)[None, :] > np.arange(start, stop)[:, None]
        block = np.empty((L, int(later.sum())))
        for k, X in enumerate(layers):
            gaps = _squared_distances(X, squares[k], start, stop)[later]
            block[k] = (gaps if squared else np.sqrt(gaps)) - shifts[k]
        sums += block.sum(axis=1)
        products += block @ block.T
    covariance = products - np.outer(sums, sums) / (n * (n - 1) / 2)
    size = np.sqrt(np.maximum(np.diag(covariance), 0))
    size[size <= 1e-7 * shifts * n] = np.nan
    return np.clip(covariance / np.outer(size, size), -1, 1)


def _squared_distances(X: Array, squares: Array, start: int, stop: int) -> Array:
    """Between items start … stop and all from start on; within rounding of 0 is the same vector twice."""
    scale = squares[start:stop, None] + squares[None, start:]
    gaps = scale - 2 * (X[start:stop] @ X[start:].T)
    gaps[gaps < 1e-13 * scale] = 0
    return gaps


def prepare_kendall(X: Vectors, name: str = "X", *, distance: str = "euclidean") -> Ranks:
    """Ranks of the distances of all pairs of items, or of a sample that is the same for every layer."""
    C = prepare_items(X, name, distance=distance)
    ranks = standardised_ranks(Pairs.of(len(C), max_pairs=MOST_PAIRS), QuadraticTarget(((1.0, C),)))
    if np.isnan(ranks[0]):
        raise _all_equal(name)
    return ranks


def kendall(a: Ranks, b: Ranks) -> float:
    """Kendall's τ_b between the pairwise distances of two prepared layers, in [−1, 1]. Nili et al. 2014."""
    return float(kendalltau(a, b).statistic)


def prepare_rho_a(X: Vectors, name: str = "X") -> Array:
    """Ranks of the distances less their mean, over the spread that ranks have without ties."""
    C = prepare_items(X, name)
    pairs = Pairs.of(len(C), max_pairs=MOST_PAIRS)
    y, rounding = pair_distances(pairs, QuadraticTarget(((1.0, C),)))
    ranks, spread = centred_ranks(*sort_distances(y, pairs.i, pairs.j, rounding))
    if not spread > 0:
        raise _all_equal(name)
    n = len(ranks)
    return ranks / np.sqrt((n**3 - n) / 12)


def rho_a(a: Array, b: Array) -> float:
    """Σ r s / ((P³ − P)/12) over P pairs: Spearman's ρ expected under random breaking of ties, in [−1, 1].

    Schütt et al. 2023.
    """
    return float(a @ b)


def _between(a: Named, b: Named | None, values: Array) -> Array:
    return values if b is None else values[: len(a), len(a) :]


def _defined(values: Array, names: Sequence[str]) -> Array:
    for name, value in zip(names, np.diag(values), strict=True):
        if np.isnan(value):
            raise _all_equal(name)
    return values


def _all_equal(name: str) -> InvalidInput:
    return InvalidInput(
        f"All pairs of items are equally far apart in {name}: there is no order to correlate. Leave it out."
    )
