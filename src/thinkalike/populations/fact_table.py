"""Facts about models as features of items: what kind each has, which are alike, which say nothing."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.labels import Floats
from thinkalike.pairs.pairset import Pairs
from thinkalike.stimuli.differences import FeatureDifferences
from thinkalike.stimuli.feature_coding import code_features
from thinkalike.stimuli.roles import keyed_table
from thinkalike.stimuli.table_files import read_table

TOGETHER = 0.8
"""Facts whose differences correlate at least so much over pairs of models are one group"""
WIDE = 10.0
"""Positive numbers whose largest is so many times the smallest are taken as their logarithm"""


@dataclass(frozen=True, eq=False)
class FactTable:
    """Facts in computable form.

    Attributes
    ----------
    features : DataFrame (n_models, n_facts), numbers or unordered categories
    columns : (n_pairs, n_facts) squared differences, each between 0 and 1
    places : of each fact columns (n_models, n_columns): the number itself, or 1 where a model has a level
    left_out : fact → why it says nothing here
    """

    features: pd.DataFrame
    coded: FeatureDifferences
    columns: Floats = field(repr=False)
    places: tuple[Floats, ...] = field(repr=False)
    left_out: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        return self.coded.names


def read_facts(path: str | os.PathLike[str]) -> pd.DataFrame:
    """A table of facts from a file, the first column of which names the models."""
    return keyed_table(read_table(path)).astype(object)


def fact_table(facts: pd.DataFrame) -> FactTable:
    """Facts of models (rows) that differ among them, logarithms of sizes taken."""
    columns: dict[str, pd.Series] = {}
    left_out: dict[str, str] = {}
    for name in map(str, facts.columns):
        column = facts[name]
        known = column.dropna()
        if known.nunique() < 2 or len(known) < len(column):
            short = len(known) < len(column)
            left_out[name] = "not known of every model" if short else "the same in all models"
            continue
        numbers = pd.to_numeric(known, errors="coerce")
        if numbers.notna().all() and not known.map(lambda v: isinstance(v, (bool, np.bool_))).any():
            wide = numbers.min() > 0 and numbers.max() / numbers.min() >= WIDE
            numbers = numbers.astype(float)
            columns[name] = numbers.map(math.log10) if wide else numbers
        elif known.nunique() == len(known):
            left_out[name] = "different in every model"
        else:
            columns[name] = known.astype(str).astype("category")
    if not columns:
        raise InvalidInput(
            "No fact is known of every model and differs among them: give a table of facts, one row a model."
        )
    features = pd.DataFrame(columns, index=facts.index)
    coded = code_features(features, ordered="minmax")
    pairs = Pairs.of(len(facts))
    squared = np.stack([f.squared_differences(pairs.i, pairs.j) for f in coded.features], axis=1)
    places = tuple(_places(features[name]) for name in features)
    return FactTable(features, coded, squared.astype(np.float64), places, left_out)


def _places(column: pd.Series) -> Floats:
    if pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(np.float64)
        return ((values - values.mean()) / values.std())[:, None]
    codes, levels = pd.factorize(column)
    return np.eye(len(levels))[codes]


def group_facts(
    table: FactTable, groups: Mapping[str, Sequence[str]] | None = None, *, together: float = TOGETHER
) -> dict[str, tuple[str, ...]]:
    """Group → facts: those given and the rest one by one; when None, facts that go together as one."""
    if groups is not None:
        for fact in (fact for facts in groups.values() for fact in facts):
            if fact not in table.names:
                raise UnknownName.among("fact that differs among these models", fact, table.names)
        taken = {fact for facts in groups.values() for fact in facts}
        return {
            **{name: tuple(facts) for name, facts in groups.items()},
            **{fact: (fact,) for fact in table.names if fact not in taken},
        }
    if len(table.names) == 1:
        return {table.names[0]: table.names}
    apart = 1 - np.abs(np.corrcoef(table.columns.T))
    np.fill_diagonal(apart, 0.0)
    labels = fcluster(linkage(squareform(apart, checks=False), "average"), 1 - together, "distance")
    found = [
        tuple(n for n, label in zip(table.names, labels, strict=True) if label == k) for k in set(labels)
    ]
    return {" + ".join(facts): facts for facts in sorted(found, key=lambda g: table.names.index(g[0]))}
