"""What linear maps from one layer to the other can do.

Canonical correlations: mean, truncated (SVCCA) and projection-weighted (PWCCA). How much of one layer a
linear map from the other explains; and how differently ridge regressions on two layers predict, over all
tasks (GULP).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from thinkalike.errors import InvalidInput
from thinkalike.measures.inputs import Array, Vectors, at_least, centred

# float32 activations carry no direction below this share of the largest; whitening would blow its noise up.
RANK_TOLERANCE = 1e-6
TIED = 1e-9
"""Canonical correlations so close are equal: rounding turns their variates by more than 1e-7"""


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
    Morcos et al. 2018. Where correlations are equal, as those of a shared subspace are, any rotation of its
    variates is as good and would give other weights: we take the principal axes of X there.
    """
    room_for_both(X, Y, "pwcca")
    U, correlations, _ = linalg.svd(X.directions.T @ Y.directions, full_matrices=False)
    accounted = (X.directions @ U).T @ X.centred
    steps = np.flatnonzero(-np.diff(correlations) > TIED) + 1
    for tied in np.split(np.arange(len(correlations)), steps):
        _, sizes, axes = linalg.svd(accounted[tied], full_matrices=False)
        accounted[tied] = sizes[:, None] * axes
    return float(np.average(np.minimum(correlations, 1.0), weights=np.abs(accounted).sum(axis=1)))


def eigenspace_overlap(X: Basis, Y: Basis) -> float:
    """‖Q_Xᵀ Q_Y‖²_F / max(rank_X, rank_Y) of the centred layers' spans, in [0, 1].

    The sum of squared canonical correlations: a layer that spans more than the other loses. May et al. 2019.
    """
    room_for_both(X, Y, "eigenspace-overlap")
    return float((canonical_correlations(X, Y) ** 2).sum() / max(X.rank, Y.rank))


def explained(X: Basis, Y: Basis) -> float:
    """R² of the least-squares prediction of Y from X, ‖Q_Xᵀ Y‖²_F / ‖Y‖²_F, in [0, 1].

    Fitted and scored on the same items, so an unrelated X of rank r gives r/(n − 1): see `regression-cv`.
    Kornblith et al. 2019, eq. 7.
    """
    n = len(X.directions)
    if n - 1 <= X.rank:
        raise InvalidInput(
            f"regression from {X.name}: it spans {X.rank} directions and {n} items leave {n - 1}, so it "
            f"predicts anything. Use regression-cv, cka or procrustes, or more than {X.rank + 1} items."
        )
    captured = X.directions.T @ (Y.directions * Y.sizes)
    return min(float((captured**2).sum() / (Y.sizes**2).sum()), 1.0)


def explained_reverse(X: Basis, Y: Basis) -> float:
    """R² of predicting X from Y."""
    return explained(Y, X)


def explained_mean(X: Basis, Y: Basis) -> float:
    """Mean of the R² of the two directions: symmetric, in [0, 1]."""
    return (explained(X, Y) + explained(Y, X)) / 2


def prepare_scaled(X: Vectors, name: str = "X", *, folds: int = 5) -> Array:
    """Centred, with a mean squared row norm of 1, so that one grid of penalties serves every layer."""
    at_least(2 * folds, X, name)
    C = centred(X, name)
    return C * (np.sqrt(len(C)) / np.linalg.norm(C))


def explained_held_out(X: Array, Y: Array, *, folds: int = 5, seed: int = 0) -> float:
    """R² on held-out items of a ridge regression from X to Y, in (−∞, 1]; about 0 for unrelated layers.

    Folds of random items (seeded); the penalty is chosen within the training folds by leave-one-out error.
    The denominator is Y's variance around the training mean.
    """
    from sklearn.linear_model import RidgeCV

    order = np.random.default_rng(seed).permutation(len(X))
    missed = total = 0.0
    for test in np.array_split(order, folds):
        train = np.setdiff1d(order, test)
        ridge = RidgeCV(alphas=np.logspace(-4, 4, 9)).fit(X[train], Y[train])
        missed += float(((Y[test] - ridge.predict(X[test])) ** 2).sum())
        total += float(((Y[test] - Y[train].mean(axis=0)) ** 2).sum())
    return 1 - missed / total


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
