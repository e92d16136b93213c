"""What qualifies a layer's numbers: how reliable its distances are, and whether few items speak for all.

And of all layers: how many stimuli for how much certainty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from thinkalike.comparison.profiles import LayerDiagnostics, Profile
from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats
from thinkalike.measures.inputs import Vectors
from thinkalike.pairs.distances import DistanceLike, make_target
from thinkalike.pairs.pairset import Pairs
from thinkalike.pairs.ranks import standardised_ranks
from thinkalike.stimuli.table import Stimuli

Ints = npt.NDArray[np.int64]

POSITIONS = 10
"""Positions in a sentence that are told apart; the last stands for all that follow"""

BLOCK_ROWS = 256
"""Rows that are looked at together: a layer of many items has no room for a second one in float64"""
_CEILING_ITEMS = 300  # items that the split halves are compared on: 44,850 pairs


@dataclass(frozen=True)
class Diagnosis:
    """Of one layer; see `LayerDiagnostics`."""

    ceiling: float
    duplicated: float
    top_share: float
    anisotropy: float
    first_norm: float | None = None
    by_position: Floats | None = None
    positions: Floats | None = None


def diagnose(
    X: Vectors, *, distance: DistanceLike, positions: Ints | None = None, seed: int = 0
) -> Diagnosis:
    """Ceiling, duplicates and concentration of one layer (n_items, n_units).

    Parameters
    ----------
    positions : (n_items,) places of the words in their sentences, from 0; None where there are none.
    """
    lengths = Lengths.of(X)
    found = Diagnosis(
        split_half_ceiling(X, distance=distance, seed=seed),
        duplicated_share(X),
        top_share(lengths),
        anisotropy(lengths),
    )
    if positions is None or not several_positions(positions):
        return found
    return replace(
        found,
        first_norm=norm_ratio(lengths, positions == 0),
        by_position=share_by_position(lengths, positions),
        positions=np.bincount(positions, minlength=POSITIONS) / len(positions),
    )


def collect_diagnostics(layers: Sequence[Diagnosis]) -> LayerDiagnostics:
    """The layers together."""
    found = {f.name: [getattr(one, f.name) for one in layers] for f in fields(Diagnosis)}
    return LayerDiagnostics(**{name: np.array(v) for name, v in found.items() if v[0] is not None})


def word_positions(stimuli: Stimuli) -> Ints | None:
    """(n_items,) how many words stand before each in its sentence, 9 at most; None for no words."""
    items = stimuli.items
    if "sentence" not in items:
        return None
    texts = items["sentence"].map(stimuli.sentences)
    before = [len(text[:start].split()) for text, start in zip(texts, items["start"], strict=True)]
    return np.minimum(np.array(before, dtype=np.int64), POSITIONS - 1)


def several_positions(positions: Ints) -> bool:
    """Whether there are first words and others, so that the two can be told apart."""
    return bool((positions == 0).any() and (positions > 0).any())


@dataclass(frozen=True, eq=False)
class Lengths:
    """How long the vectors of a layer are, seen from 0 and from their mean; two passes serve all that asks.

    Attributes
    ----------
    norms : array of shape (n_items,)
    from_mean : array of shape (n_items,), squared distances to the mean
    direction : array of shape (n_units,), the sum of the vectors at length 1; NaN where one of them is zero
    """

    norms: Floats
    from_mean: Floats
    direction: Floats

    @classmethod
    def of(cls, X: Vectors) -> Lengths:
        """Of one layer (n_items, n_units)."""
        norms, from_mean = np.empty((2, len(X)))
        total, direction = np.zeros((2, X.shape[1]))
        for part, rows in _in_blocks(X):
            norms[part] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
            total += rows.sum(axis=0)
            direction += (
                np.divide(1.0, norms[part], out=np.full(len(rows), np.nan), where=norms[part] > 0) @ rows
            )
        for part, rows in _in_blocks(X):
            rows -= total / len(X)
            from_mean[part] = np.einsum("ij,ij->i", rows, rows)
        return cls(norms, from_mean, direction)


def anisotropy(lengths: Lengths) -> float:
    """The mean cosine between two different items, in [−1, 1]; NaN where a vector is zero.

    Σ_{i≠j} x̂_i · x̂_j = ‖Σ x̂_i‖² − n, so no pair is formed (Ethayarajh 2019).
    """
    n, total = len(lengths.norms), lengths.direction
    return float((total @ total - n) / (n * (n - 1))) if n > 1 else float("nan")


def norm_ratio(lengths: Lengths, some: npt.NDArray[np.bool_]) -> float:
    """The mean length of some vectors over that of the others."""
    others = lengths.norms[~some].mean()
    return float(lengths.norms[some].mean() / others) if others > 0 else float("nan")


def share_by_position(lengths: Lengths, positions: Ints) -> Floats:
    """(n_positions,) the share of the variance that the items at each position carry; they sum to 1."""
    carried = np.bincount(positions, weights=lengths.from_mean, minlength=POSITIONS)
    total = carried.sum()
    return carried / total if total > 0 else np.full(POSITIONS, np.nan)


def split_half_ceiling(
    X: Vectors, *, distance: DistanceLike = "euclidean", n_splits: int = 2, seed: int = 0
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


def duplicated_share(X: Vectors) -> float:
    """The share of items whose vector is, bit for bit, another item's as well."""
    bits = f"u{X.dtype.itemsize}"
    sums = np.concatenate(
        [rows.view(bits).sum(axis=1, dtype=np.uint64) for _, rows in _in_blocks(X, X.dtype)]
    )
    _, at, counts = np.unique(sums, return_inverse=True, return_counts=True)
    alike = X[counts[at] > 1]  # equal vectors have equal sums of bits, so few are left to be compared whole
    seen = Counter(row.tobytes() for _, rows in _in_blocks(alike, X.dtype) for row in rows)
    return sum(count for count in seen.values() if count > 1) / len(X)


