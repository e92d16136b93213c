"""Names beside points: none on another, none outside, none lost where there is room."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from thinkalike.charts.group_charts import LETTER, LINE, beside

NAMES = [f"model-{k}" for k in range(15)]
FONT = 10.0


def box(middle: tuple[float, float], name: str) -> tuple[float, float, float, float]:
    wide, high = LETTER * FONT * len(name), LINE * FONT
    return middle[0] - wide / 2, middle[1] - high / 2, middle[0] + wide / 2, middle[1] + high / 2


@pytest.mark.parametrize("seed", range(20))
def test_none_lies_on_another_or_on_a_point(seed: int) -> None:
    points = np.random.default_rng(seed).uniform(20, 400, size=(15, 2))
    found = beside(points, NAMES, width=420, font_size=FONT)
    boxes = [box(one, name) for one, name in zip(found, NAMES, strict=True) if one is not None]
    assert len(boxes) >= 8
    for a, b in combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    for left, top, right, bottom in boxes:
        assert left >= 0
        assert right <= 420
        assert not any(left < x < right and top < y < bottom for x, y in points)


def test_a_name_stands_right_of_a_point_that_is_alone() -> None:
    assert beside(np.array([[100.0, 50.0]]), ["abc"], width=420, font_size=FONT) == [
        (100 + 6 + 3 + LETTER * FONT * 3 / 2, 50.0)
    ]


def test_what_has_no_room_has_no_place() -> None:
    crowd = np.array([[50.0 + x, 50.0 + y] for x in (0, 5, 10) for y in (0, 5, 10)])
    found = beside(crowd, ["a long name"] * 9, width=100, font_size=FONT)
    assert found[4] is None
