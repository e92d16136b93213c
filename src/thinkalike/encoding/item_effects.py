r"""Sums over pairs with what each item has for itself taken out.

‖x_i − x_j‖² holds ‖x_i‖² and ‖x_j‖²: an item whose vector is long is far from all others. Where one level of
a feature is rarer than another, its items differ from more others, and then the lengths of a few vectors move
the feature's coefficient. With a free number a_i + a_j for every pair they do not. Such a regression need not
be solved with all its columns: it is that of columns from which rows and columns are taken out (U-centred,
Székely and Rizzo 2014), and for symmetric A and B with 0 on the diagonal and row sums a and b

    Σ_pairs Ã B̃ = Σ_pairs A B − Σ_i a_i b_i / (n − 2) + (Σ_i a_i)(Σ_i b_i) / (2 (n − 1)(n − 2)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinkalike.encoding.moments import FeatureSide
from thinkalike.pairs.distances import QuadraticTarget
from thinkalike.stimuli.differences import CodedFeature


@dataclass(frozen=True)
class ItemEffects:
    """Of the columns over several sets of items; made by `item_effects`."""

    kept: tuple[np.ndarray, ...]
    """Which items are in each set"""
    rows: tuple[np.ndarray, ...]
    """(n_features, n_kept) for each item of a set the sum of its differences from the others"""

    def of_columns(self) -> np.ndarray:
        """What is to be added to Σ z zᵀ of each set."""
        return np.stack([_taken_out(rows, rows) for rows in self.rows])

    def of_target(self, side: FeatureSide, target: QuadraticTarget) -> np.ndarray:
        """What is to be added to Σ z y of each set."""
        sums = _target_sums(side, target)
        return np.stack(
            [_taken_out(rows, y[kept]) for rows, y, kept in zip(self.rows, sums, self.kept, strict=True)]
        )


def item_effects(side: FeatureSide) -> ItemEffects:
    """What the items of each set have for themselves in the columns."""
    kept = tuple(inside[side.block] for inside in side.membership)
    rows = tuple(np.stack([_row_sums(f, some) for f in side.differences.features]) for some in kept)
    return ItemEffects(kept, rows)


def _taken_out(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    n = rows.shape[1]
    both: np.ndarray = np.multiply.outer(rows.sum(axis=1), others.sum(axis=-1)) / (2 * (n - 1) * (n - 2))
    return both - (rows @ others.T) / (n - 2)


def _row_sums(feature: CodedFeature, kept: np.ndarray) -> np.ndarray:
    """For each kept item the sum of its differences from the others."""
    B, C = feature.smooth
    codes = feature.codes[kept]
    counts = np.bincount(codes, minlength=feature.n_levels).astype(float)
    of_level = B @ (C @ (counts @ B))
    if feature.is_indicator:
        of_level = of_level - np.where(feature.counted, counts, 0.0)
    rows: np.ndarray = of_level[codes]
    return rows


def _target_sums(side: FeatureSide, target: QuadraticTarget) -> np.ndarray:
    """(n_sets, n_items): for each item the sum of y to the items of each set."""
    inside = side.membership.astype(float)
    rows = np.zeros((len(inside), target.n_items))
    blocks = np.eye(inside.shape[1])[side.block].T
    n = inside @ blocks.sum(axis=1)
    for coefficient, x in target.terms:
        z = np.asarray(x, dtype=float) - x.mean(axis=0, dtype=float)
        squares = np.einsum("ij,ij->i", z, z)
        total = inside @ (blocks @ squares)
        towards = inside @ (blocks @ z)
        rows += coefficient * (n[:, None] * squares + total[:, None] - 2 * (towards @ z.T))
    return rows
