"""How much each feature, or group of features, matters to a fitted model: the ways to ask."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from thinkalike.encoding.designs import Design
from thinkalike.encoding.moments import Coefficients, Moments, fit_moments
from thinkalike.encoding.pairkernels import (
    exchanged_correlation,
    table_correlation,
    tally_permuted_items,
    tally_shuffled_pairs,
)
from thinkalike.encoding.scoring import PairPatterns, RankedPairs, RankTable, spearman, tie_groups
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.registry import Registry

PERMUTING = ("expected", "permutation", "stimuli")
REFITTING = ("drop", "shapley")
"""Those that fit again without some features"""
MAX_COMBINATIONS = 1 << 21
MAX_EXACT_SHAPLEY = 12
SHAPLEY_ORDERS = 200
ROUNDING = 1e-12  # two ρ that differ by less are the same: τ_w would make a rank of it


@dataclass(frozen=True)
class FeatureSet:
    """One feature, or several that are asked about as one; `features` are indices, sorted."""

    name: str
    features: np.ndarray


def make_feature_sets(
    names: Sequence[str], groups: Mapping[str, Sequence[str]] | None = None
) -> tuple[FeatureSet, ...]:
    """The declared groups, then each feature that is in none of them."""
    feature_sets, taken = [], set[str]()
    for group, members in (groups or {}).items():
        if isinstance(members, str) or not members:
            raise InvalidInput(f"The group {group!r} must be a list of features, got {members!r}.")
        for member in members:
            if member not in names:
                raise UnknownName.among("feature", member, names)
            if member in taken:
                raise InvalidInput(f"The feature {member!r} is in two groups: put it in one.")
            taken.add(member)
        feature_sets.append(FeatureSet(group, np.sort([names.index(m) for m in members])))
    feature_sets += [FeatureSet(name, np.array([f])) for f, name in enumerate(names) if name not in taken]
    seen = [p.name for p in feature_sets]
    if len(set(seen)) < len(seen):
        clash = next(name for name in seen if seen.count(name) > 1)
        raise InvalidInput(f"The group {clash!r} has the name of a feature outside it: rename the group.")
    return tuple(feature_sets)


@dataclass(frozen=True)
class Exchange:
    """What patterns become when a set's part of them is exchanged.

    Attributes
    ----------
    rest, part : int arrays of shape (n_patterns,)
        Which of the distinct remainders and of the distinct parts each pattern has.
    combined : int array of shape (n_rests, n_parts)
        Where each combination stands in the space.
    """

    rest: np.ndarray
    part: np.ndarray
    combined: np.ndarray


@dataclass(frozen=True)
class PatternSpace:
    """All patterns that exchanging one set of features at a time can make.

    Attributes
    ----------
    values : array of shape (n_combinations, n_features), squared differences
    own : int array of shape (n_patterns,), where the patterns themselves stand
    """

    values: np.ndarray
    own: np.ndarray
    exchanges: tuple[Exchange, ...]


def pattern_space(patterns: PairPatterns, feature_sets: Sequence[FeatureSet]) -> PatternSpace | None:
    """The space of exchanged patterns; None if they cannot be numbered or their combinations are too many."""
    if patterns.keys is None:
        return None
    splits, total = [], 0
    for feature_set in feature_sets:
        parts = patterns.coder.part(patterns.keys, feature_set.features)
        part_keys, part = np.unique(parts, return_inverse=True)
        rest_keys, rest = np.unique(patterns.keys - parts, return_inverse=True)
        total += len(part_keys) * len(rest_keys)
        if total > MAX_COMBINATIONS:
            return None
        splits.append((rest_keys[:, None] + part_keys[None, :], rest, part))
    everything, index = np.unique(
        np.concatenate([keys.ravel() for keys, _, _ in splits]), return_inverse=True
    )
    exchanges, first = [], 0
    for keys, rest, part in splits:
        exchanges.append(Exchange(rest, part, index[first : first + keys.size].reshape(keys.shape)))
        first += keys.size
    own = np.searchsorted(everything, patterns.keys)
    return PatternSpace(patterns.coder.values(everything), own, tuple(exchanges))


@dataclass(frozen=True)
class Evaluation:
    """One fitted model and the pairs that it is judged on."""

    design: Design
    moments: Moments
    alpha: float
    intercept: bool
    coefficients: Coefficients
    patterns: PairPatterns
    ranked: RankedPairs
    feature_sets: tuple[FeatureSet, ...]
    space: PatternSpace | None

    @cached_property
    def score(self) -> float:
        """Spearman's ρ of the model."""
        return spearman(self.predict(self.patterns.values), self.ranked.table)

    def predict(self, values: np.ndarray) -> np.ndarray:
        return self.design.predict(values, self.coefficients.weights)

    def score_without(self, features: Iterable[int]) -> float:
        """ρ of a model that is fitted again without some of the features; 0 if none is left."""
        out = set(features)
        kept = np.array([f for f in range(self.design.n_features) if f not in out], dtype=int)
        if not len(kept):
            return 0.0 if self.ranked.table.spread > 0 else np.nan
        columns = self.design.columns_of(kept)
        fewer = Design(self.design.name, len(kept))
        fit = fit_moments(self.moments.restrict(columns), fewer, alpha=self.alpha, intercept=self.intercept)
        predictions = fewer.predict(self.patterns.values[:, kept], fit.weights)
        return spearman(predictions, self.ranked.table)

    @cached_property
    def undefined(self) -> np.ndarray:
        """For each set, whether all its features have one level among the judged or the fitted pairs."""
        fitted = np.array([self.moments.sums[self.design.columns_of(np.array([f]))].max() > 0
                           for f in range(self.design.n_features)])  # fmt: skip
        varies = self.patterns.varies & fitted
        return np.array([not varies[p.features].any() for p in self.feature_sets])


