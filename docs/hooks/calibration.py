"""What simulations found of p-values and ranges: tables from benchmarks/results/calibration.json."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

MARK = re.compile(r"^<!-- calibration: (\S+) -->$", re.MULTILINE)
Row = dict[str, Any]

REST = "rest"
SUMMARY = "summary"
MISSED = "missed"
FAMILIES = {
    "τ_w and features": ("features-", "interactions-"),
    "geometric measures (RSA, CKA)": ("ranges-", "null-"),
    "the share that features explain": ("share-",),
    "agreement of two matrices": ("agreement-",),
    "blocks of layers": ("blocks-",),
    "groups of models": ("groups-",),
    "subjects": ("subjects-",),
    "stitching": ("stitching-",),
    "what models have in common (`why`)": ("why-",),
    "what tuning changed (`diff`, `trace`)": ("diff-",),
}
KINDS = {
    "p ≤ 0.05 where nothing is (goal 3–7 %)": (0.03, 0.07),
    "ranges of 95 % (goal 92–98 %)": (0.92, 0.98),
}
"""The two goals that most claims have; the others differ from claim to claim"""
NO_GOAL = (0.0, 1.0)
"""Of rows that only report a share: they cannot miss, and so are not counted as met"""
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "calibration.json"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the table of all simulations whose names begin with PREFIX where `<!-- calibration: PREFIX -->` is.

    `rest` stands for all that no other mark of the page names, `summary` for one row per family of claims,
    `missed` for all rows that missed their goal.
    """
    prefixes = tuple(name for name in MARK.findall(markdown) if name not in (REST, SUMMARY, MISSED))
    if not MARK.search(markdown):
        return markdown
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))

    def made(found: re.Match[str]) -> str:
        if found[1] == SUMMARY:
            return summary(kept)
        if found[1] == MISSED:
            return table([row for rows in kept.values() for row in rows if not row["holds"]])
        return table(chosen(kept, found[1], prefixes))

    return MARK.sub(made, markdown)


def summary(kept: dict[str, list[Row]]) -> str:
    """Markdown, a row per family: how many claims of each kind met their goal, the lowest and the highest."""
    lines = [f"| about | {' | '.join(KINDS)} | other goals |", "|---|---|---|---|"]
    for family, prefixes in FAMILIES.items():
        rows = [row for name, rows in kept.items() if name.startswith(prefixes) for row in rows]
        of_goal = [[row for row in rows if _ends(row) == goal] for goal in KINDS.values()]
        others = [row for row in rows if _ends(row) not in (*KINDS.values(), NO_GOAL)]
        lines.append(f"| {family} | {' | '.join(map(_met, of_goal))} | {_met(others, between=False)} |")
    return "\n".join(lines)


def _ends(row: Row) -> tuple[float, float]:
    return row["goal_low"], row["goal_high"]


def _met(rows: list[Row], *, between: bool = True) -> str:
    if not rows:
        return ""
    met = sum(row["holds"] for row in rows)
    count = f"{met} of {len(rows)}" if met == len(rows) else f"**{met} of {len(rows)}**"
    found = [100 * row["found"] for row in rows]
    return f"{count}: {min(found):.1f} to {max(found):.1f}\N{NO-BREAK SPACE}%" if between else count


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
    if _ends(row) == NO_GOAL:
        return "none"
    low, high = (f"{100 * row[f'goal_{end}']:.0f}" for end in ("low", "high"))
    if low == high:
        return f"{low} %"
    return f"≥ {low} %" if high == "100" else f"≤ {high} %" if low == "0" else f"{low}–{high} %"


def _found(row: Row) -> str:
    text = f"{100 * row['found']:.1f} ± {100 * row['error']:.1f} %"
    return text if row["holds"] else f"**{text}**, missed"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
