"""What qualifies a layer's numbers: how reliable its distances are, and whether few items speak for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from thinkalike.comparison.profiles import LayerDiagnostics
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

BLOCK_ROWS = 4096
"""Rows that are looked at together"""
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
    found = Diagnosis(
        split_half_ceiling(X, distance=distance, seed=seed), duplicated_share(X), top_share(X), anisotropy(X)
    )
    if positions is None or not several_positions(positions):
        return found
    return replace(
        found,
        first_norm=norm_ratio(X, positions == 0),
        by_position=share_by_position(X, positions),
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


def anisotropy(X: Vectors) -> float:
    """The mean cosine between two different items, in [−1, 1]; NaN where a vector is zero.

    Σ_{i≠j} x̂_i · x̂_j = ‖Σ x̂_i‖² − n, so no pair is formed (Ethayarajh 2019).
    """
    n, total = len(X), np.zeros(X.shape[1])
    if n < 2:
        return float("nan")
    for rows in _in_blocks(X):
        norms = np.linalg.norm(rows, axis=1)
        if (norms == 0).any():
            return float("nan")
        total += (rows / norms[:, None]).sum(axis=0)
    return float((total @ total - n) / (n * (n - 1)))


def norm_ratio(X: Vectors, some: npt.NDArray[np.bool_]) -> float:
    """The mean length of some vectors over that of the others."""
    norms = np.concatenate([np.linalg.norm(rows, axis=1) for rows in _in_blocks(X)])
    others = norms[~some].mean()
    return float(norms[some].mean() / others) if others > 0 else float("nan")


def share_by_position(X: Vectors, positions: Ints) -> Floats:
    """(n_positions,) the share of the variance that the items at each position carry; they sum to 1."""
    carried = np.bincount(positions, weights=_squared_from_mean(X), minlength=POSITIONS)
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
    seen: Counter[bytes] = Counter()
    for first in range(0, len(X), BLOCK_ROWS):
        rows = np.ascontiguousarray(X[first : first + BLOCK_ROWS] + X.dtype.type(0))  # −0 and 0 are the same
        seen.update(blake2b(row.tobytes(), digest_size=16).digest() for row in rows)
    return sum(count for count in seen.values() if count > 1) / len(X)


def top_share(X: Vectors, *, top: float = 0.01) -> float:
    """The share of the variance (squared distances to the mean) that the farthest 1 % of items carry."""
    squared = np.sort(_squared_from_mean(X))[::-1]
    total = squared.sum()
    return float(squared[: max(1, round(top * len(X)))].sum() / total) if total > 0 else float("nan")


def _squared_from_mean(X: Vectors) -> Floats:
    """(n_items,) squared distances of the items to their mean."""
    mean = X.mean(axis=0, dtype=np.float64)
    centred = (rows - mean for rows in _in_blocks(X))
    return np.concatenate([np.einsum("ij,ij->i", rows, rows) for rows in centred])


def _in_blocks(X: Vectors) -> Iterator[Floats]:
    """Some rows at a time in float64: a layer of many items has no room for a second one."""
    return (X[first : first + BLOCK_ROWS].astype(np.float64) for first in range(0, len(X), BLOCK_ROWS))
