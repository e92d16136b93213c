"""Beside the authors' package: tables from benchmarks/results/authors.json."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median
from typing import Any

MARK = re.compile(r"^<!-- authors: (layers|times|features) -->$", re.MULTILINE)
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "authors.json"
Found = dict[str, Any]


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put a table where `<!-- authors: layers -->`, `times` or `features` is."""
    if not MARK.search(markdown):
        return markdown
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    tables = {"layers": layers, "times": times, "features": features}
    return MARK.sub(lambda mark: tables[mark[1]](found), markdown)


def layers(found: Found) -> str:
    """A row for each layer: what both ways find."""
    lines = [
        "| layer | ρ, theirs | ρ, ours | cosine of the weights | r of the importances | first feature |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for name, layer in found["layers"].items():
        theirs = layer["theirs"]
        cells = [
            name,
            _range([one["rho"] for one in theirs], 3),
            f"{layer['ours']['rho']:.3f}",
            f"{min(one['cosine of the weights'] for one in theirs):.3f}",
            f"{min(one['r of the importances'] for one in theirs):.3f}",
            "the same" if all(one["same first feature"] for one in theirs) else "not the same",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"{found['items']} words, {len(found['features'])} features."])


def times(found: Found) -> str:
    """A row for each layer: processor seconds of both ways."""
    lines = [
        "| layer | fit, theirs | fit, ours | importance, theirs | importance, ours |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, layer in found["layers"].items():
        cells = [
            text
            for what in ("fit (s)", "importance (s)")
            for text in (
                f"{median(one[what] for one in layer['theirs']):.1f} s",
                f"{layer['ours'][what]:.3f} s",
            )
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"The load of the machine was {found['load']:.0f}."])


def features(found: Found) -> str:
    """The weights and the importances of the first layer."""
    name, layer = next(iter(found["layers"].items()))
    lines = [
        f"| {name} | weight, theirs | weight, ours | importance, theirs | importance, ours |",
        "|---|--:|--:|--:|--:|",
    ]
    for k, feature in enumerate(found["features"]):
        cells = [feature.replace("_", " ")]
        for what in ("weights", "importance"):
            cells += [
                _range([one[what][k] for one in layer["theirs"]], 3),
                _signed(layer["ours"][what][k], 3),
            ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _range(values: list[float], digits: int) -> str:
    low, high = (_signed(end, digits) for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _signed(value: float, digits: int) -> str:
    """With a true minus, and none before a rounded 0."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not float(text) else text.replace("-", "−")