def drop(score: float | np.ndarray, without: np.ndarray | float) -> np.ndarray:
    """By how much ρ is lower without; exactly 0 where only rounding tells the two apart."""
    fallen = score - without
    return np.where(np.abs(fallen) < ROUNDING, 0.0, fallen)


def expected_importance(evaluation: Evaluation, *, n_permutations: int, seed: int) -> np.ndarray:
    """ρ less its expectation when a set's differences are permuted over pairs; of shape (n_sets,).

    Permuting makes them independent of the rest with the same distribution: every pattern splits over it.
    Equal to the mean over random permutations up to O(1/n_pairs). Where patterns are too many, seeded
    permutations are used.
    """
    space, table = evaluation.space, evaluation.ranked.table
    if space is None:
        return permutation_importance(evaluation, n_permutations=n_permutations, seed=seed)
    group, n_groups = tie_groups(evaluation.predict(space.values))
    permuted = np.array(
        [
            exchanged_correlation(
                e.rest, e.part, group[e.combined], n_groups, table.counts, table.ranks, table.spread
            )
            for e in space.exchanges
        ]
    )
    return drop(evaluation.score, permuted)


def permutation_importance(evaluation: Evaluation, *, n_permutations: int, seed: int) -> np.ndarray:
    """ρ less its mean over seeded permutations of a set's differences over pairs (Salle et al. 2024)."""
    return _permuted(evaluation, n_permutations, seed, over="pairs")


def stimuli_importance(evaluation: Evaluation, *, n_permutations: int, seed: int) -> np.ndarray:
    """ρ less its mean over seeded permutations of a set's values over items, differences computed anew."""
    if evaluation.patterns.is_sample:
        raise InvalidInput(
            "Importance by permuted stimuli needs all pairs, but these are a sample: use method='expected'."
        )
    return _permuted(evaluation, n_permutations, seed, over="items")


