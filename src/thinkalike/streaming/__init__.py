"""CKA between all layers of several models over running text, in one pass."""

from thinkalike.streaming.cka_matrix import CKAMatrix
from thinkalike.streaming.over_activations import activations_cka
from thinkalike.streaming.over_text import stream_cka

__all__ = ["CKAMatrix", "activations_cka", "stream_cka"]
