"""`Claim`: what a simulation found, beside what it should find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any


@dataclass(frozen=True)
class Claim:
    """One figure of certainty in one simulated world; `found` is a share of the `n` draws."""

    name: str
    """Such as "p ≤ 0.05 of a block mean of τ_w" """
    world: str
    """Such as "salle2024, sparse strengths, 5 layers" """
    goal_low: float
    goal_high: float
    found: float
    n: int

    @property
    def error(self) -> float:
        """The standard error of `found`."""
        return sqrt(self.found * (1 - self.found) / self.n)

    @property
    def holds(self) -> bool:
        return bool(self.goal_low <= self.found <= self.goal_high)

    def as_row(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "found": float(self.found),
            "error": round(self.error, 4),
            "holds": self.holds,
        }


Simulation = Callable[[int, int], "Claim | list[Claim]"]
"""(n_draws, seed) → what was found; several claims where one simulation serves them"""
