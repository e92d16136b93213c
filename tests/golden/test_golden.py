"""Numbers of bundled comparisons, stitchings and streams are what they were, but where that was meant.

`record.py` wrote `numbers.json` at commit fe41898; the same script runs here on today's code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.golden.record import CASES, record

NUMBERS: dict[str, Any] = json.loads((Path(__file__).parent / "numbers.json").read_text(encoding="utf-8"))


class Change(NamedTuple):
    """A number that is another one now, on purpose."""

    why: str
    within: float
    """How far it may have moved, absolutely"""


ENGINE = "one engine for pairs: distances in float64 that were float32, ties told by what rounding can move"
CHANGED = {
    "compare/matrices/rsa*": Change(ENGINE, 1e-5),
    "compare/explained_share": Change(f"{ENGINE}; a share of a small RSA", 1e-3),
    "compare/stress/rsa*": Change(ENGINE, 1e-6),
    "compare/word_maps": Change(ENGINE, 1e-8),
    "profile/*/ceiling": Change(ENGINE, 1e-6),
    "measures/pwcca": Change(
        "variates of equal correlations, here three of 1, were what the machine made them; now X's axes",
        0.05,
    ),
    "mlem/interactions/weights": Change("a full W to machine precision; the largest weight is 15,468", 2e-5),
}
"""Pattern of paths → what changed there since"""
ROUNDED = ("stitch_least_squares/*", "compare/matrices/procrustes")
"""Partly float32: two threads instead of one move them by up to 2e-7, and penalties are small differences
of losses: equal to 1e-6, relative and absolutely"""


def leaves(found: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path → array of numbers, or anything else as it is."""
    if isinstance(found, dict):
        for name, value in found.items():
            yield from leaves(value, f"{path}/{name}")
    else:
        yield path, found


def as_array(value: Any) -> np.ndarray | None:
    """Numbers as an array, None as NaN; None for words."""
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        return None


def change_at(path: str) -> Change | None:
    """What was meant to change there."""
    return next((change for pattern, change in CHANGED.items() if fnmatch(path, pattern)), None)


def exactness(path: str) -> float:
    """How far numbers there may be apart, relative to themselves."""
    return 1e-6 if any(fnmatch(path, pattern) for pattern in ROUNDED) else 1e-9


def same(then: Any, now: Any, within: float | None = None, exact: float = 1e-9) -> bool:
    """Equal to `exact`, relative to each number and the largest beside it; or absolutely `within` so much."""
    old, new = as_array(then), as_array(now)
    if old is None or new is None:
        return bool(then == now)
    if old.shape != new.shape:
        return False
    largest = np.nanmax(np.abs(old), initial=0.0)
    if within is not None:
        return np.allclose(new, old, rtol=0, atol=within, equal_nan=True)
    return np.allclose(
        new, old, rtol=exact, atol=exact * (min(largest, 1.0) if exact < 1e-6 else 1.0), equal_nan=True
    )


@pytest.mark.whole_runs
@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_are_what_they_were(case: str) -> None:
    then, now = dict(leaves(NUMBERS[case], case)), dict(leaves(record(case), case))
    assert then.keys() <= now.keys(), sorted(then.keys() - now.keys())
    different = {path for path in then if not same(then[path], now[path], exact=exactness(path))}
    unmeant = {path for path in different if change_at(path) is None}
    assert not unmeant, sorted(unmeant)
    too_far = {path for path in different if not same(then[path], now[path], change_at(path).within)}  # type: ignore[union-attr]
    assert not too_far, sorted(too_far)


def test_every_case_has_its_numbers_and_every_change_its_place() -> None:
    assert set(CASES) == set(NUMBERS)
    paths = [path for case in NUMBERS for path, _ in leaves(NUMBERS[case], case)]
    assert all(any(fnmatch(path, pattern) for path in paths) for pattern in CHANGED)


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        ([1.0, None], [1.0 + 1e-10, None], True),
        ([1.0, 2.0], [1.0 + 1e-8, 2.0], False),
        ([1.0, 0.0], [1.0, None], False),
        ([1.0], [1.0, 1.0], False),
        (["a"], ["b"], False),
        (1e-3, 1e-3 + 1e-11, False),
    ],
)
def test_a_difference_is_seen(then: Any, now: Any, expected: bool) -> None:
    assert same(then, now) is expected
