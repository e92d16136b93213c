"""Units matched with units: what two layers share beyond rotations, in the axes themselves."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from thinkalike.errors import MissingExtra
from thinkalike.measures.inputs import Array, Vectors, centred, unit_norm


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
