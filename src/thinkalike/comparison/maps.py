"""Maps: layers of all systems from a matrix, the words of a layer from its vectors; how faithful each is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from thinkalike.comparison.rows import Floats, Row


@dataclass(frozen=True, eq=False, repr=False)
class LayerMap:
    """Layers placed so that distances on the map are as close as can be to 1 − similarity."""

    measure: str
    rows: tuple[Row, ...]
    coordinates: Floats = field()
    """(n_rows, 2)"""
    stress: float
    """Kruskal's stress-1: 0 is perfect, above 0.2 is poor"""

    def to_frame(self) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "system": [row[0] for row in self.rows],
                "layer": np.array([row[1] for row in self.rows], dtype=object),
                "x": self.coordinates[:, 0],
                "y": self.coordinates[:, 1],
            }
        )


@dataclass(frozen=True, eq=False, repr=False)
class WordMaps:
    """Classical MDS of the same words in every layer."""

    rows: tuple[Row, ...]
    items: tuple[str, ...]
    """Ids of the mapped items, a seeded subset"""
    coordinates: Floats = field()
    """(n_rows, n_items, 2)"""
    explained: Floats = field()
    """(n_rows, 2) share of the layer's variance along each axis"""
