"""Function: can the top of one model work with the bottom of another?"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "KINDS": "thinkalike.stitching.maps",
    "LabelledTexts": "thinkalike.stitching.examples",
    "StitchResult": "thinkalike.stitching.result",
    "StitchedModel": "thinkalike.stitching.model",
    "TaskFit": "thinkalike.stitching.task",
    "asymmetry": "thinkalike.stitching.statistics",
    "stitch": "thinkalike.stitching.run",
}

__all__ = [
    "KINDS",
    "LabelledTexts",
    "StitchResult",
    "StitchedModel",
    "TaskFit",
    "asymmetry",
    "stitch",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'thinkalike.stitching' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
