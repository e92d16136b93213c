"""What was installed when the numbers were made."""

from __future__ import annotations

import platform
from importlib.metadata import version

PACKAGES = (
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


def versions() -> dict[str, str]:
    """Package → version, and Python's."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
