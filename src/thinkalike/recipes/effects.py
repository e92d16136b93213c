"""How large an effect is, and its range: over sets of sentences, draws of weights, seeds of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from thinkalike.labels import Floats

CONFIDENCE = 0.95
FEWEST = 6
"""Values below which no range of the median is wide enough: 2 · ½⁶ is the first below 5 %"""


@dataclass(frozen=True)
class Effect:
    """One number that a statement rests on, with its range.

    Attributes
    ----------
    about : whose effect it is, such as the name of a model; empty where there is but one
    value, low, high : the ends are NaN where there are too few values for a range
    over : what the range is over, such as "10 sets of sentences"; empty for a plain fact

    Examples
    --------
    >>> from thinkalike.recipes import Effect
    >>> Effect.over_draws([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "sets of sentences")
    Effect(about='', value=0.35, low=0.1, high=0.6, over='6 sets of sentences')
    """

    about: str
    value: float
    low: float
    high: float
    over: str = ""

    @classmethod
    def fact(cls, value: float, about: str = "") -> Effect:
        """A number without any chance in it, such as one that is read from a configuration."""
        return cls(about, float(value), float(value), float(value))

    @classmethod
    def over_draws(cls, values: Sequence[float] | Floats, of: str, about: str = "") -> Effect:
        """The median over independent draws `of` something, with the range that holds it."""
        known = np.asarray(values, dtype=np.float64)
        known = known[np.isfinite(known)]
        low, high = median_range(known)
        value = float(np.median(known)) if len(known) else float("nan")
        return cls(about, value, low, high, f"{len(known)} {of}")

    @classmethod
    def crossed(cls, values: Floats, of: Sequence[str], about: str = "") -> Effect:
        """Over several things at once: the widest range, so that it holds whichever of them is drawn anew.

        Parameters
        ----------
        values : an axis for each of `of`, such as (n_sets, n_draws); NaN where there is none.
        """
        values = np.asarray(values, dtype=np.float64)
        axes = range(values.ndim)
        means = [np.nanmean(values, axis=tuple(k for k in axes if k != own)) for own in axes]
        ends = np.array([median_range(one[np.isfinite(one)]) for one in means])
        counts = [f"{np.isfinite(one).sum()} {name}" for one, name in zip(means, of, strict=True)]
        value = float(np.nanmedian(values))
        return cls(about, value, float(ends[:, 0].min()), float(ends[:, 1].max()), " and ".join(counts))


def median_range(values: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The narrowest pair of order statistics that holds the median of what the values were drawn from.

    It does so in at least `confidence` of all samples, whatever the distribution: the k-th smallest is above
    the median only when fewer than k of n values are below it, which is binomial. NaN for too few values.
    """
    n = len(values)
    k = int(binom.ppf((1 - confidence) / 2, n, 0.5)) if n else 0  # P(fewer than k below) ≤ (1 − c)/2
    if k < 1:
        return float("nan"), float("nan")
    ordered = np.sort(values)
    return float(ordered[k - 1]), float(ordered[n - k])


def effects_over(draws: Sequence[Mapping[str, float]], of: str) -> tuple[Effect, ...]:
    """The effects by name of several draws, each with its range: one mapping per draw."""
    names = list(dict.fromkeys(name for draw in draws for name in draw))
    return tuple(
        Effect.over_draws([draw.get(name, float("nan")) for draw in draws], of, name) for name in names
    )
