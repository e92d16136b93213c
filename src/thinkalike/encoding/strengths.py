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
from thinkalike.encoding.item_effects import ItemEffects, item_effects
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
    feature (`encoding.item_effects`).
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
