"""A vector per item and layer, from any model or array: in memory, in stores, from elsewhere."""

from __future__ import annotations

from thinkalike.activations.store import Activations
from thinkalike.lazy import loader

_HOMES = {"extract": "thinkalike.activations.extraction"}

__all__ = ["Activations", "extract"]


__getattr__ = loader(__name__, _HOMES)
