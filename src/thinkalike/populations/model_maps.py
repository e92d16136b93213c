"""Maps of models: multidimensional scaling, once for all folds and once for each, turned onto one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from thinkalike.comparison.maps import align, smacof
from thinkalike.labels import Floats
from thinkalike.populations.between_models import between_folds, between_models, distance_of
from thinkalike.populations.fingerprint_record import Fingerprint
from thinkalike.saving import Kept
from thinkalike.types import Chart


@dataclass(frozen=True, eq=False, repr=False)
class ModelMap(Kept):
    """Models placed so that distances on the map are as close as can be to those between them."""

    by: str
    names: tuple[str, ...]
    coordinates: Floats = field()
    """(n_models, 2)"""
    stress: float
    """Kruskal's stress-1: 0 is perfect, above 0.2 is poor"""
    folds: Floats | None = field(default=None)
    """(n_folds, n_models, 2) from each fold, turned and mirrored to lie on `coordinates`"""

    def __repr__(self) -> str:
        return f"ModelMap({self.by}: {len(self.names)} models, stress {self.stress:.2f})"

    def ellipses(self) -> Floats:
        """(n_models, 3): semi-axes of one standard deviation over folds, and the angle of the first axis."""
        found = np.zeros((len(self.names), 3))
        if self.folds is None:
            return found
        for k in range(len(self.names)):
            values, vectors = np.linalg.eigh(np.cov(self.folds[:, k].T))
            axes = np.sqrt(np.maximum(values[::-1], 0))
            found[k] = *axes, np.arctan2(vectors[1, 1], vectors[0, 1])
        return found

    def plot(self, groups: pd.Series | None = None, *, theme: str = "light") -> Chart:
        """The map, each model with its ellipse; coloured by `groups`, a Series over names, if it is given."""
        from thinkalike.populations.charts import map_chart

        return map_chart(self, groups, theme=theme)

    def to_frame(self) -> pd.DataFrame:
        """One row per model: its place, and the semi-axes and angle of its ellipse."""
        frame = pd.DataFrame({"model": self.names, "x": self.coordinates[:, 0], "y": self.coordinates[:, 1]})
        if self.folds is not None:
            frame[["semi_axis", "other_semi_axis", "angle"]] = self.ellipses()
        return frame


def model_map(fingerprints: Sequence[Fingerprint], *, by: str = "features") -> ModelMap:
    """A map of models, with an ellipse for each where the distance has folds."""
    found = between_models(fingerprints, by=by)
    coordinates, stress = smacof(found.values)
    folds = None
    if distance_of(by).between is not None:
        each = between_folds(fingerprints, by=by)
        folds = np.stack([align(smacof(values)[0], coordinates) for values in each])
    return ModelMap(by, found.names, coordinates, stress, folds)
