"""Repeated measurements of the same items, for distances that are not biased by noise (crossnobis)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.pairs.distances import as_vectors


def stack_runs(features: pd.DataFrame, X: npt.ArrayLike, *, run: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Repeated measurements, one row each, as one table of items and an array (n_runs, n_items, n_units).

    Parameters
    ----------
    features : DataFrame, one row per measurement
        The index is the item, the column `run` the run it was measured in, the other columns its features.
        Several measurements of an item in one run are averaged.
    X : array of shape (n_measurements, n_units)
    """
    table, item = items_of_runs(features, run=run)
    x = as_vectors(X, n_items=len(features))
    number, runs = pd.factorize(features[run], sort=True)
    if (number < 0).any():
        raise InvalidInput(
            f"The column {run!r} is empty in {int((number < 0).sum())} row(s), first in row "
            f"{int(np.argmin(number))}: name the run of every measurement, or drop these rows."
        )
    if len(runs) < 2:
        raise InvalidInput(f"The column {run!r} has {len(runs)} run: crossnobis needs at least two.")
    counts = np.zeros((len(runs), len(table)))
    np.add.at(counts, (number, item), 1.0)
    if (counts == 0).any():
        r, i = np.argwhere(counts == 0)[0]
        raise InvalidInput(
            f"Item {table.index[i]} was not measured in run {runs[r]}: crossnobis needs every item in each."
        )
    total = np.zeros((len(runs), len(table), x.shape[1]))
    np.add.at(total, (number, item), x)
    return table, total / counts[:, :, None]


def items_of_runs(features: pd.DataFrame, *, run: str) -> tuple[pd.DataFrame, np.ndarray]:
    """One row per item, in order of appearance, without the column of runs; and each measurement's item."""
    if run not in features.columns:
        raise UnknownName.among("column of runs", run, features.columns)
    item, _ = pd.factorize(features.index)
    if (item < 0).any():
        raise InvalidInput(
            f"Row {int(np.argmin(item))} of the features has no item in the index: name the item of each row."
        )
    table = features.drop(columns=run)
    first = np.unique(item, return_index=True)[1]
    if not table.iloc[first[item]].reset_index(drop=True).equals(table.reset_index(drop=True)):
        raise InvalidInput("An item has different features in different runs: give it the same in each.")
    return table.iloc[first], item
