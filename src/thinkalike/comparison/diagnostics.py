"""What qualifies a layer's numbers: how reliable its distances are, and whether few items speak for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from thinkalike.comparison.profiles import LayerDiagnostics
from thinkalike.errors import InvalidInput
from thinkalike.measures.inputs import Layer
from thinkalike.pairs.distances import DistanceLike, make_target
from thinkalike.pairs.pairset import Pairs
from thinkalike.pairs.ranks import standardised_ranks

_CEILING_ITEMS = 300  # items that the split halves are compared on: 44,850 pairs


@dataclass(frozen=True)
class Diagnosis:
    """Of one layer; see `LayerDiagnostics`."""

    ceiling: float
    duplicated: float
    top_share: float


def diagnose(X: Layer, *, distance: DistanceLike, seed: int = 0) -> Diagnosis:
    """Ceiling, duplicates and concentration of one layer (n_items, n_units)."""
    return Diagnosis(split_half_ceiling(X, distance=distance, seed=seed), duplicated_share(X), top_share(X))


def collect_diagnostics(layers: Sequence[Diagnosis]) -> LayerDiagnostics:
    """The layers together."""
    return LayerDiagnostics(*(np.array([getattr(one, f.name) for one in layers]) for f in fields(Diagnosis)))


def split_half_ceiling(
    X: Layer, *, distance: DistanceLike = "euclidean", n_splits: int = 2, seed: int = 0
) -> float:
    """The ρ at which these distances would correlate with those of many more units like these.

    The distances in two random halves of the units correlate at r; by Spearman–Brown all units together have
    the reliability 2r / (1 + r), and the truth behind them correlates with them at its square root. Encoding
    models are fitted to these very units, so with few units they may come out a little above it. In [0, 1];
    NaN for fewer than two units, or where the distance is not defined in a half.
    """
    n_items, n_units = X.shape
    if n_units < 2 or n_items < 4:
        return float("nan")
    rng = np.random.default_rng(seed)
    items = np.sort(rng.permutation(n_items)[:_CEILING_ITEMS])
    pairs = Pairs.of(len(items))
    correlations = []
    for _ in range(n_splits):
        halves = np.array_split(rng.permutation(n_units), 2)
        try:
            targets = [make_target(X[np.ix_(items, half)], distance) for half in halves]
        except InvalidInput:
            return float("nan")
        first, second = (standardised_ranks(pairs, target) for target in targets)
        correlations.append(float(first @ second) / len(pairs))
    r = float(np.mean(correlations))
    return float(np.sqrt(max(2 * r / (1 + r), 0.0))) if r > -1 else 0.0


def duplicated_share(X: Layer) -> float:
    """The share of items whose vector is, bit for bit, another item's as well."""
    rows = np.ascontiguousarray(X + X.dtype.type(0))  # one zero: −0 and 0 are the same
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, index, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return float((counts[index] > 1).mean())


def top_share(X: Layer, *, top: float = 0.01) -> float:
    """The share of the variance (squared distances to the mean) that the farthest 1 % of items carry."""
    centred = X - X.mean(axis=0, dtype=np.float64)
    squared = np.sort(np.einsum("ij,ij->i", centred, centred))[::-1]
    total = squared.sum()
    return float(squared[: max(1, round(top * len(X)))].sum() / total) if total > 0 else float("nan")
