"""Where names stand beside their points so that none lies on another name or on a point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

RADIUS = 6.0
"""Of a point, in pixels"""
LETTER, LINE = 0.53, 1.1
"""Width of a letter and height of a line, in font sizes; about, for fonts differ"""

Box = tuple[float, float, float, float]


def beside(
    points: npt.NDArray[np.floating],
    names: Sequence[str],
    *,
    width: float,
    font_size: float,
) -> list[tuple[float, float] | None]:
    """The middle of each name, or None where there is no room: what is not written is told on touch.

    Right of the point, left of it, above or below, whichever is free first.

    Parameters
    ----------
    points : (n, 2) in pixels, as the names' places are.
    width : of the chart; no name leaves it.
    """
    taken: list[Box] = [(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in points]
    found: list[tuple[float, float] | None] = []
    for (x, y), name in zip(points, names, strict=True):
        wide, high = LETTER * font_size * len(name), LINE * font_size
        aside, apart = RADIUS + 3 + wide / 2, RADIUS + 2 + high / 2
        middles = ((x + aside, y), (x - aside, y), (x, y - apart), (x, y + apart))
        boxes = [(a - wide / 2, b - high / 2, a + wide / 2, b + high / 2) for a, b in middles]
        free = [k for k, box in enumerate(boxes) if _free(box, taken, width)]
        found.append(middles[free[0]] if free else None)
        taken += [boxes[free[0]]] if free else []
    return found


def _free(box: Box, taken: Sequence[Box], width: float) -> bool:
    left, top, right, bottom = box
    if left < 0 or right > width:
        return False
    return not any(left < o[2] and o[0] < right and top < o[3] and o[1] < bottom for o in taken)
