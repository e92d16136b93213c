"""Fitting one layer fold by fold: the choice of α, the fit, and what it is judged on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from thinkalike.encoding.designs import Design
from thinkalike.encoding.folds import balanced_folds
from thinkalike.encoding.importance import Evaluation
from thinkalike.encoding.moments import Coefficients, Moments, fit_each_alpha, fit_moments, nested_sets
from thinkalike.encoding.plan import EncodingPlan, check_sizes, judge_each, set_moments
from thinkalike.encoding.rank_fit import check_patterns, rank_tables, refine
from thinkalike.encoding.scoring import RankTable, find_patterns, rank_pairs, spearman_each
from thinkalike.encoding.settings import Settings
from thinkalike.pairs.distances import Target
from thinkalike.stimuli.differences import FeatureDifferences

ALPHA_TIE = 1e-12


@dataclass(frozen=True)
class FoldFit:
    """One outer fold: the fitted model, the α it took, and the curve that α was chosen on.

    `curve` has shape (n_alphas,), larger is better; it is empty if α was given.
    """

    evaluation: Evaluation
    alpha: float
    curve: np.ndarray
    rank_gain: float = np.nan
    """By how much a fit by ranks raises the mean inner ρ; it is kept if above 0. NaN if not asked"""


def fit_folds(plan: EncodingPlan, target: Target, folds: Iterable[int] | None = None) -> list[FoldFit]:
    """Fit and judge each fold, or some: train pairs lie within the others, test pairs within the fold."""
    settings = plan.settings
    moments = plan.moments(target)
    validated = [rank_pairs(v.patterns, target, v.items) for v in plan.validations]
    tested = validated
    if plan.folds_are_halved:
        tested = [rank_pairs(t.patterns, target, t.items) for t in plan.tests]

    by_ranks = None
    if plan.everyone is not None:
        judged = [(v.patterns.values, r.table) for v, r in zip(plan.validations, validated, strict=True)]
        by_ranks = _RankFits(
            plan.design, settings.intercept, plan.everyone.values, plan.ranks(target), moments, judged
        )

    @cache  # leaving out a and b serves fold a, judged on b, and fold b, judged on a
    def fits_of(left_out: frozenset[int]) -> list[Coefficients]:
        return fit_each_alpha(moments[left_out], plan.design, settings.alphas, intercept=settings.intercept)

    fits = []
    for k in range(plan.n_folds) if folds is None else folds:
        test, out = plan.tests[k], plan.blocks_of(k)
        alpha, curve = settings.alpha, np.empty(0)
        if alpha == "cv":
            inner = [
                (fits_of(out | {b}), v.patterns.values, validated[b].table)
                for b, v in enumerate(plan.validations)
                if b not in out
            ]
            alpha, curve = choose_alpha(plan.design, inner, settings.alphas)
        fit = fit_moments(moments[out], plan.design, alpha=float(alpha), intercept=settings.intercept)
        gain = np.nan
        if by_ranks is not None:
            fit, gain = by_ranks.better(fit, out, float(alpha))
        evaluation = Evaluation(
            plan.design,
            moments[out],
            float(alpha),
            settings.intercept,
            fit,
            test.patterns,
            tested[k],
            plan.feature_sets,
            test.space,
        )
        fits.append(FoldFit(evaluation, float(alpha), curve, gain))
    return fits


@dataclass
class _RankFits:
    """Fits by ranks of sets of items, named by the blocks that they leave out, and whether inner folds speak
    for them."""

    design: Design
    intercept: bool
    squared: np.ndarray
    """(n_patterns, n_features) of all pairs of items"""
    ranks: Mapping[frozenset[int], RankTable]
    moments: Mapping[frozenset[int], Moments]
    judged: Sequence[tuple[np.ndarray, RankTable]]
    """For each inner fold the patterns of its pairs, and their ranks"""
    known: dict[tuple[frozenset[int], float], tuple[Coefficients, Coefficients]] = field(default_factory=dict)

    def both(self, left_out: frozenset[int], alpha: float) -> tuple[Coefficients, Coefficients]:
        """By least squares, and by ranks from there."""
        if (left_out, alpha) not in self.known:
            own = self.moments[left_out]
            start = fit_moments(own, self.design, alpha=alpha, intercept=self.intercept)
            refined = refine(self.design, start, self.squared, self.ranks[left_out], own)
            self.known[left_out, alpha] = start, refined
        return self.known[left_out, alpha]

    def better(self, start: Coefficients, out: frozenset[int], alpha: float) -> tuple[Coefficients, float]:
        """The fit by ranks if it raises the mean ρ of the inner folds, else `start`; and by how much."""
        gains = []
        for b, (values, table) in enumerate(self.judged):
            if b not in out:
                before, after = spearman_of_fits(self.design, self.both(out | {b}, alpha), values, table)
                gains.append(after - before)
        known = np.array([gain for gain in gains if np.isfinite(gain)])
        gain = float(known.mean()) if len(known) else 0.0
        return (self.both(out, alpha)[1] if gain > 0 else start), gain


@dataclass(frozen=True)
class ItemsFit:
    """A fit to all items: their moments, the coefficients, the α and the curve that it was chosen on."""

    moments: Moments
    coefficients: Coefficients
    alpha: float
    curve: np.ndarray
    rank_gain: float = np.nan


def fit_items(
    differences: FeatureDifferences,
    target: Target,
    design: Design,
    settings: Settings,
    label: np.ndarray | None = None,
) -> ItemsFit:
    """Fit all items; `label` says which of them share an inner fold, if something is chosen on such."""
    fold, sets = np.zeros(len(differences), dtype=np.int64), [frozenset[int]()]
    if settings.has_inner_folds:
        fold = balanced_folds(differences, n_folds=settings.n_folds, groups=label, seed=settings.seed)
        check_sizes(fold)
        sets += [frozenset({k}) for k in range(settings.n_folds)]
    moments = dict(zip(sets, set_moments(differences, target, design, fold, sets), strict=True))
    everything, alpha, curve = moments[sets[0]], settings.alpha, np.empty(0)
    judged: list[tuple[np.ndarray, RankTable]] = []
    if settings.has_inner_folds:
        judged = [
            (j.patterns.values, rank_pairs(j.patterns, target, j.items).table)
            for j in judge_each(differences, fold, settings, None)
        ]
    if alpha == "cv":
        inner = [
            (fit_each_alpha(moments[out], design, settings.alphas, intercept=settings.intercept), *own)
            for out, own in zip(sets[1:], judged, strict=True)
        ]
        alpha, curve = choose_alpha(design, inner, settings.alphas)
    fit = fit_moments(everything, design, alpha=float(alpha), intercept=settings.intercept)
    gain = np.nan
    if settings.fit == "spearman":
        everyone = find_patterns(differences, max_pairs=settings.max_pairs, seed=settings.seed)
        check_patterns(everyone)
        within = nested_sets(settings.n_folds, sets)[:, fold]
        ranks = dict(zip(sets, rank_tables(everyone, target, within), strict=True))
        by_ranks = _RankFits(design, settings.intercept, everyone.values, ranks, moments, judged)
        fit, gain = by_ranks.better(fit, sets[0], float(alpha))
    return ItemsFit(everything, fit, float(alpha), curve, gain)


def choose_alpha(
    design: Design,
    inner: Sequence[tuple[Sequence[Coefficients], np.ndarray, RankTable]],
    alphas: Sequence[float],
) -> tuple[float, np.ndarray]:
    """The α with the highest mean ρ over inner folds, and the curve of shape (n_alphas,).

    `inner` has for each inner fold a fit per α, and the values of the patterns to judge with their table.
    """
    scores = np.stack([spearman_of_fits(design, *one) for one in inner])
    defined = np.isfinite(scores).all(axis=1)
    curve = scores[defined].mean(axis=0) if defined.any() else np.full(len(alphas), np.nan)
    return smallest_best(alphas, curve), curve


def spearman_of_fits(
    design: Design, fits: Sequence[Coefficients], values: np.ndarray, table: RankTable
) -> np.ndarray:
    """ρ of each of several fits on the same pairs, of shape (n_fits,)."""
    return spearman_each(design.predict(values, np.stack([fit.weights for fit in fits])), table)


def smallest_best(alphas: Sequence[float], curve: np.ndarray) -> float:
    """The smallest α whose score is within 1e-12 of the best; the smallest of all if no score is defined."""
    if not np.isfinite(curve).any():
        return float(min(alphas))
    best = np.nanmax(curve)
    return float(min(a for a, score in zip(alphas, curve, strict=True) if score >= best - ALPHA_TIE))
