"""Inner products of whole distance or Gram matrices: distance correlation, whitened RSA, their difference."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist, squareform

from thinkalike.errors import InvalidInput
from thinkalike.measures.cka import u_centred
from thinkalike.measures.hsic import row_blocks
from thinkalike.measures.inputs import Array, Vectors, at_least, unit_norm


def prepare_centred_distances(X: Vectors, name: str = "X", *, unbiased: bool = False) -> Array:
    """Euclidean distances (n, n), rows and columns centred; unit norm. U-centred when `unbiased`."""
    at_least(4 if unbiased else 2, X, name)
    distances = squareform(pdist(unit_norm(X, name)))
    if unbiased:
        return _unit(u_centred(distances), name)
    rows = distances.mean(axis=0)
    return _unit(distances - rows[:, None] - rows[None, :] + rows.mean(), name)


def prepare_whitened(X: Vectors, name: str = "X") -> Array:
    """The Gram matrix of the centred layer less its mean on the diagonal, H tr(K)/(n − 1); unit norm.

    Squared distances d have the covariance V ∝ (CCᵀ)∘(CCᵀ) over pairs, C the contrasts, if all items are
    measured with the same independent noise. V^(−1/2) (d − mean d) is this matrix, up to a rotation.
    """
    at_least(3, X, name)
    C = unit_norm(X, name)
    n = len(C)
    gram = C @ C.T + 1 / (n * (n - 1))  # tr K = 1, and H = I − 1/n
    gram[np.diag_indices(n)] -= 1 / (n - 1)
    return _unit(gram, name)


def inner_product(A: Array, B: Array) -> float:
    """Of two prepared matrices, in [−1, 1].

    Unbiased distance correlation, squared (Székely and Rizzo 2013); the whitened correlation of squared
    distances (Diedrichsen et al. 2021).
    """
    return float(np.clip(np.vdot(A, B), -1, 1))


def distance_correlation(A: Array, B: Array) -> float:
    """√(dCov²(X, Y) / √(dVar²(X) dVar²(Y))), in [0, 1]. It rises with units per item, as biased CKA does.

    Székely et al. 2007.
    """
    return float(np.sqrt(max(inner_product(A, B), 0.0)))


def distances_apart(X: Array, Y: Array) -> float:
    """‖D − D'‖_F of the Euclidean distances of two centred layers of their own size, in [0, ∞). A metric.

    Yin and Shen 2018.
    """
    squares = [(Z * Z).sum(axis=1) for Z in (X, Y)]
    total = 0.0
    for start, stop in row_blocks(len(X), 2):
        gaps = []
        for Z, own in zip((X, Y), squares, strict=True):
            squared = own[start:stop, None] + own[None, :] - 2 * (Z[start:stop] @ Z.T)
            squared[np.arange(stop - start), np.arange(start, stop)] = 0
            gaps.append(np.sqrt(squared.clip(0)))
        total += float(((gaps[0] - gaps[1]) ** 2).sum())
    return float(np.sqrt(total))


def _unit(matrix: Array, name: str) -> Array:
    size = np.linalg.norm(matrix)
    if size <= 1e-9 * len(matrix):
        raise InvalidInput(f"All pairs of items are equally far apart in {name}: leave it out.")
    return matrix / size
