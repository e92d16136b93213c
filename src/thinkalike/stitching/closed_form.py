"""Least squares between two layers from their moments, summed in one pass: no activations are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, solve

if TYPE_CHECKING:
    from torch import Tensor

Floats = npt.NDArray[np.float64]

# Relative to the mean variance. Where a direction has no variance (the outputs of a LayerNorm have such a
# one), it keeps the solution finite and changes nothing that the data can tell.
RIDGE = 1e-9


class Moments:
    """Σx, Σx xᵀ and the count of one layer's rows, in float64."""

    def __init__(self, width: int) -> None:
        self.n = 0
        self.sum = np.zeros(width)
        self.square = np.zeros((width, width))

    def add(self, rows: Tensor) -> None:
        """rows : float64 (n, width)"""
        self.n += len(rows)
        self.sum += rows.sum(0).cpu().numpy()
        self.square += (rows.T @ rows).cpu().numpy()

    @property
    def mean(self) -> Floats:
        return self.sum / self.n

    @property
    def covariance(self) -> Floats:
        return self.square / self.n - np.outer(self.mean, self.mean)


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
    def of(cls, x: Moments, y: Moments, products: Floats) -> Pair:
        cross = products / x.n - np.outer(x.mean, y.mean)
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
