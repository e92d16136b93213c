"""Whole models: how far apart two models' profiles run over relative depth, at any number of layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from thinkalike.comparison.maps import smacof
from thinkalike.comparison.profiles import importance_shares, relative_depth
from thinkalike.labels import Floats, Layer, block_of
from thinkalike.saving import Kept

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, eq=False, repr=False)
class TrajectoryDistances(Kept):
    """Distances between the profile trajectories of whole systems."""

    systems: tuple[str, ...]
    euclidean: Floats = field()
    """(n_systems, n_systems) root mean squared distance at equal relative depth"""
    warped: Floats = field()
    """(n_systems, n_systems) mean distance along the best monotone alignment (dynamic time warping)"""
    coordinates: Floats = field()
    """(n_systems, 2) map of the systems from the warped distances"""
    stress: float

    def __repr__(self) -> str:
        return f"TrajectoryDistances({', '.join(self.systems)})"

    def to_frame(self) -> pd.DataFrame:
        """One row per pair of systems."""
        first, second = np.triu_indices(len(self.systems), k=1)
        names = np.array(self.systems, dtype=object)
        return pd.DataFrame(
            {
                "system_a": names[first],
                "system_b": names[second],
                "euclidean": self.euclidean[first, second],
                "warped": self.warped[first, second],
            }
        )

    def plot(self, *, theme: str | None = "light") -> alt.LayerChart:
        """The map of the systems; theme None: to be joined."""
        from thinkalike.comparison.plots import draw, system_map_chart

        return draw(system_map_chart, self, theme=theme)


def block_means(layers: Sequence[Layer], importance: Floats) -> Floats:
    """(n_blocks, F) of (n_layers, F): the mean over the parts of each block, which have no order."""
    blocks = [block_of(layer) for layer in layers]
    return np.stack(
        [importance[[block == name for block in blocks]].mean(axis=0) for name in dict.fromkeys(blocks)]
    )


def trajectory_distances(systems: Sequence[str], profiles: Sequence[Floats]) -> TrajectoryDistances:
    """Distances between trajectories (n_layers, F), each layer scaled to a total importance of 1.

    The scale of a layer's importances follows its ρ; dividing by the total leaves *what* the layer cares
    about.
    """
    shares = [importance_shares(profile) for profile in profiles]
    n = len(shares)
    euclidean, warped = np.zeros((2, n, n))
    for i in range(n):
        for j in range(i):
            euclidean[i, j] = euclidean[j, i] = depth_distance(shares[i], shares[j])
            warped[i, j] = warped[j, i] = warped_distance(shares[i], shares[j])
    coordinates, stress = smacof(warped)
    return TrajectoryDistances(tuple(systems), euclidean, warped, coordinates, stress)


def depth_distance(x: Floats, y: Floats, *, n_points: int = 101) -> float:
    """Root mean squared distance of two trajectories at equal relative depth, interpolated linearly."""
    grid = np.linspace(0.0, 1.0, n_points)
    difference = _at_depths(x, grid) - _at_depths(y, grid)
    return float(np.sqrt((difference**2).sum(axis=1).mean()))


def warped_distance(x: Floats, y: Floats) -> float:
    """Mean distance along the monotone alignment of layers with the least total (dynamic time warping).

    Every layer of each is matched with at least one of the other, first with first, last with last (Sakoe and
    Chiba 1978). Among alignments of equal cost the shortest counts.
    """
    cost = np.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2))
    total = np.full((len(x) + 1, len(y) + 1), np.inf)
    steps = np.zeros(total.shape)
    total[0, 0] = 0.0
    for i in range(1, len(x) + 1):
        for j in range(1, len(y) + 1):
            before = min((i - 1, j - 1), (i - 1, j), (i, j - 1), key=lambda k: (total[k], steps[k]))
            total[i, j] = total[before] + cost[i - 1, j - 1]
            steps[i, j] = steps[before] + 1
    return float(total[-1, -1] / steps[-1, -1])


def _at_depths(profile: Floats, grid: Floats) -> Floats:
    depths = relative_depth(len(profile))
    return np.stack([np.interp(grid, depths, column) for column in profile.T], axis=1)
