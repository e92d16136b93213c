"""A comparison under many analyses: texts are read once per reading, layers once per distance and items."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from thinkalike.activations.store import Activations
from thinkalike.comparison.analyses import GRID, MAIN, Analysis, check_grid
from thinkalike.comparison.concluding import Found, analyse_together
from thinkalike.comparison.rereading import read_otherwise
from thinkalike.comparison.robustness import Robustness
from thinkalike.errors import InvalidInput, ThinkalikeError
from thinkalike.labels import Floats
from thinkalike.stimuli.table import Stimuli

if TYPE_CHECKING:
    from thinkalike.comparison.comparison import Comparison

Key = TypeVar("Key", bound=Hashable)

EQUAL = 1e-6
"""Numbers so close, as a share of their size, are those of one analysis"""


def run_analyses(
    comparison: Comparison,
    grid: Sequence[Analysis] | None = None,
    *,
    others: Stimuli | None = None,
) -> Robustness:
    """Ask the question of a comparison in the ways of a grid; see `Comparison.robustness`."""
    asked = GRID if grid is None else tuple(grid)
    check_grid(asked)
    if comparison.activations is None:
        raise InvalidInput(
            "The activations of this run are gone, and other analyses need them: run the comparison again."
        )
    base = list(comparison.activations.values())
    main = _main_choices(comparison, base)
    wanted, left_out = _to_make(asked, main)
    made: dict[str, Found] = {}
    for (changes, elsewhere), group in _grouped(wanted, _reading):
        try:
            shown, systems = read_otherwise(
                comparison.stimuli, base, dict(changes), others=others, elsewhere=elsewhere
            )
        except ThinkalikeError as error:
            left_out |= {one.name: str(error) for one in group}
            continue
        for _, same in _grouped(group, _measuring):
            found, failed = analyse_together(same, shown, systems, comparison.settings)
            made |= found
            left_out |= failed
    if MAIN.name not in made:
        raise InvalidInput(f"The comparison itself cannot be made again: {left_out[MAIN.name]}")
    twice = _made_twice([one.name for one in wanted if one.name in made], made)
    left_out |= {name: f"it is the same as {first!r} here" for name, first in twice.items()}
    kept = [one for one in wanted if one.name in made and one.name not in twice]
    return _collect(kept, made, comparison.systems, main, left_out)


def _main_choices(comparison: Comparison, base: Sequence[Activations]) -> dict[str, object]:
    """The choices of the comparison itself; how texts were read only where a system says it."""
    main: dict[str, object] = dict(comparison.settings)
    for name in ("pooling", "bos"):
        said = {str(one.metadata[name]) for one in base if name in one.metadata}
        if said:
            main[name] = "/".join(sorted(said))
    return main


def _to_make(grid: Sequence[Analysis], main: Mapping[str, object]) -> tuple[list[Analysis], dict[str, str]]:
    """The comparison and whatever differs from it in a choice; and why the rest is not made."""
    wanted, left_out = [MAIN], dict[str, str]()
    for one in grid:
        if one.choices(main) == MAIN.choices(main) and not one.reading:
            continue  # the comparison itself: nothing is lost
        if one.reading and all(str(main.get(name)) == str(value) for name, value in one.reading.items()):
            continue
        wanted.append(one)
    return wanted, left_out


def _grouped(
    analyses: Sequence[Analysis], key: Callable[[Analysis], Key]
) -> Iterator[tuple[Key, list[Analysis]]]:
    """Those with the same key together, in the order of the first of each."""
    for one in dict.fromkeys(map(key, analyses)):
        yield one, [analysis for analysis in analyses if key(analysis) == one]


def _reading(one: Analysis) -> tuple[tuple[tuple[str, object], ...], bool]:
    """Analyses with the same one are made from the same vectors."""
    return tuple(one.reading.items()), one.sentences == "others"


def _measuring(one: Analysis) -> tuple[str, str, object]:
    """Analyses of the same vectors with the same one share their geometry."""
    return one.words, one.sentences, one.encoding.get("distance")


def _made_twice(names: Sequence[str], made: Mapping[str, Found]) -> dict[str, str]:
    """Analysis → the one before it with the same numbers.

    Missing values that are a level are no other analysis where none is missing, nor is the cosine without
    first words where the comparison has the cosine itself: counted twice, a choice would agree with itself.
    """
    numbers = {
        name: np.array([*one.likeness.values(), *one.shares, *one.scores]) for name, one in made.items()
    }
    twice: dict[str, str] = {}
    for k, name in enumerate(names):
        before = (other for other in names[:k] if other not in twice)
        same = (other for other in before if _same(numbers[name], numbers[other]))
        first = next(same, None)
        if first is not None:
            twice[name] = first
    return twice


def _same(a: Floats, b: Floats) -> bool:
    return bool(np.allclose(a, b, rtol=EQUAL, atol=0.0, equal_nan=True))


def _collect(
    analyses: Sequence[Analysis],
    made: Mapping[str, Found],
    systems: Sequence[str],
    main: Mapping[str, object],
    left_out: Mapping[str, str],
) -> Robustness:
    pairs = tuple(combinations(systems, 2))
    found = [made[one.name] for one in analyses]
    nothing = float("nan")
    return Robustness(
        analyses=tuple(analyses),
        systems=tuple(systems),
        pairs=pairs,
        choices=tuple(one.choices(main) for one in analyses),
        likeness=np.array([[one.likeness[pair] for pair in pairs] for one in found]),
        geometry=np.array([[one.geometry.get(pair, nothing) for pair in pairs] for one in found]),
        dominant=tuple(one.dominant for one in found),
        shares=np.array([one.shares for one in found]),
        scores=np.array([one.scores for one in found]),
        left_out=dict(left_out),
    )
