"""Centred kernel alignment between two layers: unbiased, biased, angular, and with a Gaussian kernel."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist, squareform

from thinkalike.errors import InvalidInput
from thinkalike.measures.hsic import hsic_matrix
from thinkalike.measures.inputs import Array, Vectors, at_least, unit_norm
from thinkalike.measures.measure import Named

NOTHING_LEFT = 1e-13  # of the squared U-centred Gram, for layers of unit norm: rounding, not structure


def prepare_linear(X: Vectors, name: str = "X") -> Array:
    """Centred, unit norm; unbiased HSIC needs 4 items."""
    at_least(4, X, name)
    return unit_norm(X, name)


def cka(X: Array, Y: Array) -> float:
    """Linear CKA of two prepared layers, HSIC₁(K, L) / √(HSIC₁(K, K) HSIC₁(L, L)), unbiased in its HSICs.

    In [−1, 1], for HSIC₁ is an inner product of U-centred Grams; about 0 for independent layers of any width.
    Not a distance, nor is its arccos a metric: that is 0 between layers that differ by directions private to
    single items. Kornblith et al. 2019; Nguyen et al. 2021.
    """
    return float(normalised(hsic_matrix([X, Y]), len(X))[0, 1])


def cka_biased(X: Array, Y: Array) -> float:
    """Linear CKA as first published, ‖XᵀY‖²_F / (‖XᵀX‖_F ‖YᵀY‖_F), in [0, 1].

    It grows towards 1 with units per item even for independent layers. Kornblith et al. 2019.
    """
    return float(normalised(hsic_matrix([X, Y], biased=True), len(X))[0, 1])


def cka_angular(X: Array, Y: Array) -> float:
    """arccos of the biased linear CKA, in [0, π/2]: the angle between centred Grams, a metric.

    Williams et al. 2021.
    """
    return float(np.arccos(np.clip(cka_biased(X, Y), -1, 1)))


def cka_all_pairs(a: Named, b: Named | None, *, biased: bool = False) -> Array:
    """CKA among the layers of `a`, or between those of `a` and `b`, from one stack of Grams."""
    layers = [prepare_linear(X, name) for name, X in [*a, *(b or [])]]
    values = normalised(hsic_matrix(layers, biased=biased), len(layers[0]))
    return values if b is None else values[: len(a), len(a) :]


def cka_angular_all_pairs(a: Named, b: Named | None) -> Array:
    """arccos of the biased CKA of all pairs."""
    return np.arccos(np.clip(cka_all_pairs(a, b, biased=True), -1, 1))


def normalised(hsic: Array, n_items: int) -> Array:
    """HSIC_ij / √(HSIC_ii HSIC_jj) of an (L, L) matrix over layers of unit norm; 1 on the diagonal."""
    size = np.diag(hsic) * n_items**2
    if (size <= NOTHING_LEFT).any():
        raise InvalidInput(
            f"Layer {int(np.argmin(size))} of the {len(size)} compared varies in too few items for CKA "
            "(all but one or two have the same vector): leave it out, or use more items."
        )
    values = hsic / np.sqrt(np.outer(np.diag(hsic), np.diag(hsic)))
    np.fill_diagonal(values, 1.0)
    return values


def prepare_gaussian(X: Vectors, name: str = "X") -> Array:
    """U-centred Gaussian Gram exp(−‖x_i − x_j‖² / 2σ²) with σ half the median distance: (n, n)."""
    at_least(4, X, name)
    squared = pdist(unit_norm(X, name), "sqeuclidean")
    gram = squareform(np.exp(-squared / _width(squared, name)))
    centred = u_centred(gram)
    if np.abs(centred).max() <= 1e-10 * gram.max():
        raise InvalidInput(
            f"All pairs of items are equally far apart in {name}: no item is nearer to one than to another. "
            "Leave it out."
        )
    return centred


def _width(squared: Array, name: str) -> float:
    """2σ²"""
    median = float(np.median(squared))
    if median == 0:
        raise InvalidInput(
            f"{name} gives more than half of its pairs of items the same vector: "
            "the Gaussian kernel has no width. Use linear cka, or drop the repeated items."
        )
    return median / 2


def u_centred(gram: Array) -> Array:
    """Ã of a symmetric (n, n) matrix whose diagonal is taken as 0: rows sum to 0 off the diagonal."""
    n = len(gram)
    hollow = gram - np.diag(np.diag(gram))
    rows = hollow.sum(axis=1) / (n - 2)
    centred = hollow - rows[:, None] - rows[None, :] + rows.sum() / (n - 1)
    np.fill_diagonal(centred, 0.0)
    return centred


def cka_gaussian(A: Array, B: Array) -> float:
    """CKA of two prepared Gaussian Grams, unbiased, in [−1, 1]: alike near by as well as far away.

    Kornblith et al. 2019, section 3, with the unbiased HSIC of Song et al. 2012.
    """
    return float(np.vdot(A, B) / (np.linalg.norm(A) * np.linalg.norm(B)))
