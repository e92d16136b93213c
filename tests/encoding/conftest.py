"""Data, and pairs that are really formed: the oracles here use nothing of the code under test."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

RANKS = ["low", "mid", "high", "top"]


def _features(n: int, seed: int = 0, missing: float = 0.0, numeric: bool = True) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "case": pd.Categorical(rng.choice(["nom", "acc", "dat"], n)),
            "number": pd.Categorical(rng.choice(["sg", "pl"], n)),
            "rank": pd.Categorical(rng.choice(RANKS[:3], n), categories=RANKS, ordered=True),
            "length": rng.integers(1, 5, n).astype(float),
        }
    )
    if numeric:
        table["frequency"] = rng.normal(size=n)
    for name in table.columns[1:]:
        table.loc[rng.random(n) < missing, name] = np.nan
    return table


def _squared_differences(
    features: pd.DataFrame, ordered: str = "indicator", missing: str = "ignore"
) -> np.ndarray:
    columns = []
    for name in features:
        column = features[name]
        scaled = ordered == "minmax" and not (column.dtype == "category" and not column.cat.ordered)
        if scaled and column.dtype == "category":
            codes = pd.Series(column.cat.codes, dtype=float).where(column.cat.codes >= 0)
            column = codes / (len(column.cat.categories) - 1)
        elif scaled:
            column = (column - column.min()) / (column.max() - column.min())
        columns.append([_difference(a, b, scaled, missing) for a, b in itertools.combinations(column, 2)])
    return np.array(columns, dtype=float).T


def _difference(a: object, b: object, scaled: bool, missing: str) -> float:
    if pd.isna(a) or pd.isna(b):
        return float(missing == "level" and pd.isna(a) != pd.isna(b))
    return (a - b) ** 2 if scaled else float(a != b)  # type: ignore[operator]


def _activations(
    features: pd.DataFrame, weights: dict[str, float], n_units: int, noise: float, seed: int
) -> np.ndarray:
    """Every level of a feature has a random direction: ‖x_i − x_j‖² grows by about 2 w_f where f differs."""
    rng = np.random.default_rng(seed)
    X = noise * rng.normal(size=(len(features), n_units))
    for name, weight in weights.items():
        codes, levels = pd.factorize(features[name])
        X += np.sqrt(weight / n_units) * rng.normal(size=(len(levels) + 1, n_units))[codes]
    return X


@pytest.fixture(scope="session")
def make_features() -> Callable[..., pd.DataFrame]:
    return _features


@pytest.fixture(scope="session")
def squared_differences() -> Callable[..., np.ndarray]:
    """(n_pairs, n_features) from the values themselves, pair by pair."""
    return _squared_differences


@pytest.fixture(scope="session")
def make_activations() -> Callable[..., np.ndarray]:
    return _activations
