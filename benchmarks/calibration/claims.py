"""`Claim`: what a simulation found, beside what it should find."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np


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
    error_of_sets: float | None = None
    """The standard error where draws come in sets that share something: from the means of the sets"""

    @property
    def error(self) -> float:
        """The standard error of `found`."""
        if self.error_of_sets is not None:
            return self.error_of_sets
        return sqrt(self.found * (1 - self.found) / self.n)

    @property
    def holds(self) -> bool:
        return bool(self.goal_low <= self.found <= self.goal_high)

    def as_row(self) -> dict[str, Any]:
        told = asdict(self)
        del told["error_of_sets"]
        return {
            **told,
            "found": float(self.found),
            "error": round(self.error, 4),
            "holds": self.holds,
        }


def error_of_sets(values: Sequence[float], sets: Sequence[int]) -> float | None:
    """The standard error of the mean of `values`, which are alike within each of `sets`; None for one set."""
    values_, sets_ = np.asarray(values), np.asarray(sets)
    names, counts = np.unique(sets_, return_counts=True)
    if len(names) < 2:
        return None
    away = [(values_[sets_ == name] - values_.mean()).sum() for name in names]
    return float(sqrt(len(names) / (len(names) - 1) * np.square(away).sum()) / counts.sum())


Part = Callable[[int, int], "Claim | list[Claim]"]
"""(n_draws, seed) → what was found in one world, or in several that share their draws"""

Simulation = Part | Mapping[str, Part]
"""One part, or several by the names of their worlds, each of which can be made alone"""


def parts_of(simulation: Simulation) -> dict[str, Part]:
    """The parts of a simulation, in their order."""
    return {"all": simulation} if callable(simulation) else dict(simulation)


def claims_of(found: Claim | list[Claim]) -> list[Claim]:
    return [found] if isinstance(found, Claim) else found
