"""`Profile`: what each layer of one system is organised by, with everything that qualifies it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from thinkalike.addresses import place
from thinkalike.comparison.replicates import Replicates
from thinkalike.errors import InvalidInput
from thinkalike.inference.ranges import quantile
from thinkalike.labels import Floats, Layer, Row, find_layer

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, eq=False)
class Collinearity:
    """How far the differences of the features can be told apart over pairs of items."""

    features: tuple[str, ...]
    correlations: Floats
    """(n_features, n_features) Pearson correlations of the feature differences over all pairs"""
    inflation: Floats
    """(n_features,) variance inflation: 1 is free of the others, above 5 is hard to tell apart"""


@dataclass(frozen=True, eq=False)
class LayerDiagnostics:
    """What could make the numbers of a layer mean less than they seem to."""

    ceiling: Floats
    """(n_layers,) the ρ at which many more units like these would agree with them, from split halves"""
    duplicated: Floats
    """(n_layers,) share of items whose vector is also another item's"""
    top_share: Floats
    """(n_layers,) share of the variance that the 1 % of items farthest from the mean carry"""
    anisotropy: Floats | None = None
    """(n_layers,) mean cosine between two different items: near 1, all point the same way"""
    first_norm: Floats | None = None
    """(n_layers,) mean length of the vectors of first words over that of the others"""
    by_position: Floats | None = None
    """(n_layers, n_positions) share of the variance that the words at each position of a sentence carry"""
    positions: Floats | None = None
    """(n_layers, n_positions) share of the items that they are, the same in every layer"""
    without_position: Floats | None = None
    """(n_layers, n_positions, n_features) importance with the words at each position left out, in fitting and
    in judging; NaN where no word stands there. Made with the resamples, None without them"""

    def lost_importance(self, importance: Floats) -> Floats:
        """(n_layers, n_positions) the share of a layer's importance that goes with the words at a position.

        Of `importance` (n_layers, n_features), all words being there: 1 − Σ_f without / Σ_f importance,
        negative ones counted as 0. 1 where nothing is left, below 0 where the other words have more without
        them. Unlike shares of variance these need not sum to 1: a pair has two positions. NaN if unknown.
        """
        if self.without_position is None:
            return np.full((len(importance), 1), np.nan)
        left = np.maximum(self.without_position, 0.0).sum(axis=2)
        total = np.maximum(importance, 0.0).sum(axis=1)[:, None]
        return np.divide(total - left, total, out=np.full(left.shape, np.nan), where=total > 0)


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    """Layers × features importance of one system (Salle et al. 2024), by fold.

    Importance is the drop in held-out Spearman ρ when a feature is permuted; NaN in a fold where the feature
    has one level.

    Attributes
    ----------
    system, layers, features : names; `layers` and `features` label the axes of the arrays
    stimuli_digest : of the stimuli that were shown; None if that is not known
    collinearity : how far the features can be told apart, optional
    diagnostics : what qualifies the numbers of each layer, optional
    replicates : the profile again without parts of the sentences, optional

    Examples
    --------
    >>> import numpy as np
    >>> from thinkalike.comparison import Profile
    >>> profile = Profile(
    ...     system="mine",
    ...     layers=(0, 1),
    ...     features=("number", "tense"),
    ...     importance=np.array([[[0.1, 0.0], [0.3, 0.0]], [[0.0, 0.5], [0.0, 0.5]]]),
    ...     scores=np.array([[0.4, 0.5], [0.6, 0.6]]),
    ...     settings={},
    ...     stimuli_digest=None,
    ... )
    >>> profile.mean_importance
    array([[0.2, 0. ],
           [0. , 0.5]])
    """

    system: str
    layers: tuple[Layer, ...]
    features: tuple[str, ...]
    importance: Floats = field()
    """(n_layers, n_folds, n_features)"""
    scores: Floats = field()
    """(n_layers, n_folds) held-out ρ between predicted and neural distances"""
    settings: Mapping[str, object]
    """Preset, distance, folds, α and whatever else changes the numbers"""
    stimuli_digest: str | None
    strengths: Floats | None = field(default=None)
    """(n_layers, n_folds, n_features) what a feature does when it differs, in units of the noise: the squared
    distance of items alike in all features. Unlike importance it does not grow with the share of pairs that
    differ, so that profiles of other stimuli can be set beside it. From the items outside each fold, NaN
    where these cannot tell. None in profiles made before strengths were."""
    collinearity: Collinearity | None = None
    diagnostics: LayerDiagnostics | None = None
    replicates: Replicates | None = None
    """For ranges and reliability; None if none were asked for"""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Of the activations: model, revision, pooling, versions"""

    def __post_init__(self) -> None:
        expected = (len(self.layers), self.scores.shape[-1], len(self.features))
        if self.importance.shape != expected or self.scores.shape != expected[:2]:
            raise InvalidInput(
                f"{self.system}: importance {self.importance.shape} and scores {self.scores.shape} do not "
                f"fit {len(self.layers)} layers and {len(self.features)} features."
            )
        if self.strengths is not None and self.strengths.shape != expected:
            raise InvalidInput(
                f"{self.system}: strengths {self.strengths.shape} do not fit importance {expected}."
            )

    def __repr__(self) -> str:
        n_layers, n_folds, n_features = self.importance.shape
        return f"Profile({self.system}: {n_layers} layers × {n_features} features, {n_folds} folds)"

    def _repr_html_(self) -> str:
        shown = self.table()
        shown.insert(0, "held-out ρ", self.mean_scores)
        return shown.to_html(float_format=lambda v: f"{v:.3f}", border=0)

    @property
    def mean_importance(self) -> Floats:
        """(n_layers, n_features): the mean over the folds that have the feature; NaN when none has."""
        return mean_over_folds(self.importance)

    @property
    def mean_strengths(self) -> Floats:
        """(n_layers, n_features): the mean strength over folds; NaN where there is none."""
        if self.strengths is None:
            return np.full((len(self.layers), len(self.features)), np.nan)
        return mean_over_folds(self.strengths)

    @property
    def spread(self) -> Floats:
        """(n_layers, n_features): the standard deviation over folds."""
        present = np.isfinite(self.importance)
        count = present.sum(axis=1)
        centred = np.where(present, self.importance - self.mean_importance[:, None, :], 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(count > 1, np.sqrt((centred**2).sum(axis=1) / (count - 1)), np.nan)

    @property
    def mean_scores(self) -> Floats:
        """(n_layers,): ρ averaged over folds."""
        return mean_over_folds(self.scores[:, :, None])[:, 0]

    @property
    def explains_something(self) -> bool:
        """Whether ρ, averaged over layers, is above 0 by Student's test over folds (2.5 % on one side).

        Where it is not, strengths are noise, of unequal size in unlike features, and no p is given for them.
        """
        by_fold = self.scores.mean(axis=0)
        if len(by_fold) < 2:
            return True
        error = by_fold.std(ddof=1) / np.sqrt(len(by_fold))
        return bool(by_fold.mean() > quantile(0.95, len(by_fold), parts=len(by_fold)) * error)

    def score_range(self) -> Floats:
        """(2, n_layers): the 95 % range of ρ over other sentences; NaN without replicates."""
        if self.replicates is None:
            return np.full((2, len(self.layers)), np.nan)
        return self.replicates.score_range(self.mean_scores)

    def importance_range(self) -> Floats:
        """(2, n_layers, n_features): the 95 % range of each importance; NaN without replicates."""
        if self.replicates is None:
            return np.full((2, len(self.layers), len(self.features)), np.nan)
        return self.replicates.importance_range(self.mean_importance)

    def strength_range(self) -> Floats:
        """(2, n_layers, n_features): the 95 % range of each strength; NaN without replicates."""
        if self.replicates is None:
            return np.full((2, len(self.layers), len(self.features)), np.nan)
        return self.replicates.strength_range(self.mean_strengths)

    def rank_range(self) -> Floats:
        """(2, n_layers, n_features): the best and worst rank of each feature; NaN without replicates."""
        if self.replicates is None:
            return np.full((2, len(self.layers), len(self.features)), np.nan)
        return self.replicates.rank_range(self.mean_importance)

    @property
    def reliability(self) -> Floats:
        """(n_layers,): τ_w to be expected with the profile of as many other sentences; NaN if unknown."""
        if self.replicates is None:
            return np.full(len(self.layers), np.nan)
        return self.replicates.reliability()

    @property
    def rows(self) -> tuple[Row, ...]:
        """(system, layer) of each layer."""
        return tuple((self.system, layer) for layer in self.layers)

    def layer_index(self, layer: Layer | str) -> int:
        """The place of a layer by its label, which may be written as text."""
        return find_layer(self.system, self.layers, layer)

    def table(self) -> pd.DataFrame:
        """Layers × features mean importance; ρ of each layer is in `layer_frame`."""
        frame = pd.DataFrame(self.mean_importance, index=list(self.layers), columns=list(self.features))
        return frame.rename_axis("layer")

    def to_frame(self) -> pd.DataFrame:
        """One row per layer and feature: importance, its spread over folds, its range if any, strength."""
        n_layers, n_features = len(self.layers), len(self.features)
        columns: dict[str, object] = {
            "system": self.system,
            "layer": np.repeat(np.array(self.layers, dtype=object), n_features),
            "relative_depth": np.repeat(relative_depth(n_layers), n_features),
            "feature": np.tile(np.array(self.features, dtype=object), n_layers),
            "importance": self.mean_importance.ravel(),
            "spread": self.spread.ravel(),
            "strength": self.mean_strengths.ravel(),
            "score": np.repeat(self.mean_scores, n_features),
        }
        if self.replicates is not None:
            low, high = self.importance_range()
            best, worst = self.rank_range()
            columns |= {"importance_low": low.ravel(), "importance_high": high.ravel()}
            columns |= {"rank_best": best.ravel(), "rank_worst": worst.ravel()}
            columns["strength_low"], columns["strength_high"] = self.strength_range().reshape(2, -1)
        if self.diagnostics is not None and self.diagnostics.without_position is not None:
            columns["importance_without_first"] = self.diagnostics.without_position[:, 0].ravel()
        return pd.DataFrame(columns)

    def plot(self, *, theme: str | None = "light") -> alt.VConcatChart:
        """Importance over layers (Figure 3 of Salle et al. 2024), and ρ below; theme None: to be joined."""
        from thinkalike.comparison.plots import draw, profile_chart

        return draw(profile_chart, self, theme=theme)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write `path`.parquet, .csv and .json; `Profile.load` reads them back."""
        from thinkalike.comparison.profile_files import save_profile

        folder = place(path)
        save_profile(self, folder)
        return folder

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Profile:
        """What `save` wrote."""
        from thinkalike.comparison.profile_files import load_profile

        return load_profile(place(path))

    def layer_frame(self) -> pd.DataFrame:
        """One row per layer: ρ, its spread, range and ceiling, reliability, and the diagnostics."""
        n_layers = len(self.layers)
        columns: dict[str, object] = {
            "system": self.system,
            "layer": np.array(self.layers, dtype=object),
            "relative_depth": relative_depth(n_layers),
            "score": self.mean_scores,
            "score_spread": self.scores.std(axis=1, ddof=1)
            if self.scores.shape[1] > 1
            else np.full(n_layers, np.nan),
        }
        if self.replicates is not None:
            columns["score_low"], columns["score_high"] = self.score_range()
            columns["reliability"] = self.reliability
        if self.diagnostics is not None:
            columns |= {
                "ceiling": self.diagnostics.ceiling,
                "duplicated": self.diagnostics.duplicated,
                "top_share": self.diagnostics.top_share,
            }
            if self.diagnostics.anisotropy is not None:
                columns["anisotropy"] = self.diagnostics.anisotropy
            if self.diagnostics.first_norm is not None and self.diagnostics.by_position is not None:
                columns["first_norm"] = self.diagnostics.first_norm
                columns["first_share"] = self.diagnostics.by_position[:, 0]
            if self.diagnostics.without_position is not None:
                columns["first_importance"] = self.diagnostics.lost_importance(self.mean_importance)[:, 0]
        return pd.DataFrame(columns)

    def position_frame(self) -> pd.DataFrame:
        """One row per layer and position in the sentence: its share of items, variance and importance.

        Positions count from 0, and 9 stands for all that follow. The share of the importance is what goes
        when these words are left out, `LayerDiagnostics.lost_importance`. No rows for what are not words.
        """
        found = self.diagnostics
        if found is None or found.by_position is None or found.positions is None:
            return pd.DataFrame(columns=["system", "layer", "position", "items", "variance", "importance"])
        n_layers, n_positions = found.by_position.shape
        lost = np.broadcast_to(found.lost_importance(self.mean_importance), (n_layers, n_positions))
        frame = pd.DataFrame(
            {
                "system": self.system,
                "layer": np.repeat(np.array(self.layers, dtype=object), n_positions),
                "position": np.tile(np.arange(n_positions), n_layers),
                "items": found.positions.ravel(),
                "variance": found.by_position.ravel(),
                "importance": lost.ravel(),
            }
        )
        return frame[frame["items"] > 0].reset_index(drop=True)


def importance_shares(importance: Floats) -> Floats:
    """Importances (..., F) as shares of each layer's total; negative and missing ones count as 0."""
    positive = np.maximum(np.nan_to_num(importance), 0.0)
    total = positive.sum(axis=-1, keepdims=True)
    return np.divide(positive, total, out=np.zeros(positive.shape), where=total > 0)


def relative_depth(n_layers: int) -> Floats:
    """0 for the first layer, 1 for the last."""
    return np.linspace(0.0, 1.0, n_layers) if n_layers > 1 else np.zeros(1)


def mean_over_folds(values: Floats) -> Floats:
    """(n_layers, n_folds, k) → (n_layers, k), over the folds with a value."""
    present = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.where(present, values, 0.0).sum(axis=1) / present.sum(axis=1)
