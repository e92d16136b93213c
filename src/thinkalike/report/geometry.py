"""Geometric measures in the report: how alike the systems are, how sure that is, and what chance gives."""

from __future__ import annotations

import numpy as np

from thinkalike.comparison.chart_tables import value_label
from thinkalike.comparison.comparison import Comparison
from thinkalike.inference.geometry_tests import GeometryTest
from thinkalike.labels import Floats
from thinkalike.wording import number, p_text

HEADER = ("measure", "systems", "mean", "95 % range", "chance", "q", "calibrated")
RELIABILITY = ("across sentences", "ceiling")
UNTRAINED = ("untrained",)
LAST = ("most alike layers",)


def geometry_table(comparison: Comparison) -> tuple[tuple[str, ...], ...]:
    """Header and rows: every geometric measure between every two systems; nothing if nothing was drawn.

    Reliability and untrained copies have columns where they are known of any pair.
    """
    tests = [
        (name, test)
        for name, matrix in comparison.matrices.items()
        for test in matrix.tests
        if test.a != test.b and np.isfinite([test.low, test.p_mean]).any()
    ]
    if not tests:
        return ()
    halved = any(np.isfinite(test.ceiling) for _, test in tests)
    copied = any(np.isfinite(test.control) for _, test in tests)
    header = (*HEADER, *(RELIABILITY if halved else ()), *(UNTRAINED if copied else ()), *LAST)
    return (header, *(_row(name, test, halved, copied) for name, test in tests))


def _row(name: str, test: GeometryTest, halved: bool, copied: bool) -> tuple[str, ...]:
    best = f"{test.layer_a} × {test.layer_b}: {number(test.best)}"
    if np.isfinite(test.q_best):
        best += f" ({p_text(test.q_best)})"
    return (
        value_label(name),
        f"{test.a} × {test.b}",
        number(test.mean),
        f"{number(test.low)} to {number(test.high)}" if np.isfinite(test.low) else "–",
        number(test.chance),
        p_text(test.q).removeprefix("p ").removeprefix("= ") if np.isfinite(test.q) else "–",
        number(test.calibrated),
        *((number(test.across), number(test.ceiling)) if halved else ()),
        *((number(test.control),) if copied else ()),
        best,
    )


def cell_certainty(comparison: Comparison) -> dict[str, dict[str, Floats]]:
    """Measure → what is known of every pair of layers besides its value.

    Its range, its p, and across halves of the sentences its value and the ceiling of that.
    """
    found: dict[str, dict[str, Floats]] = {}
    for name, matrix in comparison.matrices.items():
        if matrix.tests:
            known = {key: getattr(matrix, key) for key in ("low", "high", "p_block", "across", "ceiling")}
            found[name] = {key: values for key, values in known.items() if values is not None}
    return found


METHOD = (
    "Certainty of geometric measures",
    "Ranges come from leaving out a twentieth of the sentences at a time; measures that move with the "
    "number of items have none. Chance is what unrelated systems reach in 19 of 20 cases: whole sentences "
    "of one system change places, in all its layers alike, and q says how often their mean is as high, "
    "corrected for the number of pairs of systems. Calibrated is 0 for what chance reaches and 1 for the "
    "best there is (Gröger, Wen and Brbić 2026). Across sentences: items alike in every feature are averaged "
    "in each half of the sentences, and the layers of one half are compared with those of the other, so that "
    "nothing counts that is particular to a sentence; its ceiling is what two systems alike in truth would "
    "reach so, from how alike each layer is to itself.",
)
