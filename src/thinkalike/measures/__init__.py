"""How alike two layers are: (X, Y) → one number, with what each measure is blind to."""

from thinkalike.measures.measure import INVARIANCES, Measure
from thinkalike.measures.measure_table import MEASURES, get_measure, layer_measures
from thinkalike.measures.probes import probe_layers

__all__ = [
    "INVARIANCES",
    "MEASURES",
    "Measure",
    "get_measure",
    "layer_measures",
    "probe_layers",
]
