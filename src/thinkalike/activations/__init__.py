"""What the systems answer: a vector per item and layer, from any model or array."""

from __future__ import annotations

import importlib
from typing import Any

from thinkalike.activations.store import Activations

_HOMES = {
    "ARCHITECTURES": "thinkalike.activations.architectures",
    "extract": "thinkalike.activations.extraction",
    "layers_of": "thinkalike.activations.architectures",
    "start_from": "thinkalike.activations.inject",
    "states_at": "thinkalike.activations.inject",
}

__all__ = ["ARCHITECTURES", "Activations", "extract", "layers_of", "start_from", "states_at"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'thinkalike.activations' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
