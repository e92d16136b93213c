"""How many stimuli for how much certainty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from thinkalike.comparison.profiles import Profile
from thinkalike.labels import Floats

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
