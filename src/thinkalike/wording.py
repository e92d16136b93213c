"""Numbers and lists as people write them."""

from __future__ import annotations

import math
from collections.abc import Sequence


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def q_text(q: float) -> str:
    """p corrected for the number of tests."""
    return p_text(q).replace("p", "q", 1)


def p_text(p: float) -> str:
    """`p = 0.03`, `p < 0.0001`."""
    if math.isnan(p):
        return "p not known"
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def percent(share: float) -> str:
    """Whole percent, with a true minus, but none before a rounded 0."""
    return f"{100 * share:z.0f} %".replace("-", "−")


def signed(value: float) -> str:
    """With a sign, and a true minus, but none before a rounded 0."""
    return f"{value:+z.2f}".replace("-", "−")


def number(value: float, digits: int = 2) -> str:
    """A true minus, but none before a rounded 0; a dash for what does not exist."""
    if math.isnan(value):
        return "–"
    return f"{value:z.{digits}f}".replace("-", "−")


def how_many(n: int, noun: str) -> str:
    """`1 layer`, `1,200 layers`."""
    return f"{n:,} {noun if n == 1 else noun + 's'}"


def readable(feature: str) -> str:
    """A feature's name in a sentence: `word_length` → `word length`."""
    return feature.replace("_", " ")


MOST_NAMES = 5


def layer_range(layers: Sequence[object]) -> str:
    """`layer 3`, `layers 3–5`, `layers 0, 3–5`; names that are not numbers are listed, five at most."""
    if len(layers) == 1:
        return f"layer {layers[0]}"
    if not all(isinstance(layer, int) for layer in layers):
        shown = [str(layer) for layer in layers[:MOST_NAMES]]
        rest = len(layers) - len(shown)
        return f"layers {', '.join(shown)}" + (f" and {rest} more" if rest else "")
    runs: list[list[int]] = []
    for layer in layers:
        assert isinstance(layer, int)
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return "layers " + ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}–{r[-1]}" for r in runs)


def duration(seconds: float) -> str:
    """`less than a second`, `40 s`, `12 min`, `3.5 h`, `6 days`."""
    if seconds < 1:
        return "less than a second"
    for unit, size, most in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 72)):
        if seconds < most * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 10 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"


def size(n_bytes: float) -> str:
    """`12 kB`, `340 MB`, `1.5 GB`."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= scale:
            return (
                f"{n_bytes / scale:.2g} {unit}" if n_bytes < 10 * scale else f"{n_bytes / scale:.0f} {unit}"
            )
    return f"{n_bytes / 1e3:.0f} kB"
