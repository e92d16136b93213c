"""Least squares between two layers from their moments, summed in one pass: no activations are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigh, solve

from thinkalike.labels import Floats

if TYPE_CHECKING:
    from torch import Tensor


# Relative to the mean variance. Where a direction has no variance (the outputs of a LayerNorm have such a
# one), it keeps the solution finite and changes nothing that the data can tell.
RIDGE = 1e-9


class LayerMoments:
    """Count, mean and covariance of one layer's rows, summed in float64 about the mean of the first batch.

    With a common offset in float32 the products of two layers would cancel badly; about that mean they do
    not.
    """

    def __init__(self, rows: Tensor) -> None:
        width = rows.shape[1]
        self.n = 0
        self.shift = rows.mean(0)
        self._sum = rows.new_zeros(width, dtype=rows.double().dtype)
        self._square = self._sum.new_zeros(width, width)

    def add(self, rows: Tensor) -> Tensor:
        """Add rows (n, width), and give them back about the shift."""
        shifted = rows - self.shift
        exact = shifted.double()
        self.n += len(rows)
        self._sum += exact.sum(0)
        self._square.addmm_(exact.T, exact)
        return shifted

    @property
    def shifted_mean(self) -> Floats:
        return self._sum.cpu().numpy() / self.n

    @property
    def mean(self) -> Floats:
        return self.shifted_mean + self.shift.double().cpu().numpy()

    @property
    def covariance(self) -> Floats:
        return self._square.cpu().numpy() / self.n - np.outer(self.shifted_mean, self.shifted_mean)


@dataclass(frozen=True, eq=False)
class Pair:
    """Means and (co)variances of two layers X (bottom) and Y (top) over the same tokens."""

    mean_x: Floats
    mean_y: Floats
    variance_x: Floats
    """(n_in, n_in)"""
    variance_y: Floats
    """(n_out, n_out)"""
    cross: Floats
    """(n_in, n_out)"""

    @classmethod
    def of(cls, x: LayerMoments, y: LayerMoments, products: Floats) -> Pair:
        """`products` is Σ x yᵀ of the rows about their shifts, as `LayerMoments.add` gives them back."""
        cross = products / x.n - np.outer(x.shifted_mean, y.shifted_mean)
        return cls(x.mean, y.mean, x.covariance, y.covariance, cross)

    def bias(self, weight: Floats) -> Floats:
        """What makes the means agree."""
        return self.mean_y - self.mean_x @ weight

    def explained(self, weight: Floats) -> float:
        """R² of x W + b over all units of Y together."""
        residual = (
            np.trace(self.variance_y)
            - 2 * (weight * self.cross).sum()
            + (weight * (self.variance_x @ weight)).sum()
        )
        total = np.trace(self.variance_y)
        return float(1 - residual / total) if total > 0 else float("nan")


def ridge_solution(pair: Pair) -> tuple[Floats, Floats]:
    """W = (Σxx + εI)⁻¹ Σxy and b, the affine map that is nearest to Y; ε only keeps it finite."""
    weight = solve(_regular(pair.variance_x), pair.cross, assume_a="pos")
    return weight, pair.bias(weight)


def orthogonal_solution(pair: Pair) -> tuple[Floats, Floats]:
    """argmin ‖X Q − Y‖² over Q with orthonormal rows or columns (Schönemann 1966), and b."""
    left, _, right = np.linalg.svd(pair.cross, full_matrices=False)
    weight = left @ right
    return weight, pair.bias(weight)


def reduced_rank(pair: Pair, rank: int) -> tuple[Floats, Floats, Floats]:
    """Reduced-rank regression (Izenman 1975): W V Vᵀ with V the leading directions of what W predicts.

    Returns the two factors (n_in, rank) and (rank, n_out), and b.
    """
    weight, _ = ridge_solution(pair)
    n_out = weight.shape[1]
    predicted = weight.T @ pair.variance_x @ weight
    _, leading = eigh((predicted + predicted.T) / 2, subset_by_index=[n_out - rank, n_out - 1])
    left, right = weight @ leading, leading.T
    return left, right, pair.bias(left @ right)


def _regular(variance: Floats) -> Floats:
    scale = np.trace(variance) / len(variance) or 1.0
    return variance + RIDGE * scale * np.eye(len(variance))
