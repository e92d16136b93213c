"""From an observation to the effects of the paper's claims: one function each, model by model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pandas as pd

from thinkalike.inference.agreement import agreement
from thinkalike.inference.blocks import find_blocks
from thinkalike.labels import Floats
from thinkalike.recipes.salle2024.observing import Observation

POS, POSITION, NUMBER = "part_of_speech", "word_position", "number"
MIDDLE = (0.2, 0.8)
"""Depths, from 0 (first layer) to 1 (last), that count as the middle of a model"""
RISE = 1.5
Effects = dict[str, float]


@dataclass(frozen=True)
class Cast:
    """Who plays which part; a claim whose part nobody plays has no effects."""

    transformers: tuple[str, ...]
    state_space: str | None = None

    @property
    def models(self) -> tuple[str, ...]:
        return self.transformers if self.state_space is None else (*self.transformers, self.state_space)


def blocks_of(table: pd.DataFrame) -> pd.DataFrame:
    """The table without the embeddings, layer 0."""
    return table.drop(index=0, errors="ignore")


def leaders(table: pd.DataFrame) -> list[str]:
    """The most important feature of every block."""
    return [str(name) for name in blocks_of(table).idxmax(axis=1)]


def pos_leads(seen: Observation, cast: Cast) -> Effects:
    return {
        name: float(np.mean([top == POS for top in leaders(seen.tables[name])])) for name in cast.transformers
    }


def pos_at_the_ends(seen: Observation, cast: Cast) -> Effects:
    if cast.state_space is None:
        return {}
    led = np.array([top == POS for top in leaders(seen.tables[cast.state_space])], dtype=float)
    if len(led) < 3:
        return {}
    return {cast.state_space: float(led[[0, -1]].mean() - led[1:-1].mean())}


def position_rises(seen: Observation, cast: Cast) -> Effects:
    if cast.state_space is None:
        return {}
    values = blocks_of(seen.tables[cast.state_space])[POSITION].to_numpy(np.float64)
    if len(values) < 2:
        return {}
    depth, before, after = step_of(values)
    middle = MIDDLE[0] <= depth <= MIDDLE[1]
    return {cast.state_space: after - RISE * max(before, 0.0) if middle else 0.0}


def step_of(values: Floats) -> tuple[float, float, float]:
    """The cut that leaves least of the variance: its depth from 0 to 1, the means before and after it."""
    n = len(values)
    k = min(range(1, n), key=lambda k: _rest(values[:k]) + _rest(values[k:]))
    return k / max(1, n - 1), float(values[:k].mean()), float(values[k:].mean())


def _rest(values: Floats) -> float:
    return float(((values - values.mean()) ** 2).sum())


def two_blocks(seen: Observation, cast: Cast) -> Effects:
    if cast.state_space is None:
        return {}
    found = find_blocks(seen.between(cast.state_space, cast.state_space), n_blocks=(2,), smallest=2)
    if found is None:
        return {}
    return {cast.state_space: found.p if found.within > found.between else 1.0}


def maps_by_position(seen: Observation, cast: Cast) -> Effects:
    if cast.state_space is None:
        return {}
    gains = seen.by_position.get(cast.state_space, {})
    return {f"{cast.state_space} by {kind}": float(gain) for kind, gain in gains.items()}


def number_falls(seen: Observation, cast: Cast) -> Effects:
    found = {}
    for name in cast.models:
        table = blocks_of(seen.tables[name])
        if NUMBER in table:
            values = table[NUMBER].to_numpy(np.float64)
            third = max(1, len(values) // 3)
            found[name] = float(values[:third].mean() - values[-third:].mean())
    return found


def matrices_agree(seen: Observation, cast: Cast) -> Effects:
    found = agreement("features", seen.taus, "rsa", seen.geometry, seen.rows)
    return {"": found.rho - found.expected}


def most_alike_models(seen: Observation, cast: Cast) -> Effects:
    return _extreme_models(seen, cast, np.nanmax)


def least_alike_models(seen: Observation, cast: Cast) -> Effects:
    return _extreme_models(seen, cast, np.nanmin)


def _extreme_models(seen: Observation, cast: Cast, extreme: Callable[[Floats], float]) -> Effects:
    """The extreme τ_w between the Transformers less the extreme with the state-space model."""
    if cast.state_space is None or len(cast.transformers) < 2:
        return {}
    inside = [extreme(seen.between(a, b)) for a, b in combinations(cast.transformers, 2)]
    across = [extreme(seen.between(a, cast.state_space)) for a in cast.transformers]
    ends = [float(extreme(np.array(group))) for group in (inside, across)]
    return {"": ends[0] - ends[1]}


def most_alike_feature(seen: Observation, cast: Cast) -> Effects:
    pair = _extreme_pair(seen, cast, highest=True)
    return {"": float(np.mean([top == POS for top in pair]))}


def least_alike_feature(seen: Observation, cast: Cast) -> Effects:
    a, b = _extreme_pair(seen, cast, highest=False)
    return {"": float((a == POS) != (b == POS))}


def _extreme_pair(seen: Observation, cast: Cast, *, highest: bool) -> tuple[str, str]:
    """What leads the two most, or least, alike layers of two models."""
    found = []
    for a, b in combinations(cast.models, 2):
        taus = seen.between(a, b)
        first, second = leaders(seen.tables[a]), leaders(seen.tables[b])
        for i, j in product(range(taus.shape[0]), range(taus.shape[1])):
            if np.isfinite(taus[i, j]):
                found.append((float(taus[i, j]), first[i], second[j]))
    _, *pair = max(found) if highest else min(found)
    return pair[0], pair[1]


def features_apart(seen: Observation, cast: Cast) -> Effects:
    return {"": seen.strongest}


def architecture(seen: Observation, cast: Cast) -> Effects:
    """How much more alike the Transformers are than either is to the state-space model."""
    if cast.state_space is None or len(cast.transformers) < 2:
        return {}
    inside = np.mean([np.nanmean(seen.between(a, b)) for a, b in combinations(cast.transformers, 2)])
    return {"": float(inside - max(np.nanmean(seen.between(a, cast.state_space)) for a in cast.transformers))}


def same_leaders(one: Mapping[str, pd.DataFrame], other: Mapping[str, pd.DataFrame]) -> Effects:
    """Of each model the share of the layers that the same feature leads in both."""
    return {
        name: float(np.mean([a == b for a, b in zip(leaders(one[name]), leaders(other[name]), strict=True)]))
        for name in one
    }


MEASURES: dict[str, Callable[[Observation, Cast], Effects]] = {
    "pos leads": pos_leads,
    "pos at the ends": pos_at_the_ends,
    "position rises": position_rises,
    "two blocks": two_blocks,
    "maps by position": maps_by_position,
    "number falls": number_falls,
    "matrices agree": matrices_agree,
    "most alike models": most_alike_models,
    "most alike feature": most_alike_feature,
    "least alike models": least_alike_models,
    "least alike feature": least_alike_feature,
    "features apart": features_apart,
    "architecture": architecture,
}
"""Name of a rule → its effects on one observation"""
