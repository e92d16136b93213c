"""What made the numbers: versions of packages, and digests of settings."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version

RUNNING_MODELS = ("thinkalike", "torch", "transformers", "tokenizers")
ANALYSING = (
    "thinkalike",
    "numpy",
    "scipy",
    "numba",
    "pandas",
    "scikit-learn",
    "torch",
    "transformers",
    "zarr",
)


def versions(packages: Sequence[str] = ANALYSING) -> dict[str, str]:
    """Package → version, and Python's."""
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def digest_of(settings: Mapping[str, object]) -> str:
    """SHA-256 of plain values, independent of their order."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()
