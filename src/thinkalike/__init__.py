"""What makes two language models think alike?

The public names are loaded when first used, so that `import thinkalike` is light and loads no torch.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Stimuli": "thinkalike.stimuli",
    "Activations": "thinkalike.activations",
    "extract": "thinkalike.activations",
    "MLEM": "thinkalike.encoding",
    "MEASURES": "thinkalike.measures",
    "stream_cka": "thinkalike.measures",
    "profile": "thinkalike.comparison",
    # Not "thinkalike.comparison": there, once loaded, these are the modules of the same name.
    "similarity": "thinkalike.comparison.similarity",
    "compare": "thinkalike.comparison",
    "explain": "thinkalike.comparison.explain",
    "stitch": "thinkalike.stitching",
    "ThinkalikeError": "thinkalike.errors",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'thinkalike' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
