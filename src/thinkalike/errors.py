"""Everything that thinkalike raises on purpose.

A message says what came, what was expected, and the way out. The command line prints it as one line.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST_KNOWN = 80
"""Names that a message lists; of more, the first and the last"""


class ThinkalikeError(Exception):
    """The root of the tree: catch this to catch all of it.

    Examples
    --------
    >>> import thinkalike as ta
    >>> try:
    ...     ta.Stimuli.from_grammar(0)
    ... except ta.ThinkalikeError as error:
    ...     print(error)
    Got n_sentences=0: give a whole number from 1 to 1,000,000.
    """


class InvalidInput(ThinkalikeError, ValueError):
    """What was given cannot be worked with; the message says what to give instead."""


class UnknownName(InvalidInput):
    """A name that is in no table; the message suggests the nearest one that is."""

    @classmethod
    def among(
        cls, what: str, name: object, known: Iterable[object], *, where: str | None = None
    ) -> UnknownName:
        """The error for `name`, which is none of the `known` names of a `what`; `where` there is none."""
        names = [str(k) for k in known]
        by_letters = {k.lower(): k for k in names}
        close = difflib.get_close_matches(str(name).lower(), by_letters, n=1)
        hint = f" Did you mean {by_letters[close[0]]!r}?" if close else ""
        if len(names) > MOST_KNOWN:  # all heads of a model, say
            names = [*names[:3], "…", *names[-3:]]
        place = "" if where is None else f" in {where}"
        return cls(f"There is no {what} {str(name)!r}{place}.{hint} Known: {', '.join(names)}.")


class ModelError(ThinkalikeError):
    """A model cannot be found, loaded, or looked into."""


class StoreError(ThinkalikeError):
    """Files on disk that are damaged, incomplete, or belong to something else."""


class DamagedFile(StoreError):
    """A file of ours that is missing, or not what was written there; who can makes it anew."""


class WorkFailed(ThinkalikeError):
    """Some of the tasks that were sent to workers failed; what the others made is kept."""


class MissingExtra(ThinkalikeError, ImportError):
    """An optional dependency is not installed; the message gives the command."""

    @classmethod
    def needed(cls, package: str, extra: str) -> MissingExtra:
        """The error for an optional `package` that comes with `thinkalike[extra]`."""
        return cls(f"This needs {package!r}, which is not installed: pip install 'thinkalike[{extra}]'")


def one_line(error: BaseException, *, most: int = 300) -> str:
    """What an error of another library says of itself, on one line of at most so many characters."""
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return text if len(text) <= most else f"{text[:most]} …"
