"""A package of someone else: one entry of every kind that thinkalike takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from thinkalike.encoding.importance import drop_importance
from thinkalike.recipes.recipe_registry import Recipe
from thinkalike.systems.architectures import Architecture

tower = Architecture("decoder", "storeys", attention="look", mlp="think")
recipe = Recipe("tiny-recipe", "A tiny experiment", "Nobody 2026", "Figure 1", "tiny_plugin")


def first_unit(X: np.ndarray, Y: np.ndarray) -> float:
    return float(np.corrcoef(X[:, 0], Y[:, 0])[0, 1])


def chebyshev(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return cdist(A, B, "chebyshev")


class OnlyFirst:
    """A step as scikit-learn writes them: the first unit, the others being constant."""

    def fit(self, X: np.ndarray) -> OnlyFirst:
        self.n_units = X.shape[1]
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return X * (np.arange(self.n_units) == 0)


def half_drop(evaluation: Any, *, n_permutations: int, seed: int) -> np.ndarray:
    return drop_importance(evaluation, n_permutations=n_permutations, seed=seed) / 2


def mlp_inner(row: Architecture, config: Any) -> tuple[str, ...]:
    """What goes on inside the MLP of GPT-2, before its last matrix."""
    return ("mlp.act",) if row.blocks == "h" else ()
