"""Salle et al. 2024: which features two models share, layer by layer, and where they part.

`scales.py` names the models and sizes, `experiment.py` runs it, `verdicts.py` and `beyond_verdicts.py` turn
numbers into statements, `beyond.py` looks at what the paper left open, `figures.py` draws.
"""

from __future__ import annotations

from thinkalike.recipes.salle2024.experiment import run
from thinkalike.recipes.salle2024.scales import SCALES

__all__ = ["SCALES", "run"]
