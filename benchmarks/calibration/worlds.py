"""Worlds in which the truth is known: levels of features have random places, and items are noisy sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from thinkalike.stimuli import Stimuli

Floats = np.ndarray

LEVELS = (2, 3, 2, 5, 4, 2, 6, 3)
"""Levels of the features of a table, unless told otherwise"""


@dataclass(frozen=True)
class Table:
    """Some items a sentence, with features of so many levels each."""

    levels: tuple[int, ...] = LEVELS
    missing: float = 0.0
    """The share of values that are missing"""
    first: float | None = None
    """The share of the first level of every feature; when None, each level has a share of its own"""
    shared: float = 0.0
    """How much any two features go together: the correlation of the normal numbers that levels are made of"""
    each: int = 3
    """Items a sentence"""
    of_sentence: int = 0
    """So many of the features, the first ones, are the same in all items of a sentence"""

    def draw(self, n_sentences: int, seed: int = 0) -> Stimuli:
        rng = np.random.default_rng(seed)
        n = self.each * n_sentences
        common = rng.normal(size=n) if self.shared else 0.0
        table: dict[str, Any] = {"sentence": np.repeat(np.arange(n_sentences), self.each).astype(str)}
        for place, n_levels in enumerate(self.levels):
            names = np.array(list("abcdef")[:n_levels], dtype=object)
            shares = self._shares(rng, n_levels)
            if self.shared:
                mixed = np.sqrt(self.shared) * common + np.sqrt(1 - self.shared) * rng.normal(size=n)
                values = names[np.searchsorted(np.cumsum(shares)[:-1], norm.cdf(mixed))]
            elif place < self.of_sentence:
                values = np.repeat(rng.choice(names, n_sentences, p=shares), self.each)
            else:
                values = rng.choice(names, n, p=shares)
            table[f"f{place}"] = np.where(rng.random(n) < self.missing, None, values)
        table["word"] = [f"word{k}" for k in range(n)]
        frame = pd.DataFrame(table)
        frame["text"] = frame.groupby("sentence")["word"].transform(" ".join)
        return Stimuli.from_table(frame)

    def _shares(self, rng: np.random.Generator, n_levels: int) -> Floats:
        if self.first is None:
            return rng.dirichlet(np.full(n_levels, 2.0))
        return np.array([self.first, *[(1 - self.first) / (n_levels - 1)] * (n_levels - 1)])


TABLES = {
    "half missing": Table(missing=0.5),
    "twelve features": Table(levels=(2, 3, 2, 4, 3, 2, 5, 2, 3, 2, 4, 2)),
    "rare levels": Table(levels=(2, 2, 3, 2, 4, 2, 3, 2), first=0.92),
    "third missing": Table(levels=(3, 2, 4, 2, 3, 5, 2), missing=0.35),
    "uncommon": Table(levels=(2, 3, 2, 4, 2, 3), first=0.85),
    "scarce": Table(levels=(2, 2, 2, 3, 3, 2, 2, 4, 2), first=0.93),
    "correlated features": Table(levels=(2, 3, 2, 4, 2, 3, 5, 2), shared=0.6),
    "documents of eight items": Table(levels=(2, 3, 2, 2, 3, 4, 2), first=0.4, each=8, of_sentence=3),
    "ten features": Table(levels=(2, 4, 3, 2, 2, 5, 3, 2, 3, 2)),
}


def shown(kind: str, n_sentences: int, seed: int = 0) -> Stimuli:
    """Sentences of a grammar, or items of one of `TABLES`."""
    if kind in TABLES:
        return TABLES[kind].draw(n_sentences, seed)
    return Stimuli.from_grammar(grammar=kind, n_sentences=n_sentences, seed=seed)


DOMINANT = 40.0
"""The strength of a feature that dominates: others are about 1, and all noise together is 6"""


def draw_strengths(rng: np.random.Generator, kind: str, n_features: int) -> Floats:
    """Strengths of unrelated features.

    "log-normal", "gamma", "wide" (log-normal with twice the spread), "sparse", three in five of which are 0,
    or "one dominates", in which one feature, any, is as strong as `DOMINANT`.
    """
    if kind == "gamma":
        return rng.gamma(1.0, size=n_features)
    if kind == "wide":
        return np.exp(2 * rng.normal(size=n_features))
    strengths = np.exp(rng.normal(size=n_features))
    if kind == "one dominates":
        strengths[rng.integers(n_features)] = DOMINANT
    return np.where(rng.random(n_features) < 0.4, 1.5 * strengths, 0.0) if kind == "sparse" else strengths


@dataclass(frozen=True)
class World:
    """Items as random places of their levels plus noise; a strength of 1 is a sixth of the noise."""

    stimuli: Stimuli
    noise: float = 1.0
    sentence_noise: float = 0.5
    """Shared by the items of a sentence, as a share of the noise"""
    n_units: int = 24
    tails: int | None = None
    """Degrees of freedom of Student's t that noise and places of levels are drawn from; None: normal"""
    loud: int = 0
    """So many of the units are ten times as loud as the others, as some are in language models"""
    interactions: float = 0.0
    """Of two features next to each other, what every combination of their levels adds of its own, as a share
    of what the two do by themselves"""

    def drawn(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Numbers of variance 1."""
        if self.tails is None:
            return rng.normal(size=shape)
        return rng.standard_t(self.tails, size=shape) * np.sqrt((self.tails - 2) / self.tails)

    @cached_property
    def sentence(self) -> Floats:
        return pd.factorize(self.stimuli.items["sentence"])[0]

    @cached_property
    def codes(self) -> list[Floats]:
        """The level of each item in each feature, −1 where it is missing."""
        return [pd.factorize(self.stimuli.features[name])[0] for name in self.stimuli.features]

    def layer(self, rng: np.random.Generator, strengths: Floats) -> Floats:
        """(n_items, n_units)"""
        X = self.drawn(rng, (len(self.stimuli), self.n_units))
        sentence = self.sentence
        X += self.sentence_noise * self.drawn(rng, (sentence.max() + 1, self.n_units))[sentence]
        X *= self.noise
        for codes, strength in zip(self.codes, strengths, strict=True):
            places = 0.4 * np.sqrt(strength) * self.drawn(rng, (codes.max() + 1, self.n_units))
            X += np.where(codes[:, None] >= 0, places[codes], 0.0)
        if self.interactions:
            X += self._combined(rng, strengths)
        X[:, : self.loud] *= 10
        return X

    def _combined(self, rng: np.random.Generator, strengths: Floats) -> Floats:
        """(n_items, n_units): what no sum over the features can explain."""
        X = np.zeros((len(self.stimuli), self.n_units))
        for k in range(0, len(self.codes) - 1, 2):
            first, second = self.codes[k], self.codes[k + 1]
            both = first * (second.max() + 1) + second
            size = self.interactions * 0.4 * (strengths[k] * strengths[k + 1]) ** 0.25
            places = size * self.drawn(rng, ((first.max() + 1) * (second.max() + 1), self.n_units))
            known = (first >= 0) & (second >= 0)
            X[known] += places[both[known]]
        return X

    def system(
        self, rng: np.random.Generator, strengths: Floats, n_layers: int, spread: float
    ) -> list[Floats]:
        """Layers whose log strengths spread around those of the system."""
        moved = [strengths * np.exp(spread * rng.normal(size=len(strengths))) for _ in range(n_layers)]
        return [self.layer(rng, one) for one in moved]
