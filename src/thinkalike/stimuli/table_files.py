"""Tables on disk: CSV, TSV and Parquet, with the kinds of the features inside the file; JSON lines, datasets.

A text file that we write starts with one line, `# kinds: {"gender": "nominal", "size": ["small", "large"]}`:
what `from_table(kinds=...)` takes. Parquet carries the same JSON in its schema metadata. Files without it are
read too.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pandas as pd

from thinkalike.addresses import place, reaching
from thinkalike.errors import InvalidInput, MissingExtra, UnknownName, one_line
from thinkalike.files import MARK, read_sealed, write_text
from thinkalike.files import write_table as write_parquet
from thinkalike.foreign_json import parse_json
from thinkalike.stimuli.kinds import KINDS, Kind
from thinkalike.types import Value

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
SUFFIXES = (*_DELIMITERS, ".parquet")
_KINDS_LINE = "# kinds:"
_METADATA_KEY = "thinkalike.kinds"
MISSING_CELLS = frozenset({"", "NA", "NaN", "nan"})
"""Cells of a foreign text file that mean "no value"."""


@dataclass(frozen=True)
class RawTable:
    """A table as it came, before its columns have roles and kinds."""

    frame: pd.DataFrame
    source: str = ""
    kinds: dict[str, Kind] | None = None
    """What the file itself declares; None when it declares nothing."""
    lines: list[int] | None = field(default=None, repr=False)
    """The line of the file that each row ends on, for text files."""
    missing_cells: frozenset[str] = frozenset()
    """The strings that mean "no value" in a feature column."""

    @property
    def untyped(self) -> bool:
        """Whether all cells are strings because the file has no types."""
        return self.lines is not None

    def place(self, row: int | None = None) -> str:
        """Where a row stands, or the header when it is None, for error messages."""
        if row is None:
            header = f", line {1 + (self.kinds is not None)}" if self.lines is not None else ""
            return f"{self.source}{header}" if self.source else "The table"
        where = f"line {self.lines[row]}" if self.lines is not None else f"row {row}"
        return f"{self.source}, {where}" if self.source else where


def read_table(path: str | os.PathLike[str]) -> RawTable:
    """Read a table; the suffix of the file says its format."""
    path = place(path)
    with reaching(path):
        return _read(path)


def _read(path: Path) -> RawTable:
    if is_dataset(path):
        return _filled(RawTable(read_dataset(path), str(path)))
    if not path.is_file():
        read = ", ".join((*SUFFIXES, JSON_LINES[0]))
        raise InvalidInput(
            f"There is no file {path}: give the path of a {read} file, or of a dataset's folder."
        )
    if path.stat().st_size == 0:
        raise InvalidInput(f"{path}, line 1: the file is empty; a header and at least one row were expected.")
    if path.suffix.lower() == ARROW:
        return _filled(RawTable(read_dataset(path), str(path)))
    if path.suffix.lower() in JSON_LINES:
        return _filled(RawTable(read_json_lines(path), str(path)))
    table = (
        _read_parquet(path) if _suffix(path) == ".parquet" else _read_text(path, _DELIMITERS[_suffix(path)])
    )
    if len(table.frame) == 0:
        raise InvalidInput(
            f"{path}, line {1 + (table.kinds is not None)}: there is a header but no row below it."
        )
    return table


def _filled(table: RawTable) -> RawTable:
    if not len(table.frame):
        raise InvalidInput(f"{table.source} holds no rows.")
    return table


def write_table(
    frame: pd.DataFrame, kinds: Mapping[str, str | list[str]], path: str | os.PathLike[str]
) -> Path:
    """Write `frame` and the kinds of its feature columns; readers see the whole file or none."""
    path, declared = place(path), json.dumps(kinds, ensure_ascii=False)
    if _suffix(path) == ".parquet":
        write_parquet(frame, path, words={_METADATA_KEY: declared})
    else:
        _write_text(frame, declared, path, _DELIMITERS[_suffix(path)])
    return path


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidInput(
            f"{path} ends in {suffix or 'nothing'!r}: tables are read and written as {', '.join(SUFFIXES)}."
        )
    return suffix


def _read_text(path: Path, delimiter: str) -> RawTable:
    """Cells stay strings: a word "null" and an id "1.10" must survive."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            kinds = (
                _declared(first.removeprefix(_KINDS_LINE), f"{path}, line 1") if _is_kinds(first) else None
            )
            if kinds is None:
                file.seek(0)
            offset = 0 if kinds is None else 1
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            header = next(reader, None)
            if not header:
                raise InvalidInput(
                    f"{path}, line {1 + offset}: there is no header; the names of the columns were expected."
                )
            _check_delimiter(header, delimiter, f"{path}, line {1 + offset}")
            rows, lines = _rows(reader, len(header), lambda line: f"{path}, line {line + offset}")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text ({error.reason}): save it as UTF-8.") from error
    except csv.Error as error:
        raise InvalidInput(
            f"{path}, line {reader.line_num + offset}: not a well-formed table ({error})."
        ) from error
    # In a file of our own only an empty cell is a missing value, so that a level named "NA" comes back.
    missing = MISSING_CELLS if kinds is None else frozenset({""})
    frame = pd.DataFrame(rows, columns=header, dtype=object)
    return RawTable(frame, str(path), kinds, [line + offset for line in lines], missing)


