"""Function: can the top of one model work with the bottom of another?"""

from __future__ import annotations

from thinkalike.lazy import loader

_HOMES = {
    "KINDS": "thinkalike.stitching.phi",
    "LabelledTexts": "thinkalike.stitching.examples",
    "StitchResult": "thinkalike.stitching.result",
    "StitchedModel": "thinkalike.stitching.model",
    "TaskFit": "thinkalike.stitching.task",
    "asymmetry": "thinkalike.stitching.statistics",
    "mean_asymmetry": "thinkalike.stitching.statistics",
    "stitch": "thinkalike.stitching.run",
}

__all__ = [
    "KINDS",
    "LabelledTexts",
    "StitchResult",
    "StitchedModel",
    "TaskFit",
    "asymmetry",
    "mean_asymmetry",
    "stitch",
]


__getattr__ = loader(__name__, _HOMES)
