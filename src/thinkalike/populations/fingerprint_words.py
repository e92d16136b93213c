"""What a fingerprint says in words, checked when it is written, and again when it comes from a stranger.

Names go to terminals, pages and names of files, facts to tables: each is of one plain kind, and short.
"""

from __future__ import annotations

import json
import math
from typing import Any

from thinkalike.types import Facts, Value

MOST_WORDS = 200_000
"""Characters of all the words"""
MOST_NAME, MOST_TEXT = 200, 1_000
"""Characters of a name, and of a fact"""
MOST_NESTED = 20
LARGEST = 2**53
"""Whole numbers that tables keep exactly"""


def check_words(about: Facts) -> None:
    """ValueError that says what is wrong, if these are not the words of a fingerprint."""
    _check_printable(about)
    if len(json.dumps(about)) > MOST_WORDS:
        raise ValueError(f"more than {MOST_WORDS:,} characters about the numbers")
    _check_name("the name of the system", about["system"])
    _check_layers(about["layers"])
    for group in ("settings", "metadata", "facts"):
        if not isinstance(about[group], dict):
            raise ValueError(f"{group} are a {type(about[group]).__name__}, names and values were expected")
    for fact, value in mapping(about["facts"]).items():
        _check_name("the name of a fact", fact)
        if not _is_fact(value):
            raise ValueError(
                f"the fact {fact!r} is {_short(value)}: one number or a text of at most {MOST_TEXT:,} "
                "characters was expected"
            )
    parts = about["parts"]
    if parts is not None and (isinstance(parts, bool) or not isinstance(parts, int) or parts < 2):
        raise ValueError(f"{_short(parts)} parts of the sentences, two or more were expected")


def mapping(value: Value) -> dict[str, Any]:
    """Names and values; nothing where there are none."""
    return value if isinstance(value, dict) else {}


def _check_printable(value: Value, depth: int = 0) -> None:
    """No control characters anywhere: they could move the cursor of a terminal, or turn a text around."""
    if depth > MOST_NESTED:
        raise ValueError(f"words that are nested more than {MOST_NESTED} times")
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_printable(key, depth + 1)
            _check_printable(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check_printable(inner, depth + 1)
    elif isinstance(value, str) and not value.isprintable():
        raise ValueError("words with control characters")


def _check_name(what: str, name: Value) -> None:
    if not isinstance(name, str) or not name.strip() or len(name) > MOST_NAME:
        raise ValueError(f"{what} is {_short(name)}: 1 to {MOST_NAME} characters were expected")


def _check_layers(layers: Value) -> None:
    if not isinstance(layers, list) or not layers:
        raise ValueError(f"its layers are {_short(layers)}: a list of one or more was expected")
    for layer in layers:
        whole = isinstance(layer, int) and not isinstance(layer, bool) and 0 <= layer < LARGEST
        if not whole and not (isinstance(layer, str) and layer.strip() and len(layer) <= MOST_NAME):
            raise ValueError(f"{_short(layer)} names no layer")
    if len(set(map(str, layers))) < len(layers):
        raise ValueError("two layers of one name")


def _is_fact(value: Value) -> bool:
    if isinstance(value, str):
        return len(value) <= MOST_TEXT
    if isinstance(value, int):  # also true and false
        return abs(value) <= LARGEST
    return value is None or (isinstance(value, float) and math.isfinite(value))


def _short(value: Value) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
