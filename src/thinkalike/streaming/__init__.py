"""Models over running text: CKA between all layers in one pass, and how differently they predict."""

from thinkalike.streaming.cka_matrix import CKAMatrix
from thinkalike.streaming.output_distances import OutputDistances, compare_outputs
from thinkalike.streaming.over_activations import activations_cka
from thinkalike.streaming.over_text import stream_cka

__all__ = ["CKAMatrix", "OutputDistances", "activations_cka", "compare_outputs", "stream_cka"]
