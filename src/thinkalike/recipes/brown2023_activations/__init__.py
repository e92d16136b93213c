"""Figures 1, 4, 5 and 6 of Brown et al. 2023: GeLU against SoLU by stitching."""

from __future__ import annotations

from thinkalike.recipes.brown2023_activations.experiment import run
from thinkalike.recipes.brown2023_activations.scales import SCALES

__all__ = ["SCALES", "run"]
