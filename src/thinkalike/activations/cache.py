"""Where extracted activations are kept, under a key that names all that changes the numbers."""

from __future__ import annotations

import re
from pathlib import Path

from thinkalike.machine import cache_directory


def cache_path(model: str, key: str) -> str:
    """The store for a key. The model's name is in it for people to read; the key alone decides."""
    readable = re.sub(r"[^\w.@-]+", "-", Path(model).name).strip("-.")[:60] or "model"
    return f"{cache_directory().rstrip('/')}/activations/{readable}-{key[:24]}.zarr"
