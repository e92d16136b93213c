"""JSON that others wrote: what cannot be read is told in one line."""

from __future__ import annotations

import json

from thinkalike.errors import InvalidInput, one_line
from thinkalike.types import Value


def parse_json(text: str, what: str) -> Value:
    """JSON that others wrote; what cannot be read, or could not be written again, is told in one line."""
    try:
        value = json.loads(text, object_pairs_hook=_named_once)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise InvalidInput(
            f"{what} has brackets within brackets, too deep to read: write it flatter."
        ) from error
    except ValueError as error:  # no JSON, numbers of thousands of digits, halves of characters
        raise InvalidInput(
            f"{what} is not JSON ({getattr(error, 'msg', None) or one_line(error)})."
        ) from error
    return value


def _named_once(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for k, (name, _) in enumerate(pairs) if name in dict(pairs[:k]))
        raise ValueError(f"{twice!r} stands there twice")
    return found
