"""Brown et al. 2023, section 5: CKA within and between the members of a family of growing models.

`scales.py` names models and sizes, `streams.py` runs CKA over text and reads configurations, `experiment.py`
puts it together, `measures.py` turns values into effects, `rules.py` judges them, `figures.py` draws.
"""

from __future__ import annotations

from thinkalike.recipes.brown2023_scaling.experiment import run
from thinkalike.recipes.brown2023_scaling.scales import SCALES

__all__ = ["SCALES", "run"]