def _is_kinds(line: str) -> bool:
    return line.startswith(_KINDS_LINE)


def _check_delimiter(header: list[str], delimiter: str, place: str) -> None:
    """Refuse a table whose one column looks like several with another mark between them."""
    other = next((mark for mark in ",;\t|" if mark in header[0]), None)
    if len(header) == 1 and other is not None:
        raise InvalidInput(
            f"{place}: there is one column, {header[0]!r}: its cells seem to be separated by {other!r}, and "
            f"{delimiter!r} was expected. Export it as .csv with commas, or as .tsv with tabs."
        )


class _Reader(Protocol):
    """What `csv.reader` gives, whose type has no public name."""

    @property
    def line_num(self) -> int: ...
    def __iter__(self) -> Iterator[list[str]]: ...


def _rows(reader: _Reader, width: int, place: Callable[[int], str]) -> tuple[list[list[str]], list[int]]:
    rows, lines = [], []
    for row in reader:
        if not row:  # a blank line
            continue
        if len(row) != width:
            raise InvalidInput(
                f"{place(reader.line_num)}: {len(row)} cells, but the header names {width} columns."
            )
        rows.append(row)
        lines.append(reader.line_num)
    return rows, lines


def _declared(text: str, place: str) -> dict[str, Kind]:
    kinds = parse_json(text, f"{place}: the declaration of kinds")
    if not isinstance(kinds, dict) or not all(isinstance(kind, (str, list)) for kind in kinds.values()):
        raise InvalidInput(
            f'{place}: kinds are declared as {{"feature": "nominal", "other": ["low", "high"]}}.'
        )
    for kind in kinds.values():
        if isinstance(kind, str) and kind not in KINDS:
            raise UnknownName(f"{place}: {UnknownName.among('kind of feature', kind, KINDS)}")
    return kinds


def _read_parquet(path: Path) -> RawTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        data = path.read_bytes()
        if MARK in data:  # a file of ours
            data = read_sealed(path, way_out="make it anew, or copy it again")
        table = pq.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"{path} is not a readable Parquet file: {one_line(error)}.") from error
    declared = (table.schema.metadata or {}).get(_METADATA_KEY.encode())
    kinds = None if declared is None else _declared(declared.decode(), f"{path}, schema metadata")
    return RawTable(table.to_pandas(), str(path), kinds)


def _write_text(frame: pd.DataFrame, kinds: str, path: Path, delimiter: str) -> None:
    text = frame.to_csv(sep=delimiter, index=False, lineterminator="\n")
    if "\r" in text:  # which readers take for the end of a line unless it is quoted
        text = frame.to_csv(sep=delimiter, index=False, lineterminator="\n", quoting=csv.QUOTE_ALL)
    write_text(f"{_KINDS_LINE} {kinds}\n{text}", path)


JSON_LINES = (".jsonl", ".ndjson")
DATASET = ("state.json", "dataset_dict.json")
"""What a folder holds that `save_to_disk` of the library wrote: one split, or several"""
ARROW = ".arrow"
"""Of a split in the cache of the library"""


def read_json_lines(path: Path) -> pd.DataFrame:
    """One row per line, each a JSON object; what an object lacks is missing."""
    rows = []
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    rows.append(_row(line, f"{path}, line {number}"))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text ({error.reason}): save it as UTF-8.") from error
    return pd.DataFrame(rows)


def _row(line: str, place: str) -> dict[str, Value]:
    row = parse_json(line, f"{place}: this")
    if not isinstance(row, dict):
        raise InvalidInput(f'{place}: one object per line was expected, as {{"text": "…", "tense": "past"}}.')
    nested = next((name for name, value in row.items() if isinstance(value, (list, dict))), None)
    if nested is not None:
        raise InvalidInput(f"{place}: {nested!r} holds several values; one per row was expected.")
    return row


def is_dataset(path: Path) -> bool:
    """Whether this is a folder that `Dataset.save_to_disk` wrote."""
    return path.is_dir() and any((path / name).is_file() for name in DATASET)


def read_dataset(path: Path) -> pd.DataFrame:
    """The rows of a dataset in a folder, of which one split is to be named, or of a file of the cache."""
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra.needed("datasets", "datasets") from error
    try:
        is_file = path.suffix.lower() == ARROW
        found = datasets.Dataset.from_file(str(path)) if is_file else datasets.load_from_disk(str(path))
    except Exception as error:  # of Arrow, of the library, of the system
        raise InvalidInput(f"{path} is not a readable dataset: {one_line(error)}.") from error
    if isinstance(found, dict):
        splits = ", ".join(str(path / split) for split in found)
        raise InvalidInput(f"{path} holds several splits: give one of them, {splits}.")
    return rows_of(found)


class Tabular(Protocol):
    """A dataset that is loaded, of the library of that name or another."""

    def to_pandas(self) -> pd.DataFrame: ...


def rows_of(dataset: Tabular) -> pd.DataFrame:
    """The rows of a dataset that is loaded; of several splits, one is to be given."""
    if isinstance(dataset, dict):
        raise InvalidInput(f"The dataset has the splits {', '.join(map(str, dataset))}: give one of them.")
    return pd.DataFrame(dataset.to_pandas())
