"""Names beside points and lines: none on another, none outside, none lost where there is room."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from thinkalike.charts.label_places import BOLD, GAP, LETTER, LINE, Place, along, beside

NAMES = [f"model-{k}" for k in range(15)]
FONT = 10.0


def box(place: tuple[float, float, str], name: str) -> tuple[float, float, float, float]:
    (x, y, align), wide, high = place, LETTER * FONT * len(name), LINE * FONT
    left = x - wide * {"left": 0, "center": 0.5, "right": 1}[align]
    return left, y - high / 2, left + wide, y + high / 2


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
    assert beside(np.array([[100.0, 50.0]]), ["abc"], width=420, font_size=FONT) == [(109.0, 50.0, "left")]


def test_a_name_never_reaches_its_point_however_wide_the_font() -> None:
    (place,) = beside(np.array([[400.0, 50.0]]), ["a long name"], width=420, font_size=FONT)
    assert place == (391.0, 50.0, "right")  # it grows away from the point


def test_what_has_no_room_has_no_place() -> None:
    crowd = np.array([[50.0 + x, 50.0 + y] for x in (0, 5, 10) for y in (0, 5, 10)])
    found = beside(crowd, ["a long name"] * 9, width=100, font_size=FONT)
    assert found[4] is None


SIZE = (280.0, 230.0)


def lines(seed: int, n: int = 6, layers: int = 13) -> np.ndarray:
    """Lines that go up and down over the width of a chart."""
    rng = np.random.default_rng(seed)
    y = 115 + rng.normal(scale=25, size=(n, layers)).cumsum(axis=1)
    x = np.broadcast_to(np.linspace(8, 272, layers), y.shape)
    return np.stack([x, y.clip(5, 225)], axis=2)


def line_box(line: np.ndarray, place: Place, name: str) -> tuple[float, float, float, float]:
    (x, y), wide, high = line[place.point], BOLD * FONT * len(name), LINE * FONT
    left = {"left": x - 4, "center": x - wide / 2, "right": x + 4 - wide}[place.align]
    top = y - GAP - high if place.above else y + GAP
    return left, top, left + wide, top + high


def drawn(line: np.ndarray) -> np.ndarray:
    """A hundred points of each piece."""
    shares = np.linspace(0, 1, 100)[:, None, None]
    return ((1 - shares) * line[:-1] + shares * line[1:]).reshape(-1, 2)


def within(points: np.ndarray, box: tuple[float, float, float, float]) -> bool:
    left, top, right, bottom = box
    x, y = points.T
    return bool(np.any((x > left) & (x < right) & (y > top) & (y < bottom)))


@pytest.mark.parametrize("seed", range(20))
def test_no_line_runs_through_the_name_of_a_line_or_lies_between(seed: int) -> None:
    found = lines(seed)
    lowest = np.full(len(found), np.inf)
    wanted = [True] * len(found)
    places = along(found, NAMES[:6], wanted=wanted, lowest=lowest, size=SIZE, font_size=FONT)
    boxes = {k: line_box(found[k], p, NAMES[k]) for k, p in enumerate(places) if p is not None}
    assert len(boxes) >= 3
    for k, (left, top, right, bottom) in boxes.items():
        assert left >= 0
        assert right <= SIZE[0]
        assert top >= 0
        assert bottom <= SIZE[1]
        y = found[k, places[k].point, 1]
        for other in range(len(found)):
            between = (left, min(top, y + 1), right, max(bottom, y - 1))
            assert not within(drawn(found[other]), between if other != k else boxes[k])
    for a, b in combinations(boxes.values(), 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_the_name_of_a_line_stands_above_its_highest_point_or_where_there_is_room() -> None:
    line = np.array([[[0.0, 150.0], [60.0, 100.0], [140.0, 101.0], [270.0, 220.0]]])
    roof = np.array([[[0.0, 92.0], [60.0, 92.0], [140.0, 92.0], [280.0, 92.0]]])
    both = np.concatenate([line, roof])
    asked = {"wanted": [True, False], "size": SIZE, "font_size": FONT}
    alone = along(line, ["abc"], wanted=[True], lowest=np.array([np.inf]), size=SIZE, font_size=FONT)
    assert alone == [Place(1, above=True, align="left")]
    under = along(both, ["abc", "-"], lowest=np.full(2, 120.0), **asked)
    assert under == [Place(1, above=False, align="left"), None]
    assert along(both, ["abc", "-"], lowest=np.full(2, 99.0), **asked) == [None, None]


def test_lines_without_a_name_are_in_the_way_too_but_not_points() -> None:
    line = np.array([[[10.0, 100.0], [270.0, 100.0]]])
    grey = [[[0.0, y], [280.0, y]] for y in np.arange(2.0, 230.0, 6.0)]
    n = 1 + len(grey)
    asked = {"wanted": [True] + [False] * (n - 1), "lowest": np.full(n, np.inf), "size": SIZE}
    both, names = np.concatenate([line, grey]), ["abc"] * n
    assert along(both, names, font_size=FONT, **asked)[0] is None
    assert along(both, names, font_size=FONT, **asked, joined=False)[0] is not None
