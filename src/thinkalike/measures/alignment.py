"""What is left of the difference of two layers when one is laid on the other as well as it goes.

By rotations: Procrustes, and the family of Williams et al. between CCA and Procrustes. By orders of the
units, matched one with another: what two layers share in the axes themselves.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.optimize import linear_sum_assignment

from thinkalike.errors import InvalidInput, MissingExtra
from thinkalike.measures.inputs import Array, Vectors, centred, unit_norm
from thinkalike.measures.linear_maps import Basis, room_for_both
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


def prepare_units(X: Vectors, name: str = "X") -> Array:
    """Units centred and of length 1, so that products are correlations; a constant unit stays 0."""
    C = centred(X, name)
    sizes = np.linalg.norm(C, axis=0)
    return C / np.where(sizes > 1e-12 * sizes.max(), sizes, np.inf)


def hard_matching(X: Array, Y: Array) -> float:
    """Mean correlation of units that are matched one to one, in [−1, 1]; spare units of the wider are left.

    Li et al. 2016.
    """
    return _best_assignment(X.T @ Y) / min(X.shape[1], Y.shape[1])


def soft_matching(X: Array, Y: Array) -> float:
    """Mean correlation of each unit with its best partner, averaged over both directions, in [−1, 1].

    Several units may have one partner. Li et al. 2016.
    """
    correlations = X.T @ Y
    return float((correlations.max(axis=1).mean() + correlations.max(axis=0).mean()) / 2)


def permutation_procrustes(X: Array, Y: Array) -> float:
    """min_P ‖X − YP‖_F over permutations of units, for centred layers of unit norm, in [0, 2]. A metric.

    The narrower layer gets units that are 0. Williams et al. 2021.
    """
    return float(np.sqrt(max(2 - 2 * _best_assignment(X.T @ Y), 0.0)))


def prepare_clouds(X: Vectors, name: str = "X") -> Array:
    """Units as points, centred, of mean squared length 1."""
    C = unit_norm(X, name)
    return C * np.sqrt(C.shape[1])


def transport_distance(X: Array, Y: Array) -> float:
    """min_T √Σ T_ij ‖x_i − y_j‖² over transport plans of equal weight for every unit, in [0, 2]. A metric.

    Permutation Procrustes for layers of equal width. Khosla and Williams 2024.
    """
    try:
        import ot
    except ImportError as error:
        raise MissingExtra.needed("POT", "matching") from error
    plan = ot.emd([], [], -(X.T @ Y), numItermax=10_000_000)
    return float(np.sqrt(max(2 - 2 * float((plan * (X.T @ Y)).sum()), 0.0)))


def _best_assignment(products: Array) -> float:
    return float(products[linear_sum_assignment(products, maximize=True)].sum())
