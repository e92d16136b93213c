"""How much of one layer a linear map from the other explains."""

from __future__ import annotations

import numpy as np

from thinkalike.errors import InvalidInput
from thinkalike.measures.cca import Basis
from thinkalike.measures.inputs import Array, Vectors, at_least, centred


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
