r"""Resampled items: scores and importances again, for many resamples of the same layer.

Sentences are left out part by part (`leave_out`), or dealt into halves (`split_halves`). A resample gives
every item a multiplicity w_i, here 0 or 1. A pair counts w_i · w_j times; copies of one item make no pair.
The penalty, the folds and what steps have learnt stay as they were. Distances are computed and sorted
once: the moments of a resample are quadratic forms wᵀ(M_f ∘ Y)w (`resampled_sums`), its ranks running sums of
weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from thinkalike.encoding.crossval import few_blas_threads, fold_targets
from thinkalike.encoding.importance import drop
from thinkalike.encoding.pairkernels import judge_resamples, weighted_rank_tables
from thinkalike.encoding.plan import EncodingPlan, JudgedPairs
from thinkalike.encoding.resampled_sums import OverItems, OverPairs, Summing, TrainingSums
from thinkalike.encoding.scoring import TIE, distances_among
from thinkalike.encoding.settings import Settings
from thinkalike.encoding.solvers import solve_nonnegative_many
from thinkalike.errors import InvalidInput
from thinkalike.pairs.distances import Target
from thinkalike.pairs.pairset import MAX_PAIRS, Pairs
from thinkalike.pairs.ranks import sort_distances

LANES = 32
PARTS = 10
"""Parts that the sentences are dealt into. Of few, each error rests on few values; of many, the jumps of τ_w
make its error too large."""


@dataclass(frozen=True)
class Resampled:
    """Scores of shape (n_resamples, n_folds), importances of shape (n_resamples, n_folds, n_names).

    NaN where a resample leaves a fold without pairs, or a feature in it with one level.
    """

    scores: np.ndarray
    importance: np.ndarray
    names: tuple[str, ...]
    settings: Settings


@dataclass(frozen=True)
class ResamplingPlan:
    """What of the resamples does not depend on the activations; made by `plan_resamples`.

    Attributes
    ----------
    multiplicities : array of shape (n_resamples, n_kept)
    n_pairs : array of shape (n_folds, n_resamples), the weight of the training pairs
    sums : array of shape (n_folds, n_resamples, n_features);  grams : the same with one more axis of features
    training_sums : what is added up of a layer
    """

    plan: EncodingPlan
    multiplicities: np.ndarray
    n_pairs: np.ndarray
    sums: np.ndarray
    grams: np.ndarray
    training_sums: Summing


def leave_out(clusters: object, *, n_resamples: int = 20, seed: int = 0) -> tuple[np.ndarray, int]:
    """Which items stay when a part of the clusters, such as sentences, is left out; and the number of parts.

    The clusters are dealt into ten parts (fewer if there are fewer, or fewer resamples), of which each is
    left out once; then they are dealt anew, until there are `n_resamples`.

    Parameters
    ----------
    clusters : one label per item
    n_resamples, seed : how many, and of the deals

    Returns
    -------
    int array of shape (n_resamples, n_items) of 0 and 1, and the number of parts

    Examples
    --------
    >>> from thinkalike.encoding import leave_out
    >>> kept, parts = leave_out(["s0", "s0", "s1", "s2"], n_resamples=3)
    >>> kept.sum(axis=1).tolist(), parts
    ([3, 3, 2], 3)
    """
    cluster, n = _numbered(clusters)
    parts = min(PARTS, n_resamples, n)
    rng = np.random.default_rng(seed)
    kept = np.empty((n_resamples, len(cluster)), dtype=np.int64)
    for r in range(n_resamples):
        if r % parts == 0:
            part = rng.permutation(np.arange(n) % parts)[cluster]
        kept[r] = part != r % parts
    return kept, parts


def split_halves(clusters: object, *, n_splits: int = 10, seed: int = 0) -> np.ndarray:
    """The items in either half of the clusters, split at random.

    Parameters
    ----------
    clusters : one label per item
    n_splits, seed : how many, and of the splits

    Returns
    -------
    int array of shape (2 · n_splits, n_items) of 0 and 1, the two halves of a split one after the other

    Examples
    --------
    >>> from thinkalike.encoding import split_halves
    >>> split_halves(["s0", "s0", "s1", "s1"], n_splits=1).sum(axis=1).tolist()
    [2, 2]
    """
    cluster, n = _numbered(clusters)
    rng = np.random.default_rng([seed, 1])
    first = np.stack([rng.permutation(np.arange(n) % 2)[cluster] for _ in range(n_splits)])
    return np.stack([first, 1 - first], axis=1).reshape(2 * n_splits, -1)


def _numbered(clusters: object) -> tuple[np.ndarray, int]:
    _, cluster = np.unique(np.asarray(clusters), return_inverse=True)
    return cluster, int(cluster.max()) + 1


def plan_resamples(plan: EncodingPlan, multiplicities: np.ndarray) -> ResamplingPlan:
    """Prepare resamples once, for every layer.

    Parameters
    ----------
    plan : from `make_plan`, with folds over items and a diagonal W
    multiplicities : int array of shape (n_resamples, n_items)

    Returns
    -------
    ResamplingPlan

    Examples
    --------
    >>> import pandas as pd
    >>> from thinkalike.encoding import leave_out, make_plan, plan_resamples
    >>> plan = make_plan(pd.DataFrame({"number": pd.Categorical(["one", "two"] * 10)}), n_folds=2)
    >>> plan_resamples(plan, leave_out(range(20), n_resamples=3)[0]).n_pairs.shape
    (2, 3)
    """
    w = np.asarray(multiplicities)
    if w.ndim != 2 or w.shape[1] != plan.n_items:
        raise InvalidInput(f"Got multiplicities of shape {w.shape}: give (n_resamples, {plan.n_items}).")
    if w.dtype.kind not in "iu" or w.min() < 0:
        raise InvalidInput(
            "Multiplicities are how often an item is drawn: give whole numbers, none negative."
        )
    if plan.design.name != "diagonal":
        raise InvalidInput("Resampling is for a diagonal W: plan with interactions=False.")
    if any(test.space is None for test in plan.tests):
        raise InvalidInput(
            "Resampling needs few enough patterns of differences: use importance='expected' with nominal or "
            "binned features."
        )
    w = w[:, plan.kept].astype(float)
    if Pairs(len(plan.kept)).n_all > MAX_PAIRS:
        over_items = OverItems.of(plan, w)
        return ResamplingPlan(plan, w, *over_items.feature_moments(), over_items)
    return ResamplingPlan(plan, w, *_feature_moments(plan, w), OverPairs.of(plan, w))


def _feature_moments(plan: EncodingPlan, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs, Σ M_f and Σ M_f M_g over the training pairs of each fold, by quadratic forms in cells of items.

    Items alike in every feature are one cell: a resample is the weights of the cells.
    """
    _, first, cell = np.unique(plan.differences.codes, axis=0, return_index=True, return_inverse=True)
    M = [
        f.squared_differences(first[:, None], first[None, :]).astype(float) for f in plan.differences.features
    ]
    n_folds, n_features = plan.n_folds, plan.design.n_features
    n_pairs = np.zeros((n_folds, len(w)))
    sums = np.zeros((n_folds, len(w), n_features))
    grams = np.zeros((n_folds, len(w), n_features, n_features))
    weights = np.zeros((n_folds, len(w), len(first)))
    for k in range(n_folds):
        training = np.flatnonzero(plan.fold != k)
        own = w[:, training]
        n_pairs[k] = (own.sum(axis=1) ** 2 - (own**2).sum(axis=1)) / 2
        members = csr_array((np.ones(len(training)), (cell[training], np.arange(len(training)))))
        weights[k, :, : members.shape[0]] = (members @ own.T).T
    flat = weights.reshape(-1, len(first))

    def pairs_of(H: np.ndarray) -> np.ndarray:
        return (((flat @ H) * flat).sum(axis=1) / 2).reshape(n_folds, -1)

    for f in range(n_features):
        sums[:, :, f] = pairs_of(M[f])
        for g in range(f + 1):
            grams[:, :, f, g] = grams[:, :, g, f] = pairs_of(M[f] * M[g])
    return n_pairs, sums, grams


