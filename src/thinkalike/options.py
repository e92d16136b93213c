"""What is asked of options everywhere: one name for one idea, whole numbers in range, places to write to."""

from __future__ import annotations

import functools
import inspect
import math
import numbers
from collections.abc import Callable, Collection, Iterable
from typing import ParamSpec, TypeVar

from thinkalike.errors import InvalidInput

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Given = TypeVar("Given")

OTHER_NAMES = {
    "cv": "n_folds",
    "folds_n": "n_folds",
    "n_resamples": "resamples",
    "n_bootstrap": "resamples",
    "n_samples": "n_permutations",
    "permutations": "n_permutations",
    "design": "interactions",
    "measure": "measures",
    "measures": "measure",
    "fit": "fit_by",
    "fit_by": "fit",
}
"""What an option is called elsewhere, or was called here → what it is called here"""

MOST_RESAMPLES = 100_000
MOST_PERMUTATIONS = 10_000_000
MOST_SENTENCES = 1_000_000
LARGEST_SEED = 2**63 - 1
"""What torch and NumPy both take"""


def one_name(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Refuse the other names of an option with the one that `function` has."""
    own = inspect.signature(function).parameters
    known = set(own)
    if any(p.kind is p.VAR_KEYWORD for p in own.values()):  # they go on to others, who may have either
        known |= {right for name, right in OTHER_NAMES.items() if OTHER_NAMES.get(right) != name}

    @functools.wraps(function)
    def checked(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        refuse_other_names((name for name in options if name not in own), known)
        return function(*args, **options)

    return checked


def refuse_other_names(names: Iterable[str], known: Collection[str]) -> None:
    """Name the right one for each of `names` that is another name of one of the `known` options."""
    for name in names:
        right = OTHER_NAMES.get(name)
        if right in known:
            raise InvalidInput(f"Got {name}=: the option is called {right}.")


def named_once(pairs: Iterable[tuple[str, Given]], what: str) -> dict[str, Given]:
    """NAME=VALUE of a command line as a mapping; two values of one name are refused."""
    found: dict[str, Given] = {}
    for name, value in pairs:
        if found.setdefault(name, value) != value:
            raise InvalidInput(
                f"The {what} {name!r} is given twice, as {found[name]!r} and as {value!r}: give one."
            )
    return found


def whole_number(name: str, value: object, least: int, most: int | None = None) -> int:
    """`value` if it is a whole number of that range, whatever its type."""
    whole = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not (whole and value == int(value) and least <= value and (most is None or value <= most)):  # type: ignore[call-overload, operator]
        span = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise InvalidInput(f"Got {name}={value!r}: give a whole number {span}.")
    return int(value)  # type: ignore[call-overload]
