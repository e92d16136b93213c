"""Shape distances: Procrustes, and the family of Williams et al. between CCA and Procrustes."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from thinkalike.errors import InvalidInput
from thinkalike.measures.cca import Basis, prepare_basis, room_for_both
from thinkalike.measures.inputs import Array, Vectors, centred, unit_norm
from thinkalike.measures.neighbours import unit_rows


def prepare_shape(X: Vectors, name: str = "X") -> Array:
    """Centred, unit norm, and turned so that it needs no more columns than items."""
    C = unit_norm(X, name)
    n_items, n_units = C.shape
    if n_units > n_items:
        return np.ascontiguousarray(np.linalg.qr(C.T)[1].T)
    return C


def nuclear_cosine(X: Array, Y: Array) -> float:
    """The largest inner product of X and YQ over orthogonal Q: ‖XᵀY‖_*, in [0, 1] for unit norms."""
    return min(float(linalg.svdvals(X.T @ Y, overwrite_a=True, check_finite=False).sum()), 1.0)


def procrustes(X: Array, Y: Array) -> float:
    """min_Q ‖X − YQ‖_F over orthogonal Q for centred layers of unit norm: √(2 − 2‖XᵀY‖_*), in [0, √2].

    A metric; scipy's disparity is 1 − ‖XᵀY‖_*², which is none. Ding et al. 2021; Williams et al. 2021.
    """
    return float(np.sqrt(2 - 2 * nuclear_cosine(X, Y)))


def procrustes_angular(X: Array, Y: Array) -> float:
    """arccos ‖XᵀY‖_* for centred layers of unit norm, in [0, π/2]: the angle left after turning. A metric.

    Williams et al. 2021.
    """
    return float(np.arccos(nuclear_cosine(X, Y)))


def bures(X: Array, Y: Array) -> float:
    """‖XᵀY‖_* for centred layers of unit norm, in [0, 1]: the fidelity of their Gram matrices.

    tr √(√K L √K) / √(tr K tr L), the cosine of the angular Procrustes distance. Harvey et al. 2024.
    """
    return nuclear_cosine(X, Y)


def size_and_shape(X: Array, Y: Array) -> float:
    """min_Q ‖X − YQ‖_F over orthogonal Q for centred layers of their own size, in [0, ∞). A metric.

    Also the Bures metric of their Gram matrices. Williams et al. 2021.
    """
    scale = max(np.abs(X).max(), np.abs(Y).max())  # squares of huge activations stay representable
    x, y = X / scale, Y / scale
    nuclear = linalg.svdvals(x.T @ y, overwrite_a=True, check_finite=False).sum()
    return float(scale * np.sqrt(max((x * x).sum() + (y * y).sum() - 2 * nuclear, 0.0)))


def prepare_rows(X: Vectors, name: str = "X") -> Array:
    """In float64 as it is, of size 1, every row with a direction."""
    centred(X, name)
    unit_rows(X, name)
    return X / np.linalg.norm(X.astype(np.float64))


def aligned_cosine(X: Array, Y: Array) -> float:
    """Mean cosine of the two vectors of an item, X turned onto Y as a whole, in [−1, 1].

    Neither layer is centred. Hamilton et al. 2016.
    """
    U, _, Vt = linalg.svd(X.T @ Y, full_matrices=False)
    x, y = X @ U, Y @ Vt.T
    sizes = np.linalg.norm(X, axis=1) * np.linalg.norm(Y, axis=1)
    return float(((x * y).sum(axis=1) / sizes).mean())


def partly_whitened(X: Basis, alpha: float) -> Array:
    """Singular values drawn towards 1: α s + (1 − α), with s of mean square 1; unit norm, (n_items, rank)."""
    sizes = X.sizes * np.sqrt(X.rank / np.sum(X.sizes**2))
    partly = alpha * sizes + (1 - alpha)
    return X.directions * (partly / np.linalg.norm(partly))


def shape_distance(X: Basis, Y: Basis, *, alpha: float) -> float:
    """Angle between two layers, whitened by the share 1 − α and then best turned, in [0, π/2]. A metric.

    α = 1 is the angular Procrustes distance, α = 0 the angle by canonical correlations,
    arccos(Σρ / √(rank_X rank_Y)). A layer's variances are scaled to mean 1 before they are drawn towards 1,
    so that the scale of X does not matter at any α. Williams et al. 2021.
    """
    if not 0 <= alpha <= 1:
        raise InvalidInput(f"alpha is {alpha}: expected 0 (CCA) to 1 (Procrustes).")
    if alpha < 1:
        room_for_both(X, Y, f"shape-{alpha:g}")
    return float(np.arccos(nuclear_cosine(partly_whitened(X, alpha), partly_whitened(Y, alpha))))


__all__ = [
    "aligned_cosine",
    "bures",
    "prepare_basis",
    "prepare_rows",
    "prepare_shape",
    "procrustes",
    "procrustes_angular",
    "shape_distance",
    "size_and_shape",
]
