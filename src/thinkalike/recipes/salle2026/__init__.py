"""The third version of Salle et al.: what makes the models of a population alike.

`scales.py` names models and sizes, `cohort.py` says what is known of those on the hub, `rules.py` what
decides each statement, `work.py` looks at every model on every set of sentences, `measures.py` takes the
effects, `figures.py` draws; `experiment.py` runs all of it.
"""

from __future__ import annotations

from thinkalike.recipes.salle2026.experiment import run
from thinkalike.recipes.salle2026.scales import SCALES

__all__ = ["SCALES", "run"]
