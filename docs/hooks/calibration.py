"""What simulations found of p-values and ranges: tables from benchmarks/results/calibration.json."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

MARK = re.compile(r"^<!-- calibration: (\S+) -->$", re.MULTILINE)
Row = dict[str, Any]

REST = "rest"
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "calibration.json"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the table of all simulations whose names begin with PREFIX where `<!-- calibration: PREFIX -->` is.

    `rest` stands for all that no other mark of the page names.
    """
    prefixes = tuple(name for name in MARK.findall(markdown) if name != REST)
    if not MARK.search(markdown):
        return markdown
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    return MARK.sub(lambda found: table(chosen(kept, found[1], prefixes)), markdown)


def chosen(
    kept: dict[str, list[dict[str, Any]]], prefix: str, named: tuple[str, ...]
) -> list[dict[str, Any]]:
    """The rows of some simulations."""
    if prefix == REST:
        return [row for name, rows in kept.items() if not name.startswith(named) for row in rows]
    return [row for name, rows in kept.items() if name.startswith(prefix) for row in rows]


def table(rows: list[Row]) -> str:
    """Markdown: what was claimed, in which world, what should and what was found."""
    if not rows:
        return "*Not simulated yet.*"
    lines = ["| claim | world | goal | found | draws |", "|---|---|---|---|---|"]
    lines += [
        f"| {_cell(row['name'])} | {_cell(row['world'])} | {_goal(row)} | {_found(row)} | {row['n']} |"
        for row in rows
    ]
    return "\n".join(lines)


def _goal(row: Row) -> str:
    low, high = (f"{100 * row[f'goal_{end}']:.0f}" for end in ("low", "high"))
    if low == high:
        return f"{low} %"
    return f"≥ {low} %" if high == "100" else f"≤ {high} %" if low == "0" else f"{low}–{high} %"


def _found(row: Row) -> str:
    text = f"{100 * row['found']:.1f} ± {100 * row['error']:.1f} %"
    return text if row["holds"] else f"**{text}**, missed"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