def conditional_importance(evaluation: Evaluation, *, n_permutations: int, seed: int) -> np.ndarray:
    """ρ less its expectation when a set's differences are permuted among pairs alike in all the others.

    So it asks what a set adds to the rest, and no pair gets a combination of differences that no pair has.
    Pairs of one remainder keep their predictions and share their observed ranks: the rank sum of a pattern
    becomes its number of pairs times the mean rank of its remainder. Strobl et al. 2008 for forests.
    """
    patterns, table = evaluation.patterns, evaluation.ranked.table
    if patterns.keys is None:
        raise InvalidInput(
            "Conditional importance compares pairs that are alike in all other features, and these features "
            "differ by too many amounts for that: bin numeric features, or use ordered='indicator'."
        )
    group, n_groups = tie_groups(evaluation.predict(patterns.values))
    scores = []
    for feature_set in evaluation.feature_sets:
        remainder = patterns.keys - patterns.coder.part(patterns.keys, feature_set.features)
        _, rest = np.unique(remainder, return_inverse=True)
        mean = np.bincount(rest, weights=table.ranks) / np.bincount(rest, weights=table.counts)
        shared = table.counts * mean[rest]
        scores.append(table_correlation(group, n_groups, table.counts, shared, table.spread))
    return drop(evaluation.score, np.array(scores))


def drop_importance(evaluation: Evaluation, *, n_permutations: int, seed: int) -> np.ndarray:
    """ρ less that of a model fitted without the set."""
    without = [evaluation.score_without(p.features) for p in evaluation.feature_sets]
    return drop(evaluation.score, np.array(without))


