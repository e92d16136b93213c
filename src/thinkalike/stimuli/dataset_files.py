"""Rows from elsewhere: JSON lines, and datasets of Hugging Face in a folder or in the library's cache."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pandas as pd

from thinkalike.errors import InvalidInput, MissingExtra, one_line
from thinkalike.foreign_json import parse_json
from thinkalike.types import Value

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
