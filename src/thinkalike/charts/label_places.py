"""Where names stand beside their points or lines so that none lies on another name, a point or a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

RADIUS = 6.0
"""Of a point, in pixels"""
LETTER, LINE = 0.6, 1.1
"""Width of a letter and height of a line, in font sizes; about, for fonts differ"""
BOLD = 0.64
"""Width of a bold letter, in font sizes"""
GAP = 8.0
"""Between a point of a line and the name of the line, in pixels"""

Align = Literal["left", "center", "right"]
"""As text is aligned: "left" begins at its place"""
Box = tuple[float, float, float, float]
Floats = npt.NDArray[np.floating]


@dataclass(frozen=True)
class Place:
    """Beside which point of its line a name stands, and on which side."""

    point: int
    above: bool
    align: Align


def beside(
    points: npt.NDArray[np.floating],
    names: Sequence[str],
    *,
    width: float,
    font_size: float,
) -> list[tuple[float, float, Align] | None]:
    """Where each name stands, or None where there is no room: what is not written is told on touch.

    Right of the point, left of it, above or below, whichever is free first. A name beside its point is held
    by the end that is near the point, so that it never touches it in a font that is wider than we think.

    Parameters
    ----------
    points : (n, 2) in pixels, as the names' places are.
    width : of the chart; no name leaves it.
    """
    taken: list[Box] = [(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in points]
    found: list[tuple[float, float, Align] | None] = []
    for (x, y), name in zip(points, names, strict=True):
        wide, high = LETTER * font_size * len(name), LINE * font_size
        aside, apart = RADIUS + 3, RADIUS + 2 + high / 2
        places: list[tuple[float, float, Align]] = [
            (x + aside, y, "left"),
            (x - aside, y, "right"),
            (x, y - apart, "center"),
            (x, y + apart, "center"),
        ]
        boxes = [_box_of(place, wide, high) for place in places]
        free = [k for k, box in enumerate(boxes) if _free(box, taken, width)]
        found.append(places[free[0]] if free else None)
        taken += [boxes[free[0]]] if free else []
    return found


def _box_of(place: tuple[float, float, Align], wide: float, high: float) -> Box:
    """Left, top, right and bottom of a name."""
    x, y, align = place
    left = {"left": x, "center": x - wide / 2, "right": x - wide}[align]
    return left, y - high / 2, left + wide, y + high / 2


def _free(box: Box, taken: Sequence[Box], width: float) -> bool:
    left, top, right, bottom = box
    if left < 0 or right > width:
        return False
    return not any(left < o[2] and o[0] < right and top < o[3] and o[1] < bottom for o in taken)


def along(
    lines: Floats,
    names: Sequence[str],
    *,
    wanted: Sequence[bool],
    lowest: Floats,
    size: tuple[float, float],
    font_size: float,
    joined: bool = True,
) -> list[Place | None]:
    """Beside which point of its line each name stands: the highest with room, else the next, else nowhere.

    A name has room where it lies on no other name and no line runs through it, nor between it and its point.

    Parameters
    ----------
    lines : (n_lines, n_points, 2) in pixels from the upper left; missing values break a line.
    names : of the lines, the first to be placed first.
    wanted : which lines get a name.
    lowest : (n_lines,) no name stands beside a point of its line that is lower than this.
    size : width and height of the chart; no name leaves it.
    joined : whether the points are drawn as lines; if not, only other names are in the way.
    """
    pieces = np.concatenate([lines[:, :-1], lines[:, 1:]], axis=2)
    owner = np.broadcast_to(np.arange(len(lines))[:, None], pieces.shape[:2])
    there = np.isfinite(pieces).all(axis=2) & joined
    pieces, owner = pieces[there], owner[there]
    taken: list[Box] = []
    found: list[Place | None] = [None] * len(lines)
    for k in map(int, np.flatnonzero(wanted)):
        high_enough = np.where(lines[k, :, 1:] <= lowest[k], lines[k], np.nan)
        own, others = pieces[owner == k], pieces[owner != k]
        for place, box, reach in _beside_line(
            high_enough, BOLD * font_size * len(names[k]), LINE * font_size
        ):
            inside = box[1] >= 0 and box[3] <= size[1]
            if not inside or not _free(box, taken, size[0]):
                continue
            if not _runs_through(own, box) and not _runs_through(others, reach):
                found[k] = place
                taken.append(box)
                break
    return found


def _beside_line(line: Floats, wide: float, high: float) -> Iterator[tuple[Place, Box, Box]]:
    """Places from the highest point down, each with its box and the box that reaches to the point too."""
    for point in np.argsort(np.where(np.isfinite(line[:, 1]), line[:, 1], np.inf), kind="stable"):
        x, y = line[point]
        if not np.isfinite(y):
            return
        early = point < len(line) / 2
        for above in (True, False):
            top = y - GAP - high if above else y + GAP
            for align in ("left", "center", "right") if early else ("right", "center", "left"):
                left = {"left": x - 4, "center": x - wide / 2, "right": x + 4 - wide}[align]
                box = (left, top, left + wide, top + high)
                reach = (left, top, left + wide, y - 1) if above else (left, y + 1, left + wide, top + high)
                yield Place(int(point), above, align), box, reach


def _runs_through(pieces: Floats, box: Box) -> bool:
    """Whether one of the straight pieces, rows of (x, y, x, y), has a point in the box."""
    left, top, right, bottom = box
    (x, y), (to_x, to_y) = pieces[:, :2].T, pieces[:, 2:].T
    near = (np.minimum(x, to_x) < right) & (np.maximum(x, to_x) > left)
    near &= (np.minimum(y, to_y) < bottom) & (np.maximum(y, to_y) > top)
    corners = np.array([(a, b) for a in (left, right) for b in (top, bottom)])
    along_x, along_y = corners[:, 0] - x[:, None], corners[:, 1] - y[:, None]
    sides = (to_x - x)[:, None] * along_y - (to_y - y)[:, None] * along_x
    return bool(np.any(near & (sides.min(axis=1) <= 0) & (sides.max(axis=1) >= 0)))
