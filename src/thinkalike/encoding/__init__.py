"""MLEM: which features explain the distances between the activations of a system."""

from thinkalike.encoding.crossval import CrossValidation, cross_validate, make_plan
from thinkalike.encoding.folds import context_groups
from thinkalike.encoding.importance import IMPORTANCES
from thinkalike.encoding.interactions import compare_interactions, interaction_importance
from thinkalike.encoding.mlem import MLEM
from thinkalike.encoding.resampling import leave_out, plan_resamples, resample, split_halves
from thinkalike.encoding.settings import PRESETS, Settings

__all__ = [
    "IMPORTANCES",
    "MLEM",
    "PRESETS",
    "CrossValidation",
    "Settings",
    "compare_interactions",
    "context_groups",
    "cross_validate",
    "interaction_importance",
    "leave_out",
    "make_plan",
    "plan_resamples",
    "resample",
    "split_halves",
]
