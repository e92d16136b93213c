"""What the systems answer: a vector per item and layer, from any model or array."""

from __future__ import annotations

from thinkalike.activations.store import Activations
from thinkalike.lazy import loader

_HOMES = {
    "ARCHITECTURES": "thinkalike.activations.architectures",
    "extract": "thinkalike.activations.extraction",
    "layers_of": "thinkalike.activations.architectures",
    "start_from": "thinkalike.activations.inject",
    "states_at": "thinkalike.activations.inject",
}

__all__ = ["ARCHITECTURES", "Activations", "extract", "layers_of", "start_from", "states_at"]


__getattr__ = loader(__name__, _HOMES)
