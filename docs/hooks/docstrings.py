"""Our docstrings say what a parameter means right after its name; the types are in the signature.

`alpha : the penalty` is read as a type by numpydoc parsers. This turns it into a description.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

SECTION = re.compile(r"(Parameters\n-+\n)(.*?)(?=\n\n\S[^\n]*\n-+\n|\n\n\S|\Z)", re.DOTALL)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.*)$", re.MULTILINE)


class MeaningFirst(griffe.Extension):
    """Rewrite the docstrings before they are parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = described(obj.docstring.value)


def described(docstring: str) -> str:
    """The same docstring with every `name : meaning` as a name and an indented meaning."""
    return SECTION.sub(lambda found: found[1] + ENTRY.sub(r"\1\n    \2", found[2]), docstring)
