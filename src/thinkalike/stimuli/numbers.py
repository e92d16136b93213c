"""What counts as a number in a cell of a table."""

from __future__ import annotations

import re
from numbers import Number

import numpy as np

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
