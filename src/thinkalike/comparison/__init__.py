"""Profiles, similarity matrices, inference, explanations, maps: what several systems say together."""

from __future__ import annotations

from thinkalike.lazy import loader

_HOMES = {
    "Analysis": "thinkalike.comparison.analyses",
    "Comparison": "thinkalike.comparison.comparison",
    "Explanation": "thinkalike.comparison.explaining",
    "Profile": "thinkalike.comparison.profiles",
    "Robustness": "thinkalike.comparison.robustness",
    "SimilarityMatrix": "thinkalike.comparison.similarity_matrix",
    "compare": "thinkalike.comparison.comparing",
    "explain": "thinkalike.comparison.explaining",
    "profile": "thinkalike.comparison.profiling",
    "similarity": "thinkalike.comparison.similarity_matrix",
}

__all__ = [
    "Analysis",
    "Comparison",
    "Explanation",
    "Profile",
    "Robustness",
    "SimilarityMatrix",
    "compare",
    "explain",
    "profile",
    "similarity",
]


__getattr__ = loader(__name__, _HOMES)
