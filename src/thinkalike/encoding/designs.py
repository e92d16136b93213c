"""The columns that explain a squared distance: one per feature (diagonal W), or per pair (full W)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thinkalike.encoding.nonnegative import solve_nonnegative_many
from thinkalike.encoding.semidefinite import solve_psd_each, unpack
from thinkalike.errors import UnknownName


@dataclass(frozen=True)
class Design:
    """The columns of the regression y ≈ c + ΔᵀWΔ, as functions of the squared differences Δ².

    diagonal: column f is Δ_f², its coefficient W_ff ≥ 0. full: columns are Δ_f Δ_g for f ≤ g, times √2 off
    the diagonal, so that the coefficients are svec(W), W positive semi-definite.
    """

    name: str
    n_features: int

    @property
    def n_columns(self) -> int:
        F = self.n_features
        return F if self.name == "diagonal" else F * (F + 1) // 2

    def expand(self, squared: np.ndarray) -> np.ndarray:
        """From squared differences (n, n_features) to columns (n, n_columns)."""
        if self.name == "diagonal":
            return squared
        f, g = np.triu_indices(self.n_features)
        delta = np.sqrt(squared)
        return delta[:, f] * delta[:, g] * np.where(f == g, 1.0, np.sqrt(2.0))

    def predict(self, squared: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """ΔᵀWΔ of shape (n,), summed column by column, so that equal patterns give equal bits.

        Of several W, with coefficients of shape (n_fits, n_columns), in one call: (n_fits, n).
        """
        columns = self.expand(squared)
        total = np.zeros((*coefficients.shape[:-1], len(squared)))
        for k in range(coefficients.shape[-1]):
            if coefficients[..., k].any():
                total += coefficients[..., k, None] * columns[:, k]
        return total

    def columns_of(self, features: np.ndarray) -> np.ndarray:
        """Indices of the columns that involve only `features` (sorted indices)."""
        if self.name == "diagonal":
            return features
        f, g = np.triu_indices(self.n_features)
        return np.flatnonzero(np.isin(f, features) & np.isin(g, features))

    def solve(self, gram: np.ndarray, cross: np.ndarray, alphas: Sequence[float]) -> list[np.ndarray]:
        """For each penalty the coefficients, of as many columns as `gram` has."""
        if self.name == "full":
            return solve_psd_each(gram, cross, alphas)
        crosses = np.broadcast_to(cross, (len(alphas), len(cross)))
        return list(solve_nonnegative_many(gram, crosses, np.asarray(alphas)))

    def as_matrix(self, coefficients: np.ndarray) -> np.ndarray:
        """W of shape (n_features, n_features)."""
        return np.diag(coefficients) if self.name == "diagonal" else unpack(coefficients, self.n_features)


DESIGNS = ("diagonal", "full")


def make_design(name: str, n_features: int) -> Design:
    """The design of that name for so many features."""
    if name not in DESIGNS:
        raise UnknownName.among("design", name, DESIGNS)
    return Design(name, n_features)
