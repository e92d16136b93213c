"""Fitting one layer fold by fold: the choice of α, the fit, and what it is judged on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from thinkalike.encoding.designs import Design
from thinkalike.encoding.folds import balanced_folds
from thinkalike.encoding.importance import Evaluation
from thinkalike.encoding.moments import Coefficients, Moments, fit_each_alpha, fit_moments
from thinkalike.encoding.patterns import PairPatterns
from thinkalike.encoding.plan import EncodingPlan, check_sizes, judge_each, set_moments
from thinkalike.encoding.rank_fit import refine
from thinkalike.encoding.scoring import RankedPairs, RankTable, rank_pairs, spearman
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

    by_ranks = None if plan.everyone is None else _RankFits(plan, plan.everyone, target, moments, validated)

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


class _RankFits:
    """Fits by ranks for the folds of a plan, and whether inner folds speak for them."""

    def __init__(
        self,
        plan: EncodingPlan,
        everyone: PairPatterns,
        target: Target,
        moments: Mapping[frozenset[int], Moments],
        validated: Sequence[RankedPairs],
    ) -> None:
        self.plan, self.everyone, self.moments, self.validated = plan, everyone, moments, validated
        self.ranks = plan.ranks(target)
        self.known: dict[tuple[frozenset[int], float], tuple[Coefficients, Coefficients]] = {}

    def both(self, left_out: frozenset[int], alpha: float) -> tuple[Coefficients, Coefficients]:
        """By least squares, and by ranks from there."""
        if (left_out, alpha) not in self.known:
            own, design = self.moments[left_out], self.plan.design
            start = fit_moments(own, design, alpha=alpha, intercept=self.plan.settings.intercept)
            refined = refine(design, start, self.everyone.values, self.ranks[left_out], own)
            self.known[left_out, alpha] = start, refined
        return self.known[left_out, alpha]

    def better(self, start: Coefficients, out: frozenset[int], alpha: float) -> tuple[Coefficients, float]:
        """The fit by ranks if it raises the mean ρ of the inner folds, else `start`; and by how much."""
        gains = []
        for b, judged in enumerate(self.plan.validations):
            if b not in out:
                before, after = (
                    spearman(
                        self.plan.design.predict(judged.patterns.values, fit.weights),
                        self.validated[b].table,
                    )
                    for fit in self.both(out | {b}, alpha)
                )
                gains.append(after - before)
        known = np.array([gain for gain in gains if np.isfinite(gain)])
        gain = float(known.mean()) if len(known) else 0.0
        return (self.both(out, alpha)[1] if gain > 0 else start), gain


def fit_items(
    differences: FeatureDifferences,
    target: Target,
    design: Design,
    settings: Settings,
    label: np.ndarray | None = None,
) -> tuple[Moments, Coefficients, float, np.ndarray]:
    """Fit all items: their moments, the coefficients, α, and the curve that α was chosen on.

    `label` says which items share an inner fold.
    """
    fold, sets = np.zeros(len(differences), dtype=np.int64), [frozenset[int]()]
    if settings.alpha == "cv":
        fold = balanced_folds(differences, n_folds=settings.n_folds, groups=label, seed=settings.seed)
        check_sizes(fold)
        sets += [frozenset({k}) for k in range(settings.n_folds)]
    everything, *training = set_moments(differences, target, design, fold, sets)
    alpha, curve = settings.alpha, np.empty(0)
    if alpha == "cv":
        judged = judge_each(differences, fold, settings, None)
        inner = [
            (
                fit_each_alpha(moments, design, settings.alphas, intercept=settings.intercept),
                j.patterns.values,
                rank_pairs(j.patterns, target, j.items).table,
            )
            for moments, j in zip(training, judged, strict=True)
        ]
        alpha, curve = choose_alpha(design, inner, settings.alphas)
    fit = fit_moments(everything, design, alpha=float(alpha), intercept=settings.intercept)
    return everything, fit, float(alpha), curve


def choose_alpha(
    design: Design,
    inner: Sequence[tuple[Sequence[Coefficients], np.ndarray, RankTable]],
    alphas: Sequence[float],
) -> tuple[float, np.ndarray]:
    """The α with the highest mean ρ over inner folds, and the curve of shape (n_alphas,).

    `inner` has for each inner fold a fit per α, and the values of the patterns to judge with their table.
    """
    scores = np.array(
        [
            [spearman(design.predict(values, fit.weights), table) for fit in fits]
            for fits, values, table in inner
        ]
    )
    defined = np.isfinite(scores).all(axis=1)
    curve = scores[defined].mean(axis=0) if defined.any() else np.full(len(alphas), np.nan)
    return smallest_best(alphas, curve), curve


def smallest_best(alphas: Sequence[float], curve: np.ndarray) -> float:
    """The smallest α whose score is within 1e-12 of the best; the smallest of all if no score is defined."""
    if not np.isfinite(curve).any():
        return float(min(alphas))
    best = np.nanmax(curve)
    return float(min(a for a, score in zip(alphas, curve, strict=True) if score >= best - ALPHA_TIE))
