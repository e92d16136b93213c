"""Profiles, similarity matrices, inference, explanations, maps: what several systems say together."""

from __future__ import annotations

from thinkalike.lazy import loader

_HOMES = {
    "Analysis": "thinkalike.comparison.analyses",
    "Comparison": "thinkalike.comparison.comparison",
    "Explanation": "thinkalike.comparison.explaining",
    "GroupComparison": "thinkalike.comparison.group",
    "GroupProfile": "thinkalike.comparison.group_profile",
    "Profile": "thinkalike.comparison.profiles",
    "Robustness": "thinkalike.comparison.robustness",
    "RunPlan": "thinkalike.comparison.run_plan",
    "SimilarityMatrix": "thinkalike.comparison.similarity_matrix",
    "compare": "thinkalike.comparison.comparing",
    "compare_with_group": "thinkalike.comparison.group_scoring",
    "explain": "thinkalike.comparison.explaining",
    "plan": "thinkalike.comparison.planning",
    "probes_beside_profile": "thinkalike.comparison.probe_table",
    "profile": "thinkalike.comparison.profiling",
    "profile_group": "thinkalike.comparison.group_profile",
    "similarity": "thinkalike.comparison.layer_similarity",
}

__all__ = [
    "Analysis",
    "Comparison",
    "Explanation",
    "GroupComparison",
    "GroupProfile",
    "Profile",
    "Robustness",
    "RunPlan",
    "SimilarityMatrix",
    "compare",
    "compare_with_group",
    "explain",
    "plan",
    "probes_beside_profile",
    "profile",
    "profile_group",
    "similarity",
]


__getattr__ = loader(__name__, _HOMES)
