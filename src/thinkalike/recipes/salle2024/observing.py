"""What one set of sentences shows of all models: importances, geometry, and maps of the words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from thinkalike.activations.store import Activations
from thinkalike.comparison.maps import classical_mds
from thinkalike.comparison.profiling import plan_profiles, profile
from thinkalike.files import numbers
from thinkalike.inference.weighted_tau import tau_matrix
from thinkalike.labels import Floats, Row
from thinkalike.pairs.distances import DistanceLike, make_target
from thinkalike.pairs.pairset import Pairs
from thinkalike.pairs.ranks import standardised_ranks
from thinkalike.stimuli.table import Stimuli
from thinkalike.types import Json

PAIRS = 200_000
"""Pairs of words that the geometry is judged on: RSA within about 0.002"""
MAPPED = 100
"""Words on a map"""
POSITION = "word_position"


@dataclass(frozen=True, eq=False)
class Observation:
    """All models on one set of sentences.

    Attributes
    ----------
    tables
        Model → importance, layers (rows, embeddings first) × features.
    geometry : (n_rows, n_rows)
        RSA between all layers of all models.
    strongest
        The largest correlation, in size, between the differences of two features.
    by_position
        Model → `MDS` and `Kruskal`: how much more of the variance of a map of words lies between positions
        at three quarters of the depth than at one quarter.
    """

    tables: Mapping[str, pd.DataFrame]
    geometry: Floats
    strongest: float
    by_position: Mapping[str, Mapping[str, float]]

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return tuple((name, layer) for name, table in self.tables.items() for layer in table.index)

    @cached_property
    def taus(self) -> Floats:
        """τ_w between all layers, over the features that all models have."""
        return taus_of(self.tables)

    def between(self, a: str, b: str) -> Floats:
        """τ_w between the blocks of two models, embeddings left out."""
        places = [
            [k for k, (name, layer) in enumerate(self.rows) if name == m and layer != 0] for m in (a, b)
        ]
        return self.taus[np.ix_(*places)]

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> Observation:
        tables = {name: table_from(one) for name, one in stored["tables"].items()}
        return cls(tables, numbers(stored["geometry"]), float(stored["strongest"]), stored["by_position"])


def observe(
    systems: Sequence[Activations], stimuli: Stimuli, *, maps: bool = True, **encoding: Any
) -> dict[str, Any]:
    """An `Observation` as plain values, as it is kept."""
    plan = plan_profiles(stimuli, **encoding)
    made = [profile(one, stimuli, plan=plan) for one in systems]
    correlations = plan.collinearity.correlations.copy()
    np.fill_diagonal(correlations, 0.0)
    return {
        "tables": {one.system: plain_table(one.table()) for one in made},
        "geometry": rsa_between(systems, len(stimuli), plan.encoding.settings.distance),
        "strongest": float(np.abs(correlations).max()),
        "by_position": {one.system: position_on_maps(one, stimuli) for one in systems if maps},
    }


def rsa_between(systems: Sequence[Activations], n_items: int, distance: DistanceLike = "euclidean") -> Floats:
    """Spearman's ρ of the distances between words, of every two layers."""
    pairs = Pairs.of(n_items, max_pairs=PAIRS, seed=0)
    ranks = np.stack(
        [
            standardised_ranks(pairs, make_target(one[layer], distance))
            for one in systems
            for layer in one.layers
        ]
    )
    found: Floats = (ranks @ ranks.T).astype(np.float64) / ranks.shape[1]
    return found


def taus_of(tables: Mapping[str, pd.DataFrame]) -> Floats:
    """τ_w between all layers of all models."""
    every = pd.concat(list(tables.values()), join="inner")
    return tau_matrix(every.dropna(axis=1).to_numpy(np.float64))


def position_on_maps(one: Activations, stimuli: Stimuli) -> dict[str, float]:
    """How much more positions lie apart on a map of the words of a high layer than of a low one."""
    if POSITION not in stimuli.features:
        return {}
    blocks = [layer for layer in one.layers if layer != 0]
    chosen = np.sort(np.random.default_rng(0).permutation(len(stimuli))[:MAPPED])
    levels = [str(value) for value in stimuli.features[POSITION].to_numpy()[chosen]]
    shares: dict[str, list[float]] = {"MDS": [], "Kruskal": []}
    for depth in (0.25, 0.75):
        X = np.asarray(one[blocks[round(depth * (len(blocks) - 1))]][chosen], dtype=np.float64)
        shares["MDS"].append(variance_by_level(classical_mds(X)[0], levels))
        shares["Kruskal"].append(variance_by_level(kruskal_mds(X), levels))
    return {name: high - low for name, (low, high) in shares.items()}


def kruskal_mds(X: Floats) -> Floats:
    """Non-metric MDS (Kruskal 1964) of the rows of X (n, d): (n, 2), from the classical solution on."""
    from sklearn.manifold import smacof
    from sklearn.metrics import euclidean_distances

    start = classical_mds(X)[0]
    points = smacof(
        euclidean_distances(X), metric=False, init=start, n_init=1, normalized_stress=True, random_state=0
    )[0]
    found: Floats = np.asarray(points)
    return found


def variance_by_level(points: Floats, levels: Sequence[str]) -> float:
    """η²: the share of the variance of points (n, k) that lies between levels."""
    codes = pd.factorize(np.array(levels, dtype=object))[0]
    chosen = points - points.mean(axis=0)
    total = float((chosen**2).sum())
    sums = np.stack([np.bincount(codes, weights=axis) for axis in chosen.T], axis=1)
    between = float((sums**2 / np.bincount(codes)[:, None]).sum())
    return between / total if total > 0 else 0.0


def plain_table(table: pd.DataFrame) -> Json:
    """Importances as they are kept; features that no fold has are left out."""
    known = table.dropna(axis=1)
    return {"layers": list(known.index), "features": list(known), "values": known.to_numpy().tolist()}


def table_from(stored: Mapping[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(stored["values"], index=stored["layers"], columns=stored["features"], dtype=float)