def shapley_importance(evaluation: Evaluation, *, n_permutations: int, seed: int) -> np.ndarray:
    """Shapley values of ρ, every coalition of sets fitted anew; ρ of none is 0, and the values sum to ρ.

    Exact for up to 12 sets; above, the mean over seeded orders of them.
    """
    feature_sets = evaluation.feature_sets
    everyone = frozenset(range(len(feature_sets)))
    known: dict[frozenset[int], float] = {}

    def value(coalition: frozenset[int]) -> float:
        if coalition not in known:
            out = itertools.chain.from_iterable(feature_sets[p].features for p in everyone - coalition)
            known[coalition] = evaluation.score_without(out)
        return known[coalition]

    n = len(feature_sets)
    shares = np.zeros(n)
    if n <= MAX_EXACT_SHAPLEY:
        for p in range(n):
            others = sorted(everyone - {p})
            for size in range(n):
                for chosen in itertools.combinations(others, size):
                    without = frozenset(chosen)
                    shares[p] += (value(without | {p}) - value(without)) / (n * comb(n - 1, size))
        return shares
    rng = np.random.default_rng(seed)
    for _ in range(SHAPLEY_ORDERS // 2):
        order = rng.permutation(n)
        for one in (order, order[::-1]):  # an order and its reverse vary less together
            joined: frozenset[int] = frozenset()
            for p in one:
                shares[p] += value(joined | {int(p)}) - value(joined)
                joined |= {int(p)}
    return shares / (2 * (SHAPLEY_ORDERS // 2))


def _given(name: str, given: object) -> Importance:
    if not callable(given):
        raise InvalidInput(
            f"The importance {name!r} is {given!r}: give a function (Evaluation, *, n_permutations, seed) → "
            "array of shape (n_sets,)."
        )
    return given


Importance = Callable[..., np.ndarray]

IMPORTANCES: Registry[Importance] = Registry(
    "importance",
    "thinkalike.importances",
    {
        "expected": expected_importance,
        "permutation": permutation_importance,
        "stimuli": stimuli_importance,
        "conditional": conditional_importance,
        "drop": drop_importance,
        "shapley": shapley_importance,
    },
    accept=_given,
)
"""Name → function (Evaluation, *, n_permutations, seed) → importances (n_sets,)"""


def importance(
    evaluation: Evaluation, *, method: str = "expected", n_permutations: int = 20, seed: int = 0
) -> np.ndarray:
    """The importance of each set of features, of shape (n_sets,); NaN where its features have one level."""
    values = IMPORTANCES[method](evaluation, n_permutations=n_permutations, seed=seed)
    return np.where(evaluation.undefined, np.nan, values)


def interaction_sets(n_features: int) -> tuple[FeatureSet, ...]:
    """Each feature, then each pair of features in the order of the upper triangle."""
    singles = [FeatureSet(str(f), np.array([f])) for f in range(n_features)]
    pairs = [
        FeatureSet(f"{f},{g}", np.array([f, g])) for f, g in itertools.combinations(range(n_features), 2)
    ]
    return (*singles, *pairs)


def interactions_from(values: np.ndarray, n_features: int) -> np.ndarray:
    """importance(f and g) − importance(f) − importance(g), from the values of `interaction_sets`.

    Of shape (n_features, n_features), symmetric, with the features' own importance on the diagonal.
    """
    out = np.diag(values[:n_features])
    f, g = np.triu_indices(n_features, 1)
    out[f, g] = out[g, f] = values[n_features:] - values[f] - values[g]
    return out


def _permuted(evaluation: Evaluation, n_permutations: int, seed: int, *, over: str) -> np.ndarray:
    rng = np.random.default_rng(seed)
    permuted_score = _by_pairs if evaluation.space is None else _by_patterns
    means = np.empty(len(evaluation.feature_sets))
    for k in range(len(means)):
        score = permuted_score(evaluation, k, over)
        means[k] = np.mean([score(int(s)) for s in rng.integers(1, 2**62, n_permutations)])
    return drop(evaluation.score, means)


def _by_patterns(evaluation: Evaluation, k: int, over: str) -> Callable[[int], float]:
    """A function of the seed: ρ when set k is permuted over pairs or items."""
    patterns, space, ranked = evaluation.patterns, evaluation.space, evaluation.ranked
    assert space is not None
    e = space.exchanges[k]
    small = (
        np.uint16 if e.combined.shape[1] < 1 << 16 else np.int64
    )  # stays in the cache while it is shuffled
    rest, part = e.rest[patterns.ids], e.part[patterns.ids].astype(small)
    predictions = evaluation.predict(space.values)[e.combined].ravel()

    def score(seed: int) -> float:
        counts, ranks = np.zeros((2, *e.combined.shape))
        if over == "pairs":
            tally_shuffled_pairs(rest, part.copy(), ranked.of_pairs, seed, counts, ranks)
        else:
            order = np.random.default_rng(seed).permutation(patterns.n_items)
            tally_permuted_items(patterns.i, patterns.j, order, rest, part, ranked.of_pairs, counts, ranks)
        return spearman(predictions, RankTable(counts.ravel(), ranks.ravel(), ranked.table.spread))

    return score


def _by_pairs(evaluation: Evaluation, k: int, over: str) -> Callable[[int], float]:
    """The same where every pair is its own pattern: predictions pair by pair."""
    patterns, ranked = evaluation.patterns, evaluation.ranked
    features = evaluation.feature_sets[k].features
    every_pair = RankTable(np.ones(patterns.n_pairs), ranked.of_pairs, ranked.table.spread)

    def score(seed: int) -> float:
        rng = np.random.default_rng(seed)
        if over == "pairs":
            source = rng.permutation(patterns.n_pairs)
        else:
            order, n = rng.permutation(patterns.n_items), patterns.n_items
            a, b = order[patterns.i], order[patterns.j]
            low, high = np.minimum(a, b), np.maximum(a, b)
            source = low * n - low * (low + 1) // 2 + high - low - 1
        values = patterns.values[patterns.ids]
        values[:, features] = patterns.values[patterns.ids[source]][:, features]
        return spearman(evaluation.predict(values), every_pair)

    return score
