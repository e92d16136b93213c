"""Maps: layers of all systems from a matrix, the words of a layer from its vectors; how faithful each is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.linalg import eigh

from thinkalike.labels import Floats, Row
from thinkalike.saving import Kept

if TYPE_CHECKING:
    import altair as alt

    from thinkalike.labels import Layer
    from thinkalike.stimuli.table import Stimuli


@dataclass(frozen=True, eq=False, repr=False)
class LayerMap(Kept):
    """Layers placed so that distances on the map are as close as can be to 1 − similarity."""

    measure: str
    rows: tuple[Row, ...]
    coordinates: Floats = field()
    """(n_rows, 2)"""
    stress: float
    """Kruskal's stress-1: 0 is perfect, above 0.2 is poor"""

    def __repr__(self) -> str:
        return f"LayerMap({self.measure}: {len(self.rows)} layers, stress {self.stress:.2f})"

    def to_frame(self) -> pd.DataFrame:
        """One row per layer."""
        return pd.DataFrame(
            {
                "system": [row[0] for row in self.rows],
                "layer": np.array([row[1] for row in self.rows], dtype=object),
                "x": self.coordinates[:, 0],
                "y": self.coordinates[:, 1],
            }
        )

    def plot(self, *, theme: str | None = "light") -> alt.LayerChart:
        """The map, systems told apart by colour and shape; theme None: to be joined."""
        from thinkalike.comparison.plots import draw, layer_map_chart

        return draw(layer_map_chart, self, theme=theme)


@dataclass(frozen=True, eq=False, repr=False)
class WordMaps(Kept):
    """Classical MDS of the same words in every layer."""

    rows: tuple[Row, ...]
    items: tuple[str, ...]
    """Ids of the mapped items, a seeded subset"""
    coordinates: Floats = field()
    """(n_rows, n_items, 2)"""
    explained: Floats = field()
    """(n_rows, 2) share of the variance of these items along each axis"""

    def __repr__(self) -> str:
        return f"WordMaps({len(self.items)} items in {len(self.rows)} layers)"

    def to_frame(self) -> pd.DataFrame:
        """One row per layer and item."""
        n_rows, n_items, _ = self.coordinates.shape
        return pd.DataFrame(
            {
                "system": np.repeat([row[0] for row in self.rows], n_items),
                "layer": np.repeat(np.array([row[1] for row in self.rows], dtype=object), n_items),
                "item": np.tile(np.array(self.items, dtype=object), n_rows),
                "x": self.coordinates[:, :, 0].ravel(),
                "y": self.coordinates[:, :, 1].ravel(),
            }
        )

    def plot(
        self,
        stimuli: Stimuli,
        system: str,
        layer: Layer,
        *,
        feature: str | None = None,
        theme: str | None = "light",
    ) -> alt.Chart:
        """The words of one layer, coloured by a feature of `stimuli` (its first when None)."""
        from thinkalike.comparison.plots import draw, words_chart

        return draw(words_chart, self, stimuli, system, layer, feature, theme=theme)


def classical_mds(X: npt.NDArray[np.floating], *, n_axes: int = 2) -> tuple[Floats, Floats]:
    """Classical MDS of the Euclidean distances between the rows of X: the leading principal components.

    Returns
    -------
    coordinates : (n, n_axes), each axis with its largest-magnitude entry positive
    explained : (n_axes,) share of the variance along each axis
    """
    centred = np.asarray(X, dtype=np.float64) - np.mean(X, axis=0, dtype=np.float64)
    by_items = len(X) <= X.shape[1]
    values, vectors = _leading(centred @ centred.T if by_items else centred.T @ centred, n_axes)
    scores = vectors * np.sqrt(values) if by_items else centred @ vectors
    coordinates, explained = np.zeros((len(X), n_axes)), np.zeros(n_axes)
    coordinates[:, : scores.shape[1]] = scores * _fixed_signs(scores)
    total = (centred**2).sum()
    explained[: len(values)] = values / total if total > 0 else 0.0
    return coordinates, explained


def smacof(dissimilarities: Floats, *, n_axes: int = 2, max_steps: int = 1_000) -> tuple[Floats, float]:
    """Metric MDS of a matrix (n, n) by majorisation (de Leeuw 1977), started at classical MDS: no seed.

    Returns the coordinates (n, n_axes) and Kruskal's stress-1, √(Σ(d − δ)² / Σ d²). NaN counts as the mean.
    """
    known = np.isfinite(dissimilarities)
    usual = dissimilarities[known].mean() if known.any() else 0.0
    target = np.maximum(np.where(known, dissimilarities, usual), 0.0)
    target = (target + target.T) / 2
    np.fill_diagonal(target, 0.0)
    n = len(target)
    centring = np.eye(n) - 1.0 / n
    values, vectors = _leading(-0.5 * centring @ target**2 @ centring, n_axes)
    start = vectors * np.sqrt(values)
    points = np.zeros((n, n_axes))
    points[:, : start.shape[1]] = start
    stress = _stress(points, target)
    for _ in range(max_steps):
        points = _guttman(points, target)
        before, stress = stress, _stress(points, target)
        if before - stress < 1e-7:
            break
    return points * _fixed_signs(points), stress


def align(points: Floats, reference: Floats) -> Floats:
    """`points` (n, 2) turned, mirrored and moved to lie as close as can be to `reference`; distances stay."""
    centre = reference.mean(axis=0)
    moved = points - points.mean(axis=0)
    left, _, right = np.linalg.svd(moved.T @ (reference - centre))
    return moved @ (left @ right) + centre


def _leading(symmetric: Floats, n_axes: int) -> tuple[Floats, Floats]:
    """The largest eigenvalues, negative ones as 0, and their eigenvectors as columns."""
    n = len(symmetric)
    values, vectors = eigh(symmetric, subset_by_index=[max(0, n - n_axes), n - 1])
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def _guttman(points: Floats, target: Floats) -> Floats:
    """One majorisation step."""
    distances = _distances(points)
    ratio = np.divide(target, distances, out=np.zeros_like(target), where=distances > 1e-12)
    np.fill_diagonal(ratio, 0.0)
    return (ratio.sum(axis=1)[:, None] * points - ratio @ points) / len(points)


def _distances(points: Floats) -> Floats:
    return np.sqrt(((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2))


def _stress(points: Floats, target: Floats) -> float:
    distances = _distances(points)
    scale = (distances**2).sum()
    return float(np.sqrt(((distances - target) ** 2).sum() / scale)) if scale > 0 else 0.0


def _fixed_signs(columns: Floats) -> Floats:
    """±1 per column so that its entry of largest magnitude is positive: the same map on every machine."""
    largest = np.abs(columns).argmax(axis=0)
    return np.where(columns[largest, np.arange(columns.shape[1])] < 0, -1.0, 1.0)
