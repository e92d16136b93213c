r"""Strength: what a feature does to the squared distance of two items when they differ in it.

Importance grows with strength and with the share of pairs that differ, so unrelated systems get alike
importances from the stimuli alone. Strengths do not know that share: they are the least-squares coefficients
of y ≈ c + Σ_f w_f Δ_f² + Σ_f v_f 1[one of the two has no value of f], times the mean Δ_f² of the pairs that
differ, in units of c, the squared distance of two items alike in everything. The columns v_f take up what
having a value at all does; without them a feature that goes with it, such as part of speech, would get that
too, in every system alike. There is no penalty and no bound at 0, which would tie what is merely small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from thinkalike.encoding.designs import make_design
from thinkalike.encoding.importance import FeatureSet
from thinkalike.encoding.moments import FeatureSide, Moments, feature_side, nested_sets
from thinkalike.encoding.plan import set_moments
from thinkalike.errors import InvalidInput
from thinkalike.pairs.distances import QuadraticTarget, Target
from thinkalike.stimuli.differences import CodedFeature, FeatureDifferences

LEAST_NOISE = 0.01
"""The unit is at least this share of the mean squared distance: the intercept of few items can be near 0."""
ESTIMABLE = 1e-6
"""How far from 1 the resolution of a coefficient may be; a column that others make up has none."""


@dataclass(frozen=True)
class StrengthPlan:
    """What of the strengths does not depend on the activations; made by `plan_strengths`."""

    columns: FeatureDifferences
    """The features, then the presence of those with missing values"""
    fold: np.ndarray
    left_out: tuple[frozenset[int], ...]
    side: FeatureSide
    step: np.ndarray
    """(n_features,) mean squared difference of the pairs that differ"""
    feature_sets: tuple[FeatureSet, ...]
    solvers: tuple[LeastSquares, ...]
    """One for each set of items"""
    own: ItemEffects | None = None
    """What items have for themselves, if that is taken out"""


@dataclass(frozen=True)
class LeastSquares:
    """The coefficients of columns on any target over the same pairs: `inverse` times the covariances.

    Attributes
    ----------
    means, centre
        Of the columns, and what is to be taken out of them: nothing where they are U-centred already.
    """

    means: np.ndarray
    centre: np.ndarray
    inverse: np.ndarray
    estimable: np.ndarray
    """Which coefficients the items can tell"""

    @classmethod
    def of(cls, n_pairs: float, sums: np.ndarray, gram: np.ndarray, *, centred: bool = False) -> LeastSquares:
        means = sums / n_pairs
        centre = np.zeros_like(means) if centred else means
        covariance = gram / n_pairs - np.outer(centre, centre)
        scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        scale[scale == 0] = 1.0
        covariance /= np.outer(scale, scale)
        inverse = np.linalg.pinv(covariance, rcond=1e-10, hermitian=True)
        estimable = np.diag(inverse @ covariance) > 1 - ESTIMABLE
        return cls(means, centre, inverse / np.outer(scale, scale), estimable)


def plan_strengths(
    differences: FeatureDifferences,
    feature_sets: Sequence[FeatureSet],
    fold: np.ndarray | None = None,
    *,
    own_effects: bool = False,
) -> StrengthPlan:
    """Prepare the strengths on all items but those of each fold; on all items without folds.

    With `own_effects` every item has a free number of its own, so that how long its vector is moves no
    feature (`ItemEffects`).
    """
    presences = tuple(_presence(f) for f in differences.features if not f.counted.all())
    columns = replace(differences, features=differences.features + presences)
    block = np.zeros(len(differences), dtype=np.int64) if fold is None else fold
    left_out = (frozenset[int](),) if fold is None else tuple(frozenset({k}) for k in range(fold.max() + 1))
    side = feature_side(columns, block, nested_sets(int(block.max()) + 1, left_out))
    step = np.array([_mean_step(f) for f in differences.features])
    own = item_effects(side) if own_effects else None
    grams = side.grams if own is None else side.grams + own.of_columns()
    solvers = [
        LeastSquares.of(*of_set, centred=own_effects)
        for of_set in zip(side.n_pairs, side.sums, grams, strict=True)
    ]
    return StrengthPlan(columns, block, left_out, side, step, tuple(feature_sets), tuple(solvers), own)


def strengths(plan: StrengthPlan, target: Target) -> np.ndarray:
    """The strength of each set of features, of shape (n_folds, n_sets); NaN where the items cannot tell it.

    A group of features has the mean of theirs.
    """
    design = make_design("diagonal", plan.columns.n_features)
    moments = set_moments(plan.columns, target, design, plan.fold, plan.left_out, side=plan.side)
    if plan.own is not None:
        if not isinstance(target, QuadraticTarget):
            raise InvalidInput("Item effects need a distance that is a transform of X, such as euclidean.")
        own = plan.own.of_target(plan.side, target)
        moments = [replace(part, cross=part.cross + more) for part, more in zip(moments, own, strict=True)]
    of_features = np.stack(
        [_of_moments(part, solver, plan.step) for part, solver in zip(moments, plan.solvers, strict=True)]
    )
    return np.stack(
        [of_features[:, feature_set.features].mean(axis=1) for feature_set in plan.feature_sets], axis=1
    )


def _of_moments(moments: Moments, solver: LeastSquares, step: np.ndarray) -> np.ndarray:
    mean_target = moments.target_sum / moments.n_pairs
    weights = solver.inverse @ (moments.cross / moments.n_pairs - solver.centre * mean_target)
    noise = max(mean_target - solver.means @ weights, LEAST_NOISE * mean_target)
    values: np.ndarray = np.where(solver.estimable, weights, np.nan)[: len(step)] * step / noise
    return values


def _presence(feature: CodedFeature) -> CodedFeature:
    """Whether an item has a value of `feature`, as a feature of its own."""
    return CodedFeature(
        name=f"presence of {feature.name}",
        kind="nominal",
        codes=feature.present[feature.codes].astype(np.int64),
        levels=np.array([False, True], dtype=object),
        present=np.ones(2, dtype=bool),
        places=None,
        missing_is_level=False,
    )


def _mean_step(feature: CodedFeature) -> float:
    """The mean squared difference of the pairs of items that differ in `feature`; 1 for an indicator."""
    if feature.is_indicator:
        return 1.0
    B, C = feature.smooth
    counts = np.bincount(feature.codes, minlength=feature.n_levels).astype(float)
    t, counted = counts @ B, counts[feature.counted]
    differing = counted.sum() ** 2 - (counted**2).sum()
    return float(t @ C @ t / differing) if differing > 0 else 1.0


@dataclass(frozen=True)
class ItemEffects:
    r"""Of the columns over several sets of items; made by `item_effects`.

    ‖x_i − x_j‖² holds ‖x_i‖² and ‖x_j‖²: an item whose vector is long is far from all others. Where one level
    of a feature is rarer than another, its items differ from more others, and then the lengths of a few
    vectors move the feature's coefficient. With a free number a_i + a_j for every pair they do not. Such a
    regression need not be solved with all its columns: it is that of columns from which rows and columns are
    taken out (U-centred, Székely and Rizzo 2014), and for symmetric A and B with 0 on the diagonal and row
    sums a and b

        Σ_pairs Ã B̃ = Σ_pairs A B − Σ_i a_i b_i / (n − 2) + (Σ_i a_i)(Σ_i b_i) / (2 (n − 1)(n − 2)).
    """

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
