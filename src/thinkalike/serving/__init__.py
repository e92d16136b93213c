"""A local page to explore a run or an atlas with, for this machine alone."""

from __future__ import annotations

from thinkalike.serving.server import serve

__all__ = ["serve"]
