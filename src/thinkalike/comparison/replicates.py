"""`Replicates`: a profile again, without each part of the sentences and from halves of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from thinkalike.inference.ranges import jackknife_error, jackknife_range, quantile, reaching_up
from thinkalike.inference.weighted_tau import tau
from thinkalike.labels import Floats


class Dealt(TypedDict):
    """Into how many parts how many sentences were dealt."""

    parts: int
    sentences: int | None


ORDERED = 0.80
"""A feature stands above another for certain when the range of this level of their difference is above 0.
Ranges of ranks, which take all others together, then cover 95 % and more."""


@dataclass(frozen=True, eq=False)
class Replicates:
    """Profiles of one system without some of the sentences.

    The same sentences are left out in every system of a run, so that differences between systems, and any
    function of several, have ranges of their own (`inference.ranges`).
    """

    scores: Floats
    """(n_resamples, n_layers)"""
    importance: Floats
    """(n_resamples, n_layers, n_features)"""
    halves: Floats
    """(n_splits, 2, n_layers, n_features) importances from either half of the sentences"""
    parts: int
    """How many parts the sentences are dealt into, of which each resample leaves one out"""
    sentences: int | None = None
    """How many sentences there are; None in profiles that do not know"""
    strengths: Floats | None = None
    """(n, n_layers, n_features) without each part, in the first deals; None in profiles made before"""

    @property
    def dealt(self) -> Dealt:
        """How the sentences were dealt, as the functions of `inference.ranges` take it."""
        return {"parts": self.parts, "sentences": self.sentences}

    def score_range(self, scores: Floats) -> Floats:
        """(2, n_layers): the 95 % range of ρ, given the ρ of all sentences."""
        found = jackknife_range(scores, self.scores, scale="correlation", **self.dealt)
        return np.stack([found.low, found.high])

    def importance_range(self, importance: Floats) -> Floats:
        """(2, n_layers, n_features): the 95 % range of each importance, given those of all sentences."""
        found = reaching_up(importance, jackknife_range(importance, self.importance, **self.dealt))
        return np.stack([found.low, found.high])

    def strength_range(self, strengths: Floats) -> Floats:
        """(2, n_layers, n_features): the 95 % range of each strength; NaN where it is not known."""
        if self.strengths is None:
            return np.full((2, *strengths.shape), np.nan)
        found = jackknife_range(strengths, self.strengths, **self.dealt)
        return np.stack([found.low, found.high])

    def rank_range(self, importance: Floats) -> Floats:
        """(2, n_layers, n_features): the best and the worst rank that a feature may have, 1 being the first.

        One more than the features that are above it for certain, to as many as are not below it for certain.
        """
        above = importance[..., None, :] - importance[..., :, None]
        each = self.importance[..., None, :] - self.importance[..., :, None]
        reach = quantile(ORDERED, len(each), **self.dealt) * jackknife_error(each, parts=self.parts)
        best = 1.0 + (above > reach).sum(axis=-1)
        worst = importance.shape[-1] - (-above > reach).sum(axis=-1)
        return np.where(np.isfinite(importance), np.stack([best, worst]), np.nan)

    def reliability(self) -> Floats:
        """(n_layers,): τ_w to be expected between this profile and that of as many other sentences.

        The mean τ_w of halves, r, stepped up to the whole by Spearman and Brown: 2r / (1 + r); 0 if r < 0.
        """
        known = np.isfinite(self.halves).all(axis=(0, 1, 2))
        of_halves = tau(self.halves[:, 0][..., known], self.halves[:, 1][..., known])
        r = np.maximum(of_halves.mean(axis=0), 0.0)
        return 2 * r / (1 + r)
