"""How far apart whole models are, from their fingerprints: one table of distances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

from thinkalike.comparison.model_distances import block_places
from thinkalike.comparison.trajectories import trajectory_distances
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.labels import Floats
from thinkalike.populations.fingerprint_record import Fingerprint, check_same_reference
from thinkalike.populations.importance_distances import warped_matrix
from thinkalike.populations.mean_tau import mean_tau_matrix
from thinkalike.populations.sketch import sketched_rsa
from thinkalike.saving import Kept
from thinkalike.types import Chart

FEATURES = "features"


@dataclass(frozen=True)
class ModelDistance:
    """One way to say how far apart models are.

    Attributes
    ----------
    of : {"importance", "geometry"}
        What it is made from; only importances have folds and resamples.
    between : from a list of importances (n_layers, F) to (n, n); None for geometry.
    blocks : whether the embeddings are left out.
    """

    name: str
    about: str
    of: Literal["importance", "geometry"]
    between: Callable[[Sequence[Floats]], Floats] | None = None
    blocks: bool = True


def one_less_mean_tau(profiles: Sequence[Floats]) -> Floats:
    """1 − mean τ_w over all pairs of layers; 0 on the diagonal."""
    values = 1.0 - mean_tau_matrix(profiles)
    np.fill_diagonal(values, 0.0)
    return values


def warped_shares(profiles: Sequence[Floats]) -> Floats:
    """Mean distance along the best monotone matching of layers, importances as shares of their layer's."""
    return trajectory_distances([str(k) for k in range(len(profiles))], profiles).warped


MODEL_DISTANCES = {
    one.name: one
    for one in (
        ModelDistance(
            FEATURES, "1 − mean τ_w over all pairs of layers", "importance", one_less_mean_tau, False
        ),
        ModelDistance("warped", "raw importances warped (third version)", "importance", warped_matrix),
        ModelDistance("warped-shares", "shares of importance warped", "importance", warped_shares),
        ModelDistance("rsa", "√(2(1 − ρ)) of all blocks side by side", "geometry"),
    )
}
"""Name → distance between models"""


@dataclass(frozen=True, eq=False, repr=False)
class Distances(Kept):
    """Between all models of a population."""

    by: str
    names: tuple[str, ...]
    values: Floats = field()
    """(n_models, n_models)"""

    def __repr__(self) -> str:
        return f"Distances({self.by}: {len(self.names)} models)"

    def to_frame(self) -> pd.DataFrame:
        """One row per pair of models."""
        first, second = np.triu_indices(len(self.names), k=1)
        names = np.array(self.names, dtype=object)
        return pd.DataFrame({"a": names[first], "b": names[second], "distance": self.values[first, second]})

    def plot(self, *, theme: str = "light") -> Chart:
        """All models against all."""
        from thinkalike.populations.charts import distance_chart

        return distance_chart(self, theme=theme)

    def among(self, names: Sequence[str]) -> Distances:
        """Of some of the models."""
        places = [self.names.index(name) for name in names]
        return Distances(self.by, tuple(names), self.values[np.ix_(places, places)])

    def nearest(self, name: str, n: int = 5) -> pd.DataFrame:
        """The `n` nearest models, nearest first."""
        if name not in self.names:
            raise UnknownName.among("model", name, self.names)
        own = self.names.index(name)
        order = [k for k in np.argsort(self.values[own], kind="stable") if k != own][:n]
        return pd.DataFrame({"model": [self.names[k] for k in order], "distance": self.values[own, order]})


def distance_of(by: str) -> ModelDistance:
    """The distance of that name."""
    if by not in MODEL_DISTANCES:
        raise UnknownName.among("distance between models", by, MODEL_DISTANCES)
    return MODEL_DISTANCES[by]


def between_models(fingerprints: Sequence[Fingerprint], *, by: str = FEATURES) -> Distances:
    """How far apart models are.

    Parameters
    ----------
    by : {"features", "warped", "warped-shares", "rsa"}
        A name in `MODEL_DISTANCES`.
    """
    distance = distance_of(by)
    check_same_reference(fingerprints)
    if len(fingerprints) < 2:
        raise InvalidInput(f"There is {len(fingerprints)} model: distances need two or more.")
    names = tuple(one.name for one in fingerprints)
    if distance.between is None:
        ranks = np.stack([one.sketch.together for one in fingerprints])
        return Distances(by, names, np.sqrt(2 * (1 - sketched_rsa(ranks))))
    importances = [one.profile.mean_importance[_rows(one, distance)] for one in fingerprints]
    return Distances(by, names, distance.between(importances))


def between_folds(fingerprints: Sequence[Fingerprint], *, by: str = "warped") -> Floats:
    """The distances again from each fold's importances: (n_folds, n_models, n_models)."""
    distance = distance_of(by)
    if distance.between is None:
        raise InvalidInput(f"{by!r} is made from distances of items, which have no folds: choose another.")
    n_folds = min(one.profile.importance.shape[1] for one in fingerprints)
    return np.stack(
        [
            distance.between([_fold(one, k)[_rows(one, distance)] for one in fingerprints])
            for k in range(n_folds)
        ]
    )


def _rows(one: Fingerprint, distance: ModelDistance) -> list[int]:
    return block_places(one.profile.rows)[one.name] if distance.blocks else list(range(len(one.layers)))


def _fold(one: Fingerprint, k: int) -> Floats:
    """The importances of one fold; of a feature that has none there, the mean of the others."""
    values = one.profile.importance[:, k]
    return np.where(np.isfinite(values), values, one.profile.mean_importance)
