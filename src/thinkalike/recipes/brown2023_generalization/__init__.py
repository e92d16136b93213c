"""Figures 2, 7 and 8 of Brown et al. 2023: classifiers that agree in distribution and differ out of it."""

from __future__ import annotations

from thinkalike.recipes.brown2023_generalization.experiment import run
from thinkalike.recipes.brown2023_generalization.scales import SCALES

__all__ = ["SCALES", "run"]
