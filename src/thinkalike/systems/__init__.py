"""What answers: models of any architecture, opened once, read and called in one way; the bundled models."""

from __future__ import annotations

from thinkalike.lazy import loader

_HOMES = {
    "ARCHITECTURES": "thinkalike.systems.architectures",
    "layers_of": "thinkalike.systems.stack",
    "start_from": "thinkalike.systems.inject",
    "states_at": "thinkalike.systems.inject",
}

__all__ = ["ARCHITECTURES", "layers_of", "start_from", "states_at"]


__getattr__ = loader(__name__, _HOMES)
