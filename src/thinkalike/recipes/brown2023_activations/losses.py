"""Losses of everything that was stitched, document by document: effects are their sums and differences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats
from thinkalike.recipes.effects import Effect
from thinkalike.stitching.statistics import ratio_interval

if TYPE_CHECKING:
    from thinkalike.stitching import StitchResult


@dataclass(frozen=True, eq=False)
class Losses:
    """Sums over the predictions of each document, means over layers.

    Attributes
    ----------
    counts : (n_units,)
        Predictions of each document.
    stitched
        (bottom, top) → (n_units,) loss of the stitched models, the mean over pairs of layers.
    own
        Top → (n_units,) its own loss.
    """

    counts: Floats
    unit: str
    resamples: int = 2000
    seed: int = 0
    stitched: dict[tuple[str, str], Floats] = field(default_factory=dict)
    own: dict[str, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Iterable[StitchResult], *, resamples: int, seed: int) -> Losses:
        """From results that were all judged on the same documents."""
        every = list(results)
        made = cls(every[0].counts, every[0].unit, resamples, seed)
        for result in every:
            if not np.array_equal(result.counts, made.counts):
                raise InvalidInput(f"{result.bottom} → {result.top} was judged on other text than the rest.")
            made.own[result.top] = result.own_losses
            for role, bottom in (("pair", result.bottom), ("self", result.top)):
                rows = [k for k, stitch in enumerate(result.stitches) if stitch.role == role]
                if rows:
                    made.stitched[bottom, result.top] = result.losses[rows].mean(axis=0)
        return made

    def loss(self, bottom: str, top: str) -> Floats:
        return self.stitched[bottom, top]

    def penalty(self, bottom: str, top: str) -> Floats:
        """Stitched loss less the top's own."""
        return self.stitched[bottom, top] - self.own[top]

    def asymmetry(self, a: str, b: str) -> Floats:
        """Stitched loss of a → b less that of b → a."""
        return self.loss(a, b) - self.loss(b, a)

    def mean(self, values: Floats) -> float:
        return float(values.sum() / self.counts.sum())

    def effect(self, values: Floats, about: str = "") -> Effect:
        """Per prediction, with its range over documents."""
        found = ratio_interval(values[None], self.counts, resamples=self.resamples, seed=self.seed)
        ends = float(found.low[0]), float(found.high[0])
        return Effect(about, float(found.value[0]), *ends, f"{len(self.counts)} {self.unit}")
