"""How alike two layers are: (X, Y) → one number, with what each measure is blind to; CKA over streams."""

from thinkalike.measures.measure import INVARIANCES, Measure
from thinkalike.measures.over_activations import activations_cka
from thinkalike.measures.over_text import stream_cka
from thinkalike.measures.probes import probe_layers
from thinkalike.measures.table import MEASURES, get_measure, layer_measures

__all__ = [
    "INVARIANCES",
    "MEASURES",
    "Measure",
    "activations_cka",
    "get_measure",
    "layer_measures",
    "probe_layers",
    "stream_cka",
]
