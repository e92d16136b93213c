"""Words and the text they stand in: every item of a sentence is a span of characters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from thinkalike.errors import InvalidInput


def join(words: Sequence[str]) -> tuple[str, list[int]]:
    """The words with single spaces between them, and where each starts."""
    starts, position = [], 0
    for word in words:
        starts.append(position)
        position += len(word) + 1
    return " ".join(words), starts


def locate(words: Sequence[str], text: str) -> list[int]:
    """Where each of the `words` starts in `text`, given that they stand there in this order.

    Words that make up the whole text (but for spaces) are placed one after the other. When they are only some
    of its words, each must be a whole word, and there must be one way only to place them: the leftmost
    placement and the rightmost one agree. Otherwise an `InvalidInput` says which word cannot be placed.
    """
    if "".join("".join(words).split()) == "".join(text.split()):
        return _placed_in_full(words, text)
    first = _placed_leftmost(words, text)
    last = _placed_rightmost(words, text)
    for word, left, right in zip(words, first, last, strict=True):
        if left != right:
            raise InvalidInput(
                f"the word {word!r} can stand in several places of {text!r}: add columns 'start' and 'end'"
            )
    return first


def goes_on(words: Sequence[str], word: str, text: str) -> bool:
    """Whether `word` can stand in `text` after the `words` before it."""
    together = [*words, word]
    if "".join(text.split()).startswith("".join("".join(together).split())):
        return True
    try:
        _placed_leftmost(together, text)
    except InvalidInput:
        return False
    return True


def _placed_in_full(words: Sequence[str], text: str) -> list[int]:
    starts, position = [], 0
    for word in words:
        start = text.find(word, position)
        if start < 0 or text[position:start].strip():
            raise _not_there(word, text)
        starts.append(start)
        position = start + len(word)
    return starts


def _placed_leftmost(words: Sequence[str], text: str) -> list[int]:
    starts, position = [], 0
    for word in words:
        match = _whole(word).search(text, position)
        if match is None:
            raise _not_there(word, text)
        starts.append(match.start())
        position = match.end()
    return starts


def _placed_rightmost(words: Sequence[str], text: str) -> list[int]:
    starts, limit = [], len(text)
    for word in reversed(words):
        # The leftmost placement succeeded, so one is always found here.
        start = max(match.start() for match in _whole(word).finditer(text) if match.end() <= limit)
        starts.append(start)
        limit = start
    return starts[::-1]


def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")


def _not_there(word: str, text: str) -> InvalidInput:
    return InvalidInput(
        f"the word {word!r} does not stand in the sentence {text!r} (after the words before it)"
    )
