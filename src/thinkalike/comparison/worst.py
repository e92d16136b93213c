"""The pairs of items whose distances the named features explain worst: is a feature missing?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from thinkalike.labels import Row, row_name
from thinkalike.measures.rsa import worst_explained
from thinkalike.pairs.distances import DISTANCES
from thinkalike.stimuli.feature_coding import code_features

if TYPE_CHECKING:
    from thinkalike.stimuli.table import Stimuli


def worst_pairs(
    X: np.ndarray,
    Y: np.ndarray,
    stimuli: Stimuli,
    settings: Mapping[str, Any],
    *,
    names: Sequence[Row],
    n_worst: int,
) -> pd.DataFrame:
    """The items of each pair, and how far apart they are in either layer beyond what the features say.

    Of all pairs of the same two words only the worst is named. Residuals are in standard deviations of the
    ranked distances; positive is farther apart than predicted.
    """
    coded = code_features(stimuli.features, ordered=settings["ordered"], missing=settings["missing"])
    distance = geometric_distance(settings)
    labels = _words(stimuli)
    i, j, residuals = worst_explained(X, Y, coded, n_worst=n_worst, distance=distance, labels=labels)
    shown = items_in_context(stimuli)
    return pd.DataFrame(
        {
            "first": [shown[k] for k in i],
            "second": [shown[k] for k in j],
            f"in {row_name(names[0])}": [_farther(r) for r in residuals[0]],
            f"in {row_name(names[1])}": [_farther(r) for r in residuals[1]],
        }
    )


def _words(stimuli: Stimuli) -> np.ndarray | None:
    """A number for each item, the same for the same word; None for items that are not words."""
    items = stimuli.items
    return pd.factorize(items["word"].str.lower())[0] if "word" in items else None


def geometric_distance(settings: Mapping[str, Any]) -> str:
    """The distance of a comparison; euclidean for a function, of which a run keeps only the name."""
    named: str = settings["distance"]
    return named if named in DISTANCES else "euclidean"


def items_in_context(stimuli: Stimuli) -> list[str]:
    """Each item as people can find it: the word in brackets in its sentence, or its id."""
    items = stimuli.items
    if "sentence" not in items:
        return [str(item) for item in items.index]
    texts = items["sentence"].map(stimuli.sentences)
    return [
        f"{text[:start]}[{text[start:end]}]{text[end:]}"
        for text, start, end in zip(texts, items["start"], items["end"], strict=True)
    ]


def _farther(residual: float) -> str:
    return f"{abs(residual):.1f} SD {'farther' if residual > 0 else 'nearer'}"
