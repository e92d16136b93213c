"""Profiles, similarity matrices, inference, explanations, maps: what several systems say together."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "Comparison": "thinkalike.comparison.comparison",
    "Explanation": "thinkalike.comparison.explain",
    "Profile": "thinkalike.comparison.profiles",
    "SimilarityMatrix": "thinkalike.comparison.similarity",
    "compare": "thinkalike.comparison.comparing",
    "explain": "thinkalike.comparison.explain",
    "profile": "thinkalike.comparison.profiling",
    "similarity": "thinkalike.comparison.similarity",
}

__all__ = [
    "Comparison",
    "Explanation",
    "Profile",
    "SimilarityMatrix",
    "compare",
    "explain",
    "profile",
    "similarity",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'thinkalike.comparison' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
