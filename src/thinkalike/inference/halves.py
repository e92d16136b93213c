r"""How much of a layer's geometry holds for other sentences, and how alike two layers are in that.

Items alike in every feature form a *condition*. Deal the sentences into two halves and take, in each, the
mean vector of every condition that both have. With s(a, b') the measure between layer a in one half and layer
b in the other, averaged over both ways and several deals:

    reliability of a = s(a, a'),   ceiling = √(s(a, a') s(b, b')),   disattenuated = s(a, b') / ceiling

What is particular to the sentences that were shown counts nowhere, for no sentence stands on both sides
(Spearman 1904).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats
from thinkalike.measures.measure import Measure

Codes = npt.NDArray[np.int64]
FEWEST = 10
"""Conditions that both halves must have"""


class AcrossHalves(NamedTuple):
    """Between all layers, (n_layers, n_layers); NaN where a layer is not reliable at all."""

    across: Floats
    ceiling: Floats
    disattenuated: Floats

    @property
    def reliability(self) -> Floats:
        """(n_layers,) of each layer with itself in the other half."""
        return np.diag(self.across)


def across_halves(
    measure: Measure,
    layers: Sequence[npt.NDArray[np.floating]],
    conditions: Sequence[object] | npt.NDArray[Any],
    sentences: Sequence[object] | npt.NDArray[Any] | None,
    *,
    n_deals: int = 10,
    seed: int = 0,
) -> AcrossHalves:
    """A similarity between layers of one half of the sentences and layers of the other.

    Parameters
    ----------
    conditions : of each item; items of one condition are averaged within a half.
    sentences : of each item; None if every item stands for itself.
    """
    condition, _ = pd.factorize(np.asarray(conditions))
    owner, _ = pd.factorize(np.arange(len(condition)) if sentences is None else np.asarray(sentences))
    rng, found = np.random.default_rng(seed), []
    for _ in range(n_deals):
        half = rng.permutation(np.arange(owner.max() + 1) % 2)[owner]
        sums = [np.bincount(condition[half == h], minlength=condition.max() + 1) for h in (0, 1)]
        both = np.flatnonzero((sums[0] > 0) & (sums[1] > 0))
        if len(both) < FEWEST:
            raise InvalidInput(
                f"Only {len(both)} combinations of feature values stand in both halves of the sentences, and "
                f"{FEWEST} are needed: show more sentences, or choose fewer features."
            )
        first, second = ([_means(X, condition, half == h, both) for X in layers] for h in (0, 1))
        matrix = measure.matrix(first, second)
        found.append((matrix + matrix.T) / 2)
    across = np.mean(found, axis=0)
    own = np.where(np.diag(across) > 0, np.diag(across), np.nan)
    ceiling = np.sqrt(np.outer(own, own))
    return AcrossHalves(across, ceiling, across / ceiling)


def _means(
    X: npt.NDArray[np.floating], condition: Codes, chosen: npt.NDArray[np.bool_], kept: Codes
) -> Floats:
    """The mean vector of each condition among the chosen items, (n_kept, n_units)."""
    indicator = condition[chosen][None, :] == kept[:, None]
    means: Floats = indicator.astype(np.float64) @ X[chosen] / indicator.sum(axis=1, keepdims=True)
    return means
