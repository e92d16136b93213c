"""What kind of thing a feature is: nominal, ordinal or numeric, told by the dtype of its column.

| kind | dtype | levels |
|---|---|---|
| nominal | unordered categorical | strings, sorted, only those that occur |
| ordinal | ordered categorical | strings, in the declared order, all of them |
| numeric | float64 | none |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from numbers import Number

import numpy as np
import pandas as pd

from thinkalike.errors import InvalidInput, UnknownName

KINDS = ("nominal", "ordinal", "numeric")

Kind = str | Sequence[object]
"""A name from `KINDS`, or the levels of an ordinal feature from lowest to highest."""

Place = Callable[[int | None], str]
"""Row number → where that row stands, and None → where the header stands, for error messages."""


def kind_of(column: pd.Series) -> str:
    """The kind that the dtype of a feature column says."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "ordinal" if column.dtype.ordered else "nominal"
    return "numeric"


def declaration(column: pd.Series) -> str | list[str]:
    """The kind of a feature column in a form that `as_feature` takes back: ordinal gives its levels."""
    kind = kind_of(column)
    return list(column.cat.categories) if kind == "ordinal" else kind


def parse_kinds(texts: Sequence[str]) -> dict[str, Kind]:
    """Kinds as one writes them on a command line: `age=numeric`, `person=nominal`, `size=small,large`.

    After the sign stands a name from `KINDS`, or the levels of an ordinal feature from lowest to highest.
    """
    kinds: dict[str, Kind] = {}
    for text in texts:
        name, sign, kind = (part.strip() for part in text.rpartition("="))
        if not (sign and name and kind):
            raise InvalidInput(f"{text!r} declares no kind: write NAME=nominal, NAME=numeric, NAME=low,high.")
        levels = [level.strip() for level in kind.split(",")]
        if len(levels) == 1 and kind not in KINDS:
            raise UnknownName(f"{text!r}: {UnknownName.among('kind of feature', kind, KINDS)}")
        if kinds.setdefault(name, kind if len(levels) == 1 else levels) not in (kind, levels):
            raise InvalidInput(f"{name!r} is declared twice, as {kinds[name]!r} and as {kind!r}: give one.")
    return kinds


def as_feature(column: pd.Series, kind: Kind | None, place: Place, *, untyped: bool = False) -> pd.Series:
    """The column with the dtype of its kind.

    Parameters
    ----------
    column : any values; missing ones are None or NaN.
    kind : declared kind; None infers it: ordered categories are ordinal, numbers numeric, all else nominal.
        A column in which most values are numbers but not all is an error.
    place : where things stand, for error messages ("words.csv, line 7").
    untyped : whether everything is a string, as in a text file, so that "3" may be meant as a number.
    """
    check_cells(column, place)
    if kind is None:
        kind = _inferred_kind(column, place, untyped=untyped)
    if not isinstance(kind, str):
        return _ordinal(column, [level_name(level) for level in kind], place)
    if kind == "nominal":
        return _categorical(column, sorted(set(_names(column).dropna())), place, ordered=False)
    if kind == "ordinal":
        return _ordinal(column, _natural_levels(column, place), place)
    if kind == "numeric":
        return _numeric(column, place)
    raise UnknownName(f"{place(None)}: {UnknownName.among('kind of feature', kind, KINDS)}")


