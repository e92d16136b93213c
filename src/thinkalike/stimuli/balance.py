"""Choosing sentences so that the differences in one feature say little about those in another."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pandas as pd

from thinkalike.progress import progress
from thinkalike.stimuli.differences import FeatureDifferences
from thinkalike.stimuli.feature_coding import code_features

UNEVENNESS_COST = 5.0
"""What it costs when a feature loses all evenness of its levels, in units of a squared correlation."""
MOST_EXCHANGES = 300
"""After so many the choice is good enough."""


def choose_balanced(
    features: pd.DataFrame, sentences: pd.Series, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Choose `n` of the sentences so that Σ_{f<g} r_fg², over feature differences, is small.

    Starts from a random choice and exchanges the sentences that raise the sum most against those that would
    lower it most, many at a time and then fewer, as long as it falls. A level that is hardly there correlates
    with nothing, so evenness has its price: with G the chance that two items that have a value differ in it,
    and G₀ that of the random choice, (1 − G/G₀)² is added where G < G₀. So the sum of r² ends no higher than
    it started.

    Parameters
    ----------
    features : (n_items, n_features)
    sentences : (n_items,) the sentence of each item.

    Returns
    -------
    The chosen ones, as positions among the distinct values of `sentences` in order of appearance, shape (n,).
    """
    owner, names = pd.factorize(sentences)
    n_sentences = len(names)
    pool = _Pool(code_features(features), owner, n_sentences)
    chosen = np.zeros(n_sentences, dtype=bool)
    chosen[rng.permutation(n_sentences)[:n]] = True
    score, slope = pool.evaluate(chosen)
    step = min(n, n_sentences - n) // 4
    with progress("Balancing", MOST_EXCHANGES) as bar:
        for _ in range(MOST_EXCHANGES):
            if step < 1:
                break
            trial = chosen.copy()
            trial[_extreme(slope, chosen, step, rng)] = False
            trial[_extreme(-slope, ~chosen, step, rng)] = True
            trial_score, trial_slope = pool.evaluate(trial)
            if trial_score < score:
                chosen, score, slope = trial, trial_score, trial_slope
                step = min(2 * step, n, n_sentences - n)
            else:
                step //= 2
            bar.advance()
    return np.flatnonzero(chosen)


def _extreme(values: np.ndarray, among: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """`count` of the positions with the highest values among those allowed: a random half of twice as many.

    The highest are often all alike; exchanging only them would overshoot.
    """
    positions = np.flatnonzero(among)
    if 2 * count < len(positions):
        positions = positions[np.argpartition(-values[positions], 2 * count)[: 2 * count]]
    return rng.permutation(positions)[:count]


class _Pool:
    """Sentences to choose from; evaluates a choice and how each sentence would change it.

    With N the contingency table of f and g over the chosen items and M the squared differences of levels, the
    sum over pairs ½ Σ (M_f N M_g) ∘ N grows by (M_f N M_g)[u, v] when an item with levels u and v joins.
    """

    def __init__(self, coded: FeatureDifferences, owner: np.ndarray, n_sentences: int) -> None:
        # Items alike in every feature are one kind of item: far fewer than items.
        kinds, self.kind = np.unique(coded.codes, axis=0, return_inverse=True)
        self.codes, self.owner, self.n_sentences = kinds.T, owner, n_sentences
        self.tables = [feature.table() for feature in coded.features]
        self.present = [feature.present for feature in coded.features]
        self.first_evenness: np.ndarray | None = None

    def evaluate(self, chosen: np.ndarray) -> tuple[float, np.ndarray]:
        """The score of a choice, and its slope for each sentence, of shape (n_sentences,)."""
        counts = np.bincount(self.kind[chosen[self.owner]], minlength=self.codes.shape[1])
        score, slope = self._unevenness(counts)
        r2, r2_slope = self._squared_correlations(counts)
        total = (slope + r2_slope)[self.kind]
        return score + r2, np.bincount(self.owner, weights=total, minlength=self.n_sentences)

    def _unevenness(self, counts: np.ndarray) -> tuple[float, np.ndarray]:
        evenness, slopes = _columns(
            _evenness(np.bincount(codes, counts, len(present)) * present, present, codes)
            for codes, present in zip(self.codes, self.present, strict=True)
        )
        if self.first_evenness is None:
            self.first_evenness = np.maximum(evenness, 1e-12)
        lost = np.clip(1 - evenness / self.first_evenness, 0, None)
        cost = UNEVENNESS_COST * float((lost**2).sum())
        return cost, -2 * UNEVENNESS_COST * (lost / self.first_evenness) @ slopes

    def _squared_correlations(self, counts: np.ndarray) -> tuple[float, np.ndarray]:
        F = range(len(self.tables))
        means, d_means = _columns(self._mean(f, 1, counts) for f in F)
        squares, d_squares = _columns(self._mean(f, 2, counts) for f in F)
        variances = squares - means**2
        d_variances = d_squares - 2 * means[:, None] * d_means
        score, slope = 0.0, np.zeros(len(counts))
        for f, g in combinations([f for f in F if variances[f] > 1e-12], 2):
            product, d_product = self._mean_product(f, g, counts)
            scale = np.sqrt(variances[f] * variances[g])
            r = (product - means[f] * means[g]) / scale
            d_covariance = d_product - means[f] * d_means[g] - means[g] * d_means[f]
            d_scale = r / 2 * (d_variances[f] / variances[f] + d_variances[g] / variances[g])
            score += r**2
            slope += 2 * r * (d_covariance / scale - d_scale)
        return score, slope

    def _mean(self, f: int, power: int, counts: np.ndarray) -> tuple[float, np.ndarray]:
        levels = np.bincount(self.codes[f], counts, len(self.tables[f]))
        return _per_pair(self.tables[f] ** power @ levels, self.codes[f], counts)

    def _mean_product(self, f: int, g: int, counts: np.ndarray) -> tuple[float, np.ndarray]:
        M_f, M_g = self.tables[f], self.tables[g]
        cells = self.codes[f] * len(M_g) + self.codes[g]
        N = np.bincount(cells, counts, len(M_f) * len(M_g)).reshape(len(M_f), len(M_g))
        return _per_pair((M_f @ N @ M_g).ravel(), cells, counts)


def _per_pair(gain: np.ndarray, cells: np.ndarray, counts: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean over pairs, and how one more item of each kind changes it, when one in a cell adds `gain`."""
    n = counts.sum()
    n_pairs = n * (n - 1) / 2
    mean = float(gain[cells] @ counts / 2 / n_pairs)
    # The item also adds n pairs to divide by.
    return mean, gain[cells] / n_pairs - 2 / n * mean


def _evenness(levels: np.ndarray, present: np.ndarray, codes: np.ndarray) -> tuple[float, np.ndarray]:
    """G = 1 − Σ p² over the levels that are not missing, and how one more item of each kind changes it."""
    n = max(levels.sum(), 1.0)
    same = (levels**2).sum() / n**2
    return 1 - same, (2 / n * (same - levels / n) * present)[codes]


def _columns(pairs: Iterable[tuple[float, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    values, slopes = zip(*pairs, strict=True)
    return np.array(values), np.stack(slopes)
