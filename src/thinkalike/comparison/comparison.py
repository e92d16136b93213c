"""`Comparison`: everything of one run, as plain labelled arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from thinkalike.comparison.agreement import Agreement
from thinkalike.comparison.cautions import Caution
from thinkalike.comparison.maps import LayerMap, WordMaps
from thinkalike.comparison.profiles import Profile
from thinkalike.comparison.rows import Floats, Row
from thinkalike.comparison.similarity import SimilarityMatrix
from thinkalike.comparison.trajectories import TrajectoryDistances

if TYPE_CHECKING:
    from thinkalike.activations.store import Activations
    from thinkalike.stimuli.table import Stimuli


@dataclass(frozen=True, eq=False, repr=False)
class Controls:
    """Untrained copies of the systems: what architecture and stimuli alone give."""

    profiles: Mapping[str, Profile]
    """By the name of the trained system; the copies are called `NAME (untrained)`"""
    similarity: SimilarityMatrix
    """By features, over the layers of the untrained copies"""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Systems, their profiles, how alike they are by each measure, and why."""

    stimuli: Stimuli
    profiles: Mapping[str, Profile]
    """By system, in the order they were given"""
    matrices: Mapping[str, SimilarityMatrix]
    """By measure: `"features"` (τ_w), `"rsa"`, and whatever else was asked for; all over the same rows"""
    contributions: Floats = field()
    """(n_rows, n_rows, n_features): each feature's part of τ_w, summing to it over the last axis"""
    explained_share: Floats | None = field()
    """(n_rows, n_rows): the part of the RSA similarity that the features explain; NaN when |RSA| < 0.05"""
    agreements: tuple[Agreement, ...]
    """For each pair of measures"""
    layer_maps: Mapping[str, LayerMap]
    """By measure"""
    word_maps: WordMaps | None
    trajectories: TrajectoryDistances
    correlations: pd.DataFrame
    """Features × features Pearson correlations of the differences (Figure S5 of the paper)"""
    cautions: tuple[Caution, ...]
    power: pd.DataFrame
    """Expected interval widths by number of items"""
    answer: tuple[str, str, str]
    """The answer in three sentences"""
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    controls: Controls | None = None
    activations: Mapping[str, Activations] | None = None
    """By system; None when loaded from a run directory whose activations are gone"""

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple(self.profiles)

    @property
    def features(self) -> tuple[str, ...]:
        """The features that τ_w is computed over: those with a value in every layer."""
        return tuple(self.matrices["features"].settings["features"])

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.matrices["features"].rows
