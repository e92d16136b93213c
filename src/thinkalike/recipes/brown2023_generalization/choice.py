"""Who generalises and who does not, and values within and between those groups, direction by direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from thinkalike.errors import InvalidInput
from thinkalike.inference.over_models import mean_over_pairs
from thinkalike.labels import Floats

GENERALIZING, HEURISTIC = "generalizing", "heuristic"
GROUPS = (GENERALIZING, HEURISTIC)


@dataclass(frozen=True)
class Choice:
    """The models of both groups, the generalizing ones first, best first."""

    names: tuple[str, ...]
    groups: tuple[str, ...]

    def of(self, group: str) -> tuple[str, ...]:
        return tuple(name for name, own in zip(self.names, self.groups, strict=True) if own == group)


def choose_ends(outside: Mapping[str, float], n: int) -> Choice:
    """The `n` best and the `n` worst models out of distribution, by accuracies that judge nothing later."""
    if len(outside) < 2 * n:
        raise InvalidInput(f"{len(outside)} models cannot give {n} and {n}: train more, or choose fewer.")
    order = _ordered(outside)
    return _choice(order[:n], order[-n:])


def plant(outside: Mapping[str, float], taught: Mapping[str, float], n: int) -> Choice:
    """The control: `n` models that were taught with counterexamples, and the `n` worst of the others."""
    return _choice(_ordered(taught)[:n], _ordered(outside)[-n:])


def _ordered(right: Mapping[str, float]) -> list[str]:
    return sorted(right, key=lambda name: (-right[name], name))


def _choice(best: Sequence[str], worst: Sequence[str]) -> Choice:
    return Choice((*best, *worst), (GENERALIZING,) * len(best) + (HEURISTIC,) * len(worst))


def chance_gaps(
    share: float, *, n_questions: int, n_models: int, n_chosen: int, draws: int = 2000, seed: int = 0
) -> Floats:
    """How far apart the ends of equal classifiers seem on the questions that choose them: (draws,).

    Each of `n_models` gets each of `n_questions` right with the probability `share`, so all that differs is
    chance (binomial). The gap is the mean of the `n_chosen` best less that of the worst.
    """
    rng = np.random.default_rng(seed)
    ordered = np.sort(rng.binomial(n_questions, share, size=(draws, n_models)) / n_questions, axis=1)
    return ordered[:, -n_chosen:].mean(axis=1) - ordered[:, :n_chosen].mean(axis=1)


def directed_means(
    values: Floats,
    groups: Sequence[str],
    layers: Sequence[float],
    *,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Means over pairs of different models from one group to another, with intervals over models.

    Parameters
    ----------
    values : (n_layers, m, m), from the model of the row (bottom) to that of the column (top).

    Returns
    -------
    DataFrame: `layer`, `pair` (`generalizing → heuristic`), `within`, `mean`, `low`, `high`, `n_pairs`.
    """
    codes = np.array([GROUPS.index(group) for group in groups])
    rows = []
    for layer, matrix in zip(layers, values, strict=True):
        for a, b in product(range(len(GROUPS)), repeat=2):
            chosen = (codes[:, None] == a) & (codes[None, :] == b) & ~np.eye(len(codes), dtype=bool)
            found = mean_over_pairs(matrix, chosen, codes, confidence=confidence)
            rows.append(
                {
                    "layer": layer,
                    "pair": f"{GROUPS[a]} → {GROUPS[b]}",
                    "within": a == b,
                    **found._asdict(),
                    "n_pairs": int(chosen.sum()),
                }
            )
    return pd.DataFrame(rows)
