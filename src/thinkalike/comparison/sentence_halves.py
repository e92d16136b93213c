"""Halves of the sentences of some stimuli, for the reliability of a geometry."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thinkalike.comparison.geometry_similarity import sentences_of
from thinkalike.encoding.settings import Settings
from thinkalike.errors import InvalidInput
from thinkalike.inference.halves import OF_TWO_VECTORS, HalvesPlan, plan_halves
from thinkalike.stimuli.table import Stimuli


def conditions_of(stimuli: Stimuli) -> npt.NDArray[np.int64]:
    """(n_items,) one number for all items alike in every feature."""
    features = stimuli.features
    numbers = features.groupby(list(features), observed=True, dropna=False).ngroup()
    return np.asarray(numbers, dtype=np.int64)


def halves_of(stimuli: Stimuli, settings: Settings) -> HalvesPlan | None:
    """None where too few combinations of features stand in both halves, or the distance is not of vectors."""
    if settings.distance not in OF_TWO_VECTORS:
        return None
    try:
        return plan_halves(conditions_of(stimuli), sentences_of(stimuli), seed=settings.seed)
    except InvalidInput:
        return None
