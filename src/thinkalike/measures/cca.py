"""Canonical correlations between two layers: mean, truncated (SVCCA) and projection-weighted (PWCCA)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from thinkalike.errors import InvalidInput
from thinkalike.measures.inputs import Array, Vectors, centred

# float32 activations carry no direction below this share of the largest; whitening would blow its noise up.
RANK_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Basis:
    """A centred layer as directions over items.

    Attributes
    ----------
    name
        For error messages.
    directions
        Orthonormal columns that span the layer, of shape (n_items, rank).
    sizes
        Singular values, largest first, of shape (rank,).
    centred
        The layer itself, of shape (n_items, n_units).
    """

    name: str
    directions: Array
    sizes: Array
    centred: Array

    @property
    def rank(self) -> int:
        return len(self.sizes)


def prepare_basis(X: Vectors, name: str = "X") -> Basis:
    """The directions of `X` that are more than rounding."""
    C = centred(X, name)
    U, sizes, _ = linalg.svd(C, full_matrices=False)
    rank = int((sizes > RANK_TOLERANCE * sizes[0]).sum())
    return Basis(name, U[:, :rank], sizes[:rank], C)


def prepare_leading(X: Vectors, name: str = "X", *, variance: float = 0.99) -> Basis:
    """The fewest leading directions that hold a `variance` share of the variance (Raghu et al. 2017)."""
    basis = prepare_basis(X, name)
    held = np.cumsum(basis.sizes**2) / np.sum(basis.sizes**2)
    rank = min(int(np.searchsorted(held, variance)) + 1, basis.rank)
    return Basis(name, basis.directions[:, :rank], basis.sizes[:rank], basis.centred)


def room_for_both(X: Basis, Y: Basis, measure: str) -> None:
    """Refuse layers whose spans must meet: n items leave n − 1 directions, and the excess correlates at 1."""
    n = len(X.directions)
    forced = X.rank + Y.rank - (n - 1)
    if forced > 0:
        raise InvalidInput(
            f"{measure} of {X.name} and {Y.name}: they span {X.rank} and {Y.rank} directions and {n} items "
            f"leave {n - 1}, so {min(forced, X.rank, Y.rank)} of the correlations are 1 whatever the data. "
            f"Use cka, procrustes or svcca, or more than {X.rank + Y.rank} items."
        )


def canonical_correlations(X: Basis, Y: Basis) -> Array:
    """Largest first, of shape (min(rank_X, rank_Y),): the cosines of the angles between the two spans."""
    return np.minimum(linalg.svdvals(X.directions.T @ Y.directions), 1.0)


def cca(X: Basis, Y: Basis) -> float:
    """Mean canonical correlation, in [0, 1]. Independent layers do not give 0 but about √((d_X + d_Y)/n).

    Raghu et al. 2017; Kornblith et al. 2019, eq. 8 (ρ̄_CCA).
    """
    room_for_both(X, Y, "cca")
    return float(canonical_correlations(X, Y).mean())


def svcca(X: Basis, Y: Basis) -> float:
    """Mean canonical correlation of the leading directions (99 % of the variance), in [0, 1].

    Raghu et al. 2017.
    """
    room_for_both(X, Y, "svcca")
    return float(canonical_correlations(X, Y).mean())


def pwcca(X: Basis, Y: Basis) -> float:
    """Canonical correlations weighted by how much of X each canonical variate h_i accounts for, in [0, 1].

    Weights ∝ Σ_j |h_i · x_j| over the units j of X: so not symmetric, and not blind to rotations of X.
    Morcos et al. 2018.
    """
    room_for_both(X, Y, "pwcca")
    U, correlations, _ = linalg.svd(X.directions.T @ Y.directions, full_matrices=False)
    weights = np.abs((X.directions @ U).T @ X.centred).sum(axis=1)
    return float(np.average(np.minimum(correlations, 1.0), weights=weights))


def eigenspace_overlap(X: Basis, Y: Basis) -> float:
    """‖Q_Xᵀ Q_Y‖²_F / max(rank_X, rank_Y) of the centred layers' spans, in [0, 1].

    The sum of squared canonical correlations: a layer that spans more than the other loses. May et al. 2019.
    """
    room_for_both(X, Y, "eigenspace-overlap")
    return float((canonical_correlations(X, Y) ** 2).sum() / max(X.rank, Y.rank))
