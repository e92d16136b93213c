"""Do two matrices over the same layers tell the same story? Spearman ρ, and Mantel tests for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Agreement:
    """How alike two matrices order the pairs of layers (the ρ = 0.69 of Salle et al. 2024)."""

    a: str
    b: str
    """The measures"""
    rho: float
    """Spearman over all pairs of different layers"""
    p_all: float
    """Mantel: layers of one matrix permuted freely. Lenient: neighbouring layers are alike in anything"""
    p_within: float
    """Mantel: layers permuted within their own model only, so the blocks of the models stay"""
    rho_between: float
    """Spearman over the pairs of layers of different models; NaN for one model"""
    n_permutations: int
