"""The table of measures as Markdown, from what they declare.

    python -m thinkalike.measures.describe docs/measures.md

writes it anew between the marks in that page; a test holds that nothing changes.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

from thinkalike.errors import InvalidInput
from thinkalike.measures.measure import INVARIANCES, Measure
from thinkalike.measures.measure_table import MEASURES

BEGIN, END = "<!-- measures: begin -->", "<!-- measures: end -->"
SIDES = {"of_first": "of X", "of_second": "of Y"}


def measures_table() -> str:
    """One row per measure: what it is, what it is blind to, what it costs, who made it."""
    heads = ["measure", "kind", "range", *INVARIANCES, "metric", "cost", "reference"]
    lines = [heads, ["---"] * len(heads), *(_cells(measure) for measure in MEASURES.values())]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def questions_table() -> str:
    """One row per measure: the question that it answers."""
    heads = ["measure", "question"]
    rows = [[f"`{m.name}`", m.question] for m in MEASURES.values()]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [heads, ["---"] * 2, *rows])


def renewed(page: str) -> str:
    """`page` with both tables between its marks as the code has them now."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InvalidInput(f"The page has no {BEGIN} … {END} to put the tables between.")
    return f"{before}{BEGIN}\n{questions_table()}\n\n{measures_table()}\n{END}{after}"


def _cells(measure: Measure) -> list[str]:
    low, high = (_number(end) for end in measure.range)
    holds = [_holds(measure, name) for name in INVARIANCES]
    metric = "yes" if measure.metric else ""
    kind = measure.kind if measure.needs_extra is None else f"{measure.kind} (extra `{measure.needs_extra}`)"
    return [
        f"`{measure.name}`",
        kind,
        f"{low} … {high}",
        *holds,
        metric,
        measure.cost,
        measure.reference,
    ]


def _holds(measure: Measure, name: str) -> str:
    if name in measure.invariances:
        return "✓"
    return " ".join(f"✓ {label}" for side, label in SIDES.items() if name in getattr(measure, side))


def _number(value: float) -> str:
    known = {math.pi / 2: "π/2", math.sqrt(2): "√2", math.inf: "∞", -math.inf: "−∞"}
    return known.get(value, f"{value:g}".replace("-", "−"))


def main() -> None:
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
