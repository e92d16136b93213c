"""Why are two layers alike? `Explanation`: contributions that sum to τ_w, in words and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from thinkalike.comparison.rows import Floats, Row


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why one pair of layers is as alike as it is."""

    a: Row
    b: Row
    features: tuple[str, ...]
    tau: float
    importance_a: Floats = field()
    importance_b: Floats = field()
    """(n_features,) mean over folds"""
    contributions: Floats = field()
    """(n_features,) sum to τ_w"""
    without: Floats = field()
    """(n_features,) τ_w with each feature left out"""
    without_group: Mapping[str, float] = field(default_factory=dict)
    """τ_w with each declared group of features left out"""
    p: float | None = None
    p_block: float | None = None
    low: float | None = None
    high: float | None = None
    """Stability range of τ_w"""
    shared: tuple[str, ...] = ()
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    """Features that matter in both layers, or in one only"""
    rsa: float | None = None
    explained_share: float | None = None
    """The part of the RSA similarity that the named features explain; None when |RSA| < 0.05"""
    worst_pairs: pd.DataFrame | None = None
    """The pairs of items whose distances the features explain worst"""
