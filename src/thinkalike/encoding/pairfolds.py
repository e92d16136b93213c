"""Folds over pairs, as in the authors' 2024 code: a pair is in one fold, an item in all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from thinkalike.encoding.cells import table_moments
from thinkalike.encoding.designs import Design, make_design
from thinkalike.encoding.fitting import FoldFit, ItemsFit, smallest_best, spearman_of_fits
from thinkalike.encoding.importance import (
    PERMUTING,
    Evaluation,
    FeatureSet,
    PatternSpace,
    make_feature_sets,
    pattern_space,
)
from thinkalike.encoding.moments import Coefficients, Moments, fit_each_alpha, fit_moments
from thinkalike.encoding.plan import Features, feature_table, is_stimuli, warn_of_sampling
from thinkalike.encoding.scoring import PairPatterns, find_patterns, rank_values
from thinkalike.encoding.settings import Settings
from thinkalike.errors import InvalidInput
from thinkalike.pairs.distances import Target
from thinkalike.pairs.preprocessing import NO_STEPS, Preprocessing, prepare_steps
from thinkalike.stimuli.differences import FeatureDifferences
from thinkalike.stimuli.feature_coding import code_features, require_variation

INNER_TRAINING_SHARE = 0.8


@dataclass(frozen=True)
class PairPlan:
    """How to fit and judge any layer, with pairs in folds.

    Attributes
    ----------
    fold : int array of shape (n_pairs,)
    inner : bool array of shape (n_pairs,), whether a pair helps to choose α when it is in training
    columns : array of shape (n_patterns, n_columns)
    tests : for each fold its pairs, and their space of exchanged patterns
    """

    settings: Settings
    n_items: int
    differences: FeatureDifferences
    design: Design
    feature_sets: tuple[FeatureSet, ...]
    patterns: PairPatterns
    fold: np.ndarray
    inner: np.ndarray
    columns: np.ndarray
    tests: tuple[tuple[PairPatterns, PatternSpace | None], ...]
    steps: Preprocessing = NO_STEPS
    """What vectors go through first"""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.feature_sets)

    @property
    def n_folds(self) -> int:
        return len(self.tests)


def plan_pairs(
    features: Features,
    settings: Settings,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    coded: FeatureDifferences | None = None,
) -> PairPlan:
    """Code the features and deal all pairs of items into folds."""
    chosen = settings
    table = feature_table(features)
    n_pairs = len(table) * (len(table) - 1) // 2
    if n_pairs > chosen.max_pairs:
        raise InvalidInput(
            f"Got {len(table)} items, which make {n_pairs} pairs: folds over pairs need them all, and take "
            f"at most {chosen.max_pairs}. Use folds over items (preset='default')."
        )
    if n_pairs < 2 * chosen.n_folds:
        raise InvalidInput(
            f"Got {len(table)} items, {n_pairs} pairs, for {chosen.n_folds} folds: give more stimuli."
        )
    differences = coded or code_features(table, ordered=chosen.ordered, missing=chosen.missing)
    require_variation(differences.features)
    patterns = find_patterns(differences, max_pairs=chosen.max_pairs)
    rng = np.random.default_rng(chosen.seed)
    fold = rng.permutation(n_pairs) % chosen.n_folds
    inner = rng.random(n_pairs) >= INNER_TRAINING_SHARE
    feature_sets = make_feature_sets(differences.names, groups)
    tests = []
    for k in range(chosen.n_folds):
        own = patterns.select(np.flatnonzero(fold == k))
        wanted = chosen.importance in PERMUTING
        tests.append((own, pattern_space(own, feature_sets) if wanted else None))
    warn_of_sampling([space for _, space in tests], chosen)
    design = make_design(chosen.design, len(differences.names))
    columns = design.expand(patterns.values)
    return PairPlan(
        chosen,
        len(table),
        differences,
        design,
        feature_sets,
        patterns,
        fold,
        inner,
        columns,
        tuple(tests),
        prepare_steps(chosen.steps, features if is_stimuli(features) else table),
    )


def fit_pairs(plan: PairPlan, target: Target) -> list[FoldFit]:
    """Fit and judge each fold."""
    observed, rounding = target.within(np.arange(plan.n_items))
    y = scale_target(observed, plan.settings)
    fits = []
    for k, (own, space) in enumerate(plan.tests):
        training = plan.fold != k
        alpha, curve = choose_on_split(plan, y, training)
        moments = _moments(plan, y, training)
        fit = fit_moments(moments, plan.design, alpha=alpha, intercept=plan.settings.intercept)
        ranked = rank_values(observed[plan.fold == k], own, rounding)
        evaluation = Evaluation(
            plan.design, moments, alpha, plan.settings.intercept, fit, own, ranked, plan.feature_sets, space
        )
        fits.append(FoldFit(evaluation, alpha, curve))
    return fits


def fit_all_pairs(features: Features, target: Target, settings: Settings) -> ItemsFit:
    """Fit all pairs of all items."""
    plan = plan_pairs(features, settings)
    y = scale_target(target.within(np.arange(plan.n_items))[0], settings)
    everything = np.ones(len(y), dtype=bool)
    alpha, curve = choose_on_split(plan, y, everything)
    moments = _moments(plan, y, everything)
    fit = fit_moments(moments, plan.design, alpha=alpha, intercept=settings.intercept)
    return ItemsFit(moments, fit, alpha, curve)


def scale_target(y: np.ndarray, settings: Settings) -> np.ndarray:
    """The squared distances; or, for target="minmax", the distances scaled to [0, 1] and squared."""
    if settings.target == "squared":
        return y
    if y.min() < 0:
        raise InvalidInput(
            "Some crossnobis distances are negative, which have no root: use target='squared'."
        )
    d = np.sqrt(y)
    if d.max() - d.min() <= 1e-12 * d.max():
        raise InvalidInput(
            "All pairs of items are equally far apart, so there is nothing to explain: leave this layer out."
        )
    scaled: np.ndarray = ((d - d.min()) / (d.max() - d.min())) ** 2
    return scaled


def choose_on_split(plan: PairPlan, y: np.ndarray, training: np.ndarray) -> tuple[float, np.ndarray]:
    """α by squared error (or ρ) on the inner split of the training pairs; and its curve, larger is better."""
    settings = plan.settings
    if settings.alpha != "cv":
        return float(settings.alpha), np.empty(0)
    moments = _moments(plan, y, training & ~plan.inner)
    judged = np.flatnonzero(training & plan.inner)
    if not len(judged) or not moments.n_pairs:  # so few pairs that one side of the split is empty
        return float(min(settings.alphas)), np.full(len(settings.alphas), np.nan)
    fits = fit_each_alpha(moments, plan.design, settings.alphas, intercept=settings.intercept)
    if settings.select == "mse":
        curve = np.array([-_squared_error(plan, y, judged, fit) for fit in fits])
    else:
        own = plan.patterns.select(judged)
        table = rank_values(y[judged], own).table
        curve = spearman_of_fits(plan.design, fits, own.values, table)
    return smallest_best(settings.alphas, curve), curve


def _moments(plan: PairPlan, y: np.ndarray, chosen: np.ndarray) -> Moments:
    ids, size = plan.patterns.ids[chosen], len(plan.patterns.counts)
    counts = np.bincount(ids, minlength=size).astype(float)
    sums = np.bincount(ids, weights=y[chosen], minlength=size)
    return table_moments(plan.columns, counts, sums)


def _squared_error(plan: PairPlan, y: np.ndarray, judged: np.ndarray, fit: Coefficients) -> float:
    predictions = plan.columns @ fit.weights + fit.intercept
    return float(np.mean((predictions[plan.patterns.ids[judged]] - y[judged]) ** 2))