def level_name(value: object) -> str:
    """The name of a level: `3`, `3.0` and "3" are one level, and so are `True` and "True"."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def check_cells(column: pd.Series, place: Place) -> None:
    """Every cell holds one value, and one that can be compared."""
    if pd.api.types.is_complex_dtype(column.dtype):
        raise InvalidInput(f"{place(None)}: {column.name!r} has complex numbers: give real ones.")
    if column.dtype != object:
        return
    for row, value in enumerate(column):
        if isinstance(value, bytes) or not pd.api.types.is_scalar(value):
            raise InvalidInput(
                f"{place(row)}: {column.name!r} holds a value of type {type(value).__name__}; a string or a "
                f"number was expected: make columns of its parts, or leave it out, drop=[{column.name!r}]."
            )


def _inferred_kind(column: pd.Series, place: Place, *, untyped: bool) -> Kind:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return list(column.cat.categories) if column.dtype.ordered else "nominal"
    if pd.api.types.is_bool_dtype(column.dtype):
        return "nominal"
    if pd.api.types.is_numeric_dtype(column.dtype):
        return "numeric"
    values = {row: value for row, value in enumerate(column) if not pd.isna(value)}
    if not values or any(isinstance(value, (bool, np.bool_)) for value in values.values()):
        return "nominal"
    is_plain = is_written_number if untyped else is_number
    strange = {row: value for row, value in values.items() if not is_plain(value)}
    meant = len(values) - len(strange) + sum(untyped and is_nearly_number(v) for v in strange.values())
    if 2 * meant <= len(values):
        return "nominal"
    if strange:
        raise _mixed(column, strange, place)
    return "numeric"


def _mixed(column: pd.Series, strange: dict[int, object], place: Place) -> InvalidInput:
    row = min(strange)
    others = [repr(text) for text in dict.fromkeys(map(str, strange.values())) if text != str(strange[row])]
    too = f" (nor {'is' if len(others) == 1 else 'are'} {first_few(others, 3)})" if others else ""
    return InvalidInput(
        f"{place(row)}: {str(strange[row])!r} is no finite number, as most of {column.name!r} are{too}. "
        "Write 1.5 for 1,5 and leave a cell empty where there is no value; or, if these are labels, "
        f"{_nominal(column)}."
    )


def _nominal(column: pd.Series) -> str:
    return f"declare the feature nominal, kinds={{{column.name!r}: 'nominal'}} (--kind {column.name}=nominal)"


def _names(column: pd.Series) -> pd.Series:
    """The level names of a column as objects; missing values stay missing."""
    codes, values = pd.factorize(column, use_na_sentinel=True)
    names = np.array([*(level_name(value) for value in values), None], dtype=object)
    return pd.Series(names[codes], index=column.index, name=column.name, dtype=object)


def _natural_levels(column: pd.Series, place: Place) -> list[str]:
    """The levels of an ordinal feature that was declared without them; only numbers have a natural order."""
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        return [level_name(level) for level in column.cat.categories]
    names = sorted(set(_names(column).dropna()))
    numbers = [as_number(name) for name in names]
    if not np.isfinite(numbers).all():
        raise InvalidInput(
            f"{place(None)}: feature {column.name!r} is ordinal, but its levels ({first_few(names)}) have "
            f"no order: declare them from lowest to highest, kinds={{{column.name!r}: [{names[0]!r}, …]}}."
        )
    return [names[i] for i in np.argsort(numbers, kind="stable")]


def _ordinal(column: pd.Series, levels: list[str], place: Place) -> pd.Series:
    if len(set(levels)) < len(levels):
        raise InvalidInput(
            f"{place(None)}: the levels of feature {column.name!r} repeat: {first_few(levels)}."
        )
    names = _names(column)
    strange = np.flatnonzero(names.notna().to_numpy() & ~names.isin(levels).to_numpy())
    if strange.size:
        row = int(strange[0])
        raise InvalidInput(
            f"{place(row)}: {names.iloc[row]!r} is no level of the ordinal feature {column.name!r}, "
            f"whose declared levels are {first_few(levels)}."
        )
    return _categorical(column, levels, place, ordered=True)


def _categorical(column: pd.Series, levels: list[str], place: Place, *, ordered: bool) -> pd.Series:
    if "" in levels:
        raise InvalidInput(f"{place(None)}: feature {column.name!r} has a level with an empty name: name it.")
    values = pd.Categorical(_names(column), categories=pd.Index(levels, dtype=object), ordered=ordered)
    return pd.Series(values, index=column.index, name=column.name)


def _numeric(column: pd.Series, place: Place) -> pd.Series:
    given = column.astype(object)
    for row, value in enumerate(given) if not pd.api.types.is_float_dtype(column.dtype) else ():
        if loses_digits(value):
            raise InvalidInput(
                f"{place(row)}: {value} in {column.name!r} has more digits than numbers keep here, and would "
                f"be taken for its neighbours. If it is a label, {_nominal(column)}, or leave it out: drop=."
            )
    if pd.api.types.is_numeric_dtype(column.dtype):
        values = column.astype(np.float64)
    else:
        values = pd.Series([as_number(value) for value in given], column.index, np.float64)
    strange = np.flatnonzero(column.notna().to_numpy() & ~np.isfinite(values.to_numpy()))
    if strange.size:
        row = int(strange[0])
        raise InvalidInput(
            f"{place(row)}: feature {column.name!r} is numeric but the value is "
            f"{level_name(column.iloc[row])!r}: give a finite number or none, or {_nominal(column)}."
        )
    values.name = column.name
    return values


def first_few(names: Sequence[str], most: int = 8) -> str:
    """Names with commas between them, the first few when they are many."""
    shown = ", ".join(names[:most])
    return f"{shown}, … ({len(names)} in all)" if len(names) > most else shown


_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_NEARLY = re.compile(
    r"[+-]?(inf|infinity|\d+,\d+|\d{1,3}([., ']\d{3})*[.,]\d+|\d+(\.\d+)?%)", re.ASCII | re.IGNORECASE
)


def as_number(value: object) -> float:
    """The value as a float; NaN when it is none, also for strings that only Python reads as one (`1_000`)."""
    if isinstance(value, str) and not _PLAIN.fullmatch(value.strip()):
        return np.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return np.nan
    except OverflowError:
        return np.inf


def is_number(value: object) -> bool:
    """A finite number that is not written as a string."""
    return isinstance(value, Number) and bool(np.isfinite(as_number(value)))


def is_written_number(text: str) -> bool:
    """A finite number as one writes it: digits, at most one point, an exponent."""
    return bool(_PLAIN.fullmatch(text)) and bool(np.isfinite(as_number(text)))


def is_nearly_number(text: str) -> bool:
    """Written by somebody who meant a number, though it is none here: `inf`, `1e400`, `1,5`, `50%`."""
    return bool(_PLAIN.fullmatch(text) or _NEARLY.fullmatch(text)) and not is_written_number(text)


def loses_digits(value: object) -> bool:
    """Whether a whole number is so large that as a float it is another one: beyond ±2^53."""
    try:
        exact = int(value)  # type: ignore[call-overload]
        return int(float(exact)) != exact
    except (TypeError, ValueError, OverflowError):
        return False
