"""Salle et al. 2024: which features two models share, layer by layer, and where they part.

`scales.py` names the models and sizes, `rules.py` says what decides each statement, `sets.py` draws
sentences, `observing.py` looks at all models on one set, `measures.py` takes the effects from it, `beyond.py`
those of what the paper left open (`told_apart.py`: seed, positions and architecture), `other_analyses.py`
tries other analyses; `experiment.py` runs all of it.
"""

from __future__ import annotations

from thinkalike.recipes.salle2024.experiment import run
from thinkalike.recipes.salle2024.scales import SCALES

__all__ = ["SCALES", "run"]
