"""Tables and JSON on disk: whole or not at all, the same bytes for the same content."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from thinkalike.errors import StoreError
from thinkalike.labels import Floats


def write_table(frame: pd.DataFrame, path: Path, *, csv: bool = True) -> None:
    """`path`.parquet and, unless it is too long to be read by people, `path`.csv."""
    plain = frame.copy()
    for name in plain.columns:
        if plain[name].dtype == object and len({type(value) for value in plain[name]}) > 1:
            plain[name] = plain[name].astype(str)  # layers may be numbers in one system and names in another
    _replace(path.with_name(path.name + ".parquet"), lambda file: plain.to_parquet(file, index=False))
    if csv:
        _replace(path.with_name(path.name + ".csv"), lambda file: plain.to_csv(file, index=False))


def read_parquet(path: Path) -> pd.DataFrame:
    """The table at `path`.parquet."""
    try:
        return pd.read_parquet(path.with_name(path.name + ".parquet"))
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}.parquet cannot be read ({error}): run the comparison again.") from error


def write_json(content: Mapping[str, Any], path: Path) -> None:
    """Plain values with indentation; NaN becomes null."""
    text = json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    _replace(path, lambda file: file.write_text(text, encoding="utf-8"))


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read ({error}): run the comparison again.") from error
    if not isinstance(content, dict):
        raise StoreError(f"{path} is not what was written there: run the comparison again.")
    return content


def file_name(name: str) -> str:
    """A name for a file that a system's name gives, different for different systems."""
    clean = re.sub(r"[^\w.@-]+", "-", name).strip("-.")[:60]
    return (
        clean if clean and clean == name else f"{clean or 'system'}-{sha256(name.encode()).hexdigest()[:8]}"
    )


def numbers(values: Sequence[Any]) -> Floats:
    """An array from nested lists in which null stands for NaN."""
    return np.array(values, dtype=np.float64)


def plain(value: Any) -> Any:
    """Tuples as lists, NumPy as Python, NaN and infinities as None."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(unfinished)
        os.replace(unfinished, path)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written ({error}): free some space or choose another folder."
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