def resample(resamples: ResamplingPlan, X: np.ndarray, alphas: Sequence[float] | np.ndarray) -> Resampled:
    """Fit and judge one layer in every resample.

    Parameters
    ----------
    resamples : from `plan_resamples`
    X : array of shape (n_items, n_units)
    alphas : the penalty of each fold, as `cross_validate` chose it

    Returns
    -------
    Resampled
        `scores` (n_resamples, n_folds) and `importance` (n_resamples, n_folds, n_names).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from thinkalike.encoding import leave_out, make_plan, plan_resamples, resample
    >>> plan = make_plan(pd.DataFrame({"number": pd.Categorical(["one", "two"] * 20)}), n_folds=2)
    >>> resamples = plan_resamples(plan, leave_out(range(40), n_resamples=3)[0])
    >>> X = np.random.default_rng(0).normal(size=(40, 2)) + 5 * np.tile([[0], [1]], (20, 1))
    >>> resample(resamples, X, [1.0, 1.0]).scores.shape
    (3, 2)
    """
    plan = resamples.plan
    if len(alphas) != plan.n_folds:
        raise InvalidInput(f"Got {len(alphas)} alphas for {plan.n_folds} folds: give one per fold.")
    targets = fold_targets(plan, X)
    with few_blas_threads(plan.n_items):
        return _resample(resamples, targets, alphas)


