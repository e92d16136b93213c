"""Whole models: how far apart two models' profiles run over relative depth."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from thinkalike.comparison.rows import Floats


@dataclass(frozen=True, eq=False, repr=False)
class TrajectoryDistances:
    """Distances between the profile trajectories of whole systems."""

    systems: tuple[str, ...]
    euclidean: Floats = field()
    """(n_systems, n_systems) root mean squared distance at equal relative depth"""
    warped: Floats = field()
    """(n_systems, n_systems) the same along the best monotone alignment (dynamic time warping)"""
    coordinates: Floats = field()
    """(n_systems, 2) map of the systems from the warped distances"""
    stress: float

    def to_frame(self) -> pd.DataFrame:
        pairs = [(i, j) for i in range(len(self.systems)) for j in range(i + 1, len(self.systems))]
        return pd.DataFrame(
            {
                "system_a": [self.systems[i] for i, _ in pairs],
                "system_b": [self.systems[j] for _, j in pairs],
                "euclidean": [self.euclidean[i, j] for i, j in pairs],
                "warped": [self.warped[i, j] for i, j in pairs],
            }
        )
