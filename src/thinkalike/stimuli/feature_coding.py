"""Columns of a table as level codes, by the kind that their dtype declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.stimuli.differences import CodedFeature, FeatureDifferences, share_differing

KINDS = ("nominal", "ordinal", "numeric")
ORDERED = ("indicator", "minmax")
MISSING = ("ignore", "level")
MANY_ITEMS = 10  # fewer may all differ by accident


def code_features(
    features: pd.DataFrame,
    *,
    ordered: str = "indicator",
    missing: str = "ignore",
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> FeatureDifferences:
    """Code a table of features, one row per item; a column's dtype is its kind.

    Parameters
    ----------
    ordered : {"indicator", "minmax"}
        Ordinal and numeric features: whether two values differ, or by how much of the feature's range. The
        range of an ordinal feature is its declared categories, one step each; of a numeric one, its smallest
        to largest value.
    missing : {"ignore", "level"}
    ranges : mapping of name to (smallest, largest), optional
        The ranges of numeric features, to code new items on the scale of earlier ones.
    """
    if ordered not in ORDERED:
        raise UnknownName.among("difference of ordered features", ordered, ORDERED)
    if missing not in MISSING:
        raise UnknownName.among("treatment of missing values", missing, MISSING)
    if not isinstance(features, pd.DataFrame):
        raise InvalidInput(
            f"Got features as {type(features).__name__}: give a DataFrame, a column per feature."
        )
    if features.shape[1] == 0:
        raise InvalidInput(
            f"Got 0 feature(s) (shape={features.shape}) while a minimum of 1 is required: give some columns."
        )
    duplicated = features.columns[features.columns.duplicated()]
    if len(duplicated):
        raise InvalidInput(
            f"The feature {duplicated[0]!r} comes more than once: give every column its own name."
        )
    known = dict(ranges or {})
    coded = []
    for name in features.columns:
        coded.append(_code(features[name], ordered, missing, known))
    return FeatureDifferences(tuple(coded), ordered, missing, len(features), known)


def kind_of(column: pd.Series) -> str:
    """The kind that a column's dtype declares: one of `KINDS`."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "ordinal" if dtype.ordered else "nominal"
    if pd.api.types.is_bool_dtype(dtype):
        return "nominal"
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return "numeric"
    if pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype):
        return "nominal"
    if pd.api.types.is_complex_dtype(dtype):
        raise InvalidInput(f"Complex data not supported: give real numbers in {column.name!r}.")
    raise InvalidInput(
        f"The feature {column.name!r} is of type {dtype}: give categories, strings, booleans or numbers."
    )


def _code(
    column: pd.Series, ordered: str, missing: str, ranges: dict[str, tuple[float, float]]
) -> CodedFeature:
    name, kind = str(column.name), kind_of(column)
    if kind == "numeric":
        column = pd.Series(column.to_numpy(dtype=float, na_value=np.nan), column.index, name=column.name)
        if np.isinf(column.to_numpy()).any():
            row = column.index[np.isinf(column.to_numpy())][0]
            raise InvalidInput(
                f"The feature {name!r} is infinite at item {row!r}: give finite numbers or NaN."
            )
    codes, levels = pd.factorize(column, sort=kind != "nominal", use_na_sentinel=True)
    values: list[object] = list(levels)
    places = None
    if ordered == "minmax" and kind != "nominal":
        places = _places(column, kind, np.asarray(levels), ranges)
    present = np.ones(len(values), dtype=bool)
    if (codes < 0).any():
        codes = np.where(codes < 0, len(values), codes)
        values, present = [*values, None], np.append(present, False)
        places = None if places is None else np.append(places, 0.0)
    labels = np.empty(len(values), dtype=object)
    labels[:] = values
    return CodedFeature(name, kind, codes.astype(np.int64), labels, present, places, missing == "level")


def _places(
    column: pd.Series, kind: str, levels: np.ndarray, ranges: dict[str, tuple[float, float]]
) -> np.ndarray:
    name = str(column.name)
    if kind == "ordinal":
        at = column.cat.categories.get_indexer(pd.Index(levels)).astype(float)
        low, high = 0.0, float(len(column.cat.categories) - 1)
    else:
        at = levels.astype(float)
        observed = (float(at.min()), float(at.max())) if len(at) else (0.0, 0.0)
        low, high = ranges.setdefault(name, observed)
    return (at - low) / (high - low) if high > low else np.zeros(len(at))


def constant_among(coded: FeatureDifferences) -> tuple[str, ...]:
    """The coded features in which no two items differ."""
    return tuple(f.name for f in coded.features if not f.varies)


def require_variation(features: Sequence[CodedFeature]) -> None:
    """Raise for features in which no two items differ, or all do: neither says which items are alike."""
    constant = [f.name for f in features if not f.varies]
    if len(constant) == 1:
        raise InvalidInput(
            f"The feature {constant[0]!r} has one level, so no pair of items differs in it: drop the column, "
            "or add items that differ."
        )
    if constant:
        raise InvalidInput(
            f"The features {', '.join(map(repr, constant))} have one level, so no pair of items differs in "
            "them: drop the columns, or add items that differ."
        )
    for f in features:
        if len(f.codes) >= MANY_ITEMS and share_differing(f) == 1.0:
            way_out = (
                "it looks like an id: drop the column, or name it as columns={'item': …}"
                if f.kind == "nominal"
                else "let the size of the difference count, ordered='minmax' (--ordered minmax), or drop it"
            )
            raise InvalidInput(
                f"The feature {f.name!r} is different in every pair of items, so it says nothing about which "
                f"are alike: {way_out}."
            )
