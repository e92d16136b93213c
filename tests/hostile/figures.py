"""What was tried and what came of it, as numbers on disk and as a list of what is bad."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.hostile.verdicts import Case, counts, table

BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
Found = Mapping[str, Sequence[Case]]


def figures_of(found: Found) -> dict[str, dict[str, int]]:
    return {area: counts(cases) for area, cases in found.items()}


def write_figures(found: Found, seed: int, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"seed": seed, "areas": figures_of(found)}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def put_into(page: str, figures: Mapping[str, Mapping[str, int]]) -> str:
    """The page with the table of the figures between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(figures)}\n{END}{after}"


def write_bad(found: Found, path: Path) -> None:
    """The bad cases as Markdown, with the commands."""
    lines = []
    for area, cases in found.items():
        bad = [case for case in cases if case.verdict == "bad"]
        lines.append(f"\n## {area}: {len(bad)} of {len(cases)} bad\n")
        lines += [f"- **{case.name}**: {case.reason}\n  `{case.command}`" for case in bad]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
