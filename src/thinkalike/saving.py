"""Results that are kept: one file that holds all of a result, sealed, and its table for people beside it.

A result is a frozen dataclass over arrays, tables and plain values. The file is an .npz of its arrays, and of
words that say where they belong; nothing in it is run, and whatever is not exactly such a result is refused.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from inspect import isfunction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from thinkalike.addresses import place
from thinkalike.files import read_arrays, reading, write_arrays, write_json, write_tables
from thinkalike.provenance import versions
from thinkalike.types import Json, Value

if TYPE_CHECKING:
    import pandas as pd

SUFFIX = ".npz"
RESULT = "result.npz"
"""All of a result, in the folder of its tables"""
FORMAT = 1

Result = TypeVar("Result", bound="Kept")


class Kept(ABC):
    """What gives a result `save` and `load`: a frozen dataclass with `to_frame` inherits from it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> @dataclass(frozen=True, eq=False)
    ... class Shares(Kept):
    ...     of: dict[str, np.ndarray]
    ...     def to_frame(self) -> pd.DataFrame:
    ...         return pd.DataFrame(self.of)
    >>> with TemporaryDirectory() as folder:
    ...     path = Shares({"tense": np.array([0.5, np.nan])}).save(Path(folder, "shares"))
    ...     Shares.load(path).of["tense"].tolist(), sorted(p.name for p in Path(folder).iterdir())
    ([0.5, nan], ['shares.csv', 'shares.npz', 'shares.parquet'])
    """

    again: ClassVar[str] = "compute it again"
    """The way out when the file is damaged"""
    records: ClassVar[Mapping[str, type]] = {}
    """Fields that are dataclasses of plain values, such as settings, and of what kind each is"""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """The table for people."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write all of it to `path`.npz, for `load`, and its table to `path`.parquet and `path`.csv."""
        path = place(path)
        write_tables(self.to_frame(), path)
        write_result(self, path.with_name(path.name + SUFFIX))
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """What `save` wrote."""
        path = place(path)
        return read_result(cls, path.with_name(path.name + SUFFIX))


class KeptFolder(Kept):
    """The same for a result of several tables: a folder of them, with settings.json and all of it."""

    @abstractmethod
    def _tables(self) -> dict[str, pd.DataFrame]:
        """Name → table, as they lie in the folder."""

    @abstractmethod
    def _about(self) -> Json:
        """What settings.json says of it, beside the seals."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write its tables as Parquet and CSV, settings.json, and all of it for `load`, into the folder."""
        folder = place(path)
        seals = {name: write_tables(table, folder / name) for name, table in self._tables().items()}
        about = {"tables": seals, **self._about(), "result": write_result(self, folder / RESULT)}
        write_json(about, folder / "settings.json")
        return folder

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """What `save` wrote."""
        return read_result(cls, place(path) / RESULT)


def write_result(result: Kept, file: Path) -> str:
    """Write all fields of a result to one sealed file; returns the seal."""
    arrays: dict[str, np.ndarray] = {}
    words = {one.name: _packed(getattr(result, one.name), arrays) for one in fields(result)}  # type: ignore[arg-type]
    about = {"result": type(result).__name__, "format": FORMAT, "fields": words, "versions": versions()}
    return write_arrays(arrays, file, about=about)


def kind_of_result(file: Path) -> str:
    """The name of what `write_result` wrote there."""
    _, about = read_arrays(file, way_out=Kept.again)
    return str(about.get("result"))


def read_result(kind: type[Result], file: Path) -> Result:
    """The result of this kind that `write_result` wrote."""
    arrays, about = read_arrays(file, way_out=kind.again)
    with reading(file, kind.again):
        if about["result"] != kind.__name__ or about["format"] != FORMAT:
            raise ValueError(f"a {about['result']} of format {about['format']}, not a {kind.__name__}")
        names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
        if set(about["fields"]) != names:
            raise ValueError(f"the fields {', '.join(about['fields'])}, not {', '.join(sorted(names))}")
        found = {name: _unpacked(value, arrays) for name, value in about["fields"].items()}
        return kind(**found | {name: record(**found[name]) for name, record in kind.records.items()})


def _packed(value: Value, arrays: dict[str, np.ndarray]) -> Value:
    """Plain values as they are, functions by name; all else as a list whose first word says what it is."""
    import pandas as pd

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else ["float", str(value)]
    if isinstance(value, np.ndarray) and value.dtype != object:
        name = f"a{len(arrays)}"
        arrays[name] = value
        return ["array", name]
    if is_dataclass(value):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    if isfunction(value):
        return value.__qualname__
    if isinstance(value, pd.DataFrame):
        return ["table", [[str(c), _packed(_column(value[c]), arrays)] for c in value.columns]]
    if isinstance(value, Mapping):
        return ["mapping", [[_packed(k, arrays), _packed(v, arrays)] for k, v in value.items()]]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [_packed(one, arrays) for one in value]]
    raise TypeError(f"{type(value).__name__} cannot be kept in a file")


def _column(column: pd.Series) -> Value:
    """Numbers as an array; words, and layers that are words or numbers, as a list."""
    values = column.to_numpy()
    return values if values.dtype.kind in "bif" else [None if one != one else one for one in values.tolist()]


def _unpacked(value: Value, arrays: Mapping[str, np.ndarray]) -> Any:
    import pandas as pd

    if not isinstance(value, list):
        return value
    what, inner = value
    if what == "float":
        return float(inner)
    if what == "array":
        return arrays[inner]
    if what == "table":
        return pd.DataFrame({name: _unpacked(column, arrays) for name, column in inner})
    if what == "mapping":
        return {_unpacked(k, arrays): _unpacked(v, arrays) for k, v in inner}
    if what not in ("list", "tuple"):
        raise ValueError(f"{what!r} is nothing that a result holds")
    made = [_unpacked(one, arrays) for one in inner]
    return tuple(made) if what == "tuple" else made
