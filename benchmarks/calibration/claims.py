"""`Claim`: what a simulation found, beside what it should find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


Part = Callable[[int, int], "Claim | list[Claim]"]
"""(n_draws, seed) → what was found in one world, or in several that share their draws"""

Simulation = Part | Mapping[str, Part]
"""One part, or several by the names of their worlds, each of which can be made alone"""


def parts_of(simulation: Simulation) -> dict[str, Part]:
    """The parts of a simulation, in their order."""
    return {"all": simulation} if callable(simulation) else dict(simulation)


def claims_of(found: Claim | list[Claim]) -> list[Claim]:
    return [found] if isinstance(found, Claim) else found