def _resample(
    resamples: ResamplingPlan, targets: Sequence[Target], alphas: Sequence[float] | np.ndarray
) -> Resampled:
    plan, w = resamples.plan, resamples.multiplicities
    sums: dict[int, TrainingSums] = {}  # of each target: all folds have one, or each its own
    scores = np.full((len(w), plan.n_folds), np.nan)
    importances = np.full((len(w), plan.n_folds, len(plan.names)), np.nan)
    for k, (test, target) in enumerate(zip(plan.tests, targets, strict=True)):
        if id(target) not in sums:
            sums[id(target)] = resamples.training_sums(target)
        cross, totals = sums[id(target)]
        weights = _fit(resamples, k, cross[k], totals[k], float(alphas[k]))
        trained = resamples.sums[k] > 0
        scores[:, k], importances[:, k] = _judge(plan, test, target, w[:, test.items], weights, trained)
        scores[resamples.n_pairs[k] == 0, k] = np.nan
    return Resampled(scores, importances, plan.names, plan.settings)


def _fit(
    resamples: ResamplingPlan, k: int, cross: np.ndarray, totals: np.ndarray, alpha: float
) -> np.ndarray:
    """Weights of shape (n_resamples, n_features) on the pairs outside fold k; 0 where there are none."""
    n_pairs, grams = resamples.n_pairs[k], resamples.grams[k]
    if resamples.plan.settings.intercept:
        means = resamples.sums[k] / np.maximum(n_pairs, 1.0)[:, None]
        grams = grams - n_pairs[:, None, None] * means[:, :, None] * means[:, None, :]
        cross = cross - means * totals[:, None]
    return solve_nonnegative_many(grams, cross, alpha)


def _judge(
    plan: EncodingPlan,
    test: JudgedPairs,
    target: Target,
    w: np.ndarray,
    weights: np.ndarray,
    trained: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """ρ of shape (n_resamples,) and importances of shape (n_resamples, n_names) on one fold."""
    patterns, space = test.patterns, test.space
    assert space is not None  # plan_resamples has seen to it
    counts, ranks, spread = _rank_tables(test, target, w)
    scores = np.full(len(w), np.nan)
    permuted = np.full((len(w), len(plan.feature_sets)), np.nan)
    exchanges = space.exchanges
    judge_resamples(
        space.values,
        space.own,
        np.stack([e.rest for e in exchanges]),
        np.stack([e.part for e in exchanges]),
        np.concatenate([e.combined.ravel() for e in exchanges]),
        np.array([e.combined.shape for e in exchanges]),
        weights,
        counts,
        ranks,
        spread,
        TIE,
        scores,
        permuted,
    )
    varies = (counts @ patterns.values > 0) & trained
    known = np.stack(
        [varies[:, feature_set.features].any(axis=1) for feature_set in plan.feature_sets], axis=1
    )
    return scores, np.where(known, drop(scores[:, None], permuted), np.nan)


def _rank_tables(
    test: JudgedPairs, target: Target, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts and rank sums of each pattern, (n_resamples, n_patterns), and the spread of the ranks."""
    patterns = test.patterns
    y, rounding = distances_among(patterns, target, test.items)
    order, stops = sort_distances(y, patterns.i, patterns.j, rounding)
    pairs = patterns.i[order], patterns.j[order], patterns.ids[order], stops
    counts, ranks = np.zeros((2, len(w), len(patterns.counts)))
    spread = np.zeros(len(w))
    for first in range(0, len(w), LANES):
        some = slice(first, first + LANES)
        c, r = np.zeros((2, len(patterns.counts), len(w[some])))
        weighted_rank_tables(*pairs, np.ascontiguousarray(w[some].T), c, r, spread[some])
        counts[some], ranks[some] = c.T, r.T
    return counts, ranks, spread
