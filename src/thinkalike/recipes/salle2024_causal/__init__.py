"""Beyond Salle et al. 2024: what is important for the distances is taken out, and the model is watched."""

from __future__ import annotations

from thinkalike.recipes.salle2024_causal.experiment import run
from thinkalike.recipes.salle2024_causal.scales import SCALES

__all__ = ["SCALES", "run"]