def top_share(lengths: Lengths, *, top: float = 0.01) -> float:
    """The share of the variance (squared distances to the mean) that the farthest 1 % of items carry."""
    squared = np.sort(lengths.from_mean)[::-1]
    total = squared.sum()
    return float(squared[: max(1, round(top * len(squared)))].sum() / total) if total > 0 else float("nan")


def _in_blocks(X: Vectors, dtype: npt.DTypeLike = np.float64) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
    """Copies of some rows at a time, and where they stand; −0 has become 0."""
    for first in range(0, len(X), BLOCK_ROWS):
        part = slice(first, first + BLOCK_ROWS)
        rows = np.array(X[part], dtype=dtype, order="C")
        rows += 0
        yield part, rows


WIDTHS = {"score": (0.10, 0.05, 0.02), "importance": (0.05, 0.02, 0.01)}
"""Widths of 95 % intervals that the table answers for"""


def precision_table(profiles: Sequence[Profile], n_items: int) -> pd.DataFrame:
    """How many items give intervals of a given width, in the median layer.

    Pairs share their items, so widths shrink with the square root of the number of *items*, not of pairs. The
    width now is that of the ranges; without replicates, 2 · 1.96 standard errors over folds.
    """
    now = {"score": _median([_score_widths(p) for p in profiles])}
    now["importance"] = _median([_importance_widths(p) for p in profiles])
    rows = [
        {
            "quantity": quantity,
            "width_now": width,
            "items_now": n_items,
            "width_wanted": wanted,
            "items_needed": int(np.ceil(n_items * (width / wanted) ** 2)) if np.isfinite(width) else None,
        }
        for quantity, width in now.items()
        for wanted in WIDTHS[quantity]
    ]
    return pd.DataFrame(rows).astype({"items_needed": "Int64"})


def _score_widths(profile: Profile) -> Floats:
    if profile.replicates is None:
        return _fold_widths(profile.scores)
    low, high = profile.score_range()
    return high - low


def _importance_widths(profile: Profile) -> Floats:
    if profile.replicates is None:
        return _fold_widths(profile.importance)
    low, high = profile.importance_range()
    return high - low


def _fold_widths(values: Floats) -> Floats:
    """From (n_layers, n_folds, ...): each fold is an estimate from its own part of the items."""
    n_folds = values.shape[1]
    if n_folds < 2:
        return np.full(1, np.nan)
    return 2 * 1.96 * values.std(axis=1, ddof=1) / np.sqrt(n_folds)


def _median(widths: Sequence[Floats]) -> float:
    values = np.concatenate([w.ravel() for w in widths])
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else float("nan")
