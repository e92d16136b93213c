"""How alike two layers are: (X, Y) → one number, with what each measure is blind to."""

from thinkalike.measures.measure import INVARIANCES, Measure
from thinkalike.measures.table import MEASURES, get_measure

__all__ = ["INVARIANCES", "MEASURES", "Measure", "get_measure"]
