"""Our docstrings say what a name means right after it; the types are in the signature.

`alpha : the penalty` is read as a type by numpydoc parsers. This turns it into a description.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

SECTION = re.compile(r"((?:Parameters|Attributes)\n-+\n)(.*?)(?=\n\n\S[^\n]*\n-+\n|\n\n\S|\Z)", re.DOTALL)
NAMES = r"\*{0,2}\w+(?:, \*{0,2}\w+)*"
SAME_LINE = re.compile(rf";  (?={NAMES} : )")
ENTRY = re.compile(rf"^({NAMES}) : (.*?)([.:;,]?)$(?=(\n    [A-Z])?)", re.MULTILINE)


class MeaningFirst(griffe.Extension):
    """Rewrite the docstrings before they are parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = described(obj.docstring.value)


def described(docstring: str) -> str:
    """The same docstring with every `name : meaning` as a name and an indented meaning."""
    return SECTION.sub(lambda found: found[1] + entries(found[2]), docstring)


def entries(section: str) -> str:
    """A line for each entry, its meaning below; a full stop where a sentence follows that."""
    return ENTRY.sub(
        lambda found: f"{found[1]}\n    {found[2]}{found[3] or ('.' if found[4] else '')}",
        SAME_LINE.sub("\n", section),
    )
