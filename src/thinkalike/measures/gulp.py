"""GULP: how differently ridge regressions on two layers predict, over all tasks."""

from __future__ import annotations

import numpy as np

from thinkalike.measures.cca import Basis, prepare_basis
from thinkalike.measures.inputs import Array, Vectors


def prepare_predictor(X: Vectors, name: str = "X", *, ridge: float = 0.01) -> Array:
    """A with AAᵀ = X(XᵀX + λ)⁻¹Xᵀ for centred X of unit norm, of shape (n_items, rank)."""
    basis: Basis = prepare_basis(X, name)
    variances = basis.sizes**2 / np.sum(basis.sizes**2)
    return basis.directions * np.sqrt(variances / (variances + ridge))


def gulp(A: Array, B: Array) -> float:
    """‖AAᵀ − BBᵀ‖_F between the ridge predictors of two layers, in [0, ∞). A metric.

    The root mean squared difference of the two layers' ridge predictions over tasks drawn at random; the
    penalty λ (0.01 of the variance) leads from CCA (λ → 0) to CKA (λ → ∞). Boix-Adserà et al. 2022.
    """
    squared = ((A.T @ A) ** 2).sum() + ((B.T @ B) ** 2).sum() - 2 * ((A.T @ B) ** 2).sum()
    return float(np.sqrt(max(squared, 0.0)))
