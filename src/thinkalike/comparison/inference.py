"""Is the agreement of two systems more than chance? The null relabels the features of one whole system."""

from __future__ import annotations

from dataclasses import dataclass

from thinkalike.comparison.rows import Layer


@dataclass(frozen=True)
class BlockTest:
    """All layers of `a` against all layers of `b` (`a == b`: within a system, the diagonal left out)."""

    a: str
    b: str
    mean: float
    """Mean τ_w over the block"""
    p_mean: float
    """For the two systems: share of relabellings whose block mean is at least as high"""
    q: float
    """`p_mean` after Benjamini–Hochberg over all pairs of systems; NaN within a system"""
    maximum: float
    p_maximum: float
    """For the layers in the block: share of relabellings whose block maximum is at least as high"""
    layer_a: Layer
    layer_b: Layer
    """Where the maximum stands"""
    null_95: float
    """The 95th percentile of the block mean over relabellings: what chance alone reaches"""
    n_relabellings: int
    exact: bool
    """Whether all F! relabellings were enumerated"""
    control: float = float("nan")
    """The block mean of untrained copies of the two systems, where they were run"""
