r"""Noise ceilings of a group of subjects: what the best of models could reach with subjects like these.

Of a measure that is a cosine between vectors the mean subject is the mean of these vectors, and the ceilings
are those of Nili et al. (2014). Other measures have no mean subject. What they have is the scores of subjects
with one another: the mean of these is what *another subject*, taken as a model, reaches (`lower`). Where the
values make distances d that keep the triangle inequality, no model M whatever can be nearer than half the way
(`upper`):

    mean_{s≠t} d(s, t) ≤ mean_{s≠t} [d(s, M) + d(t, M)] = 2 mean_s d(s, M)

and where they are cosines of some vectors a_s, none has a mean above ‖Σ a_s‖ / S = √(mean of all s(s, t)).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from thinkalike.errors import InvalidInput
from thinkalike.inference.over_subjects import Ceilings, ceilings
from thinkalike.labels import Floats
from thinkalike.measures.measure import Measure
from thinkalike.measures.pair_forms import FINISHES, PAIR_FORMS, pair_form

Layers = Sequence[npt.NDArray[np.floating]]
SIDE_BY_SIDE = ("mutual-knn",)
"""Measures whose ceilings are of all subjects together, because simulations show that they hold. Those that
gain from mere units, as Procrustes does, find the group nearer than the truth."""
RANKED = ("rsa", "rsa-cosine", "rsa-correlation")
WORDS = {
    "mean subject": "each subject with the mean of the others, and of all",
    "side by side": "each subject with all others side by side, and with all",
    "bound": "subjects with one another; no model can be nearer than the upper one",
    "lower": "subjects with one another; nothing but the range of the measure bounds what a model can reach",
}
"""How ceilings were made → what they are"""


def way_of(measure: Measure) -> str:
    """How the ceilings of a measure are made: a key of `WORDS`."""
    if measure.name in SIDE_BY_SIDE:
        return "side by side"
    if measure.name in PAIR_FORMS and measure.name not in FINISHES:
        return "mean subject"
    return "lower" if measure.bound is None else "bound"


def measure_ceilings(measure: Measure, layers: Layers, names: Sequence[str]) -> Ceilings:
    """The ceilings of subjects' layers (n_items, n_units); none for one subject, or for those too wide."""
    unknown = np.full(len(layers), np.nan)
    if len(layers) < 2:
        return Ceilings(unknown, unknown)
    way = way_of(measure)
    if way == "side by side":
        return side_by_side(measure, layers)
    if way == "mean subject":
        return _mean_subject(measure, layers, names)
    try:
        among = measure.matrix(layers, names_a=names)
    except InvalidInput:  # subjects too wide for one another need not be too wide for a model
        return Ceilings(unknown, unknown)
    return between_subjects(among, measure.bound)


def between_subjects(scores: Floats, bound: str | None) -> Ceilings:
    """From the scores (n_subjects, n_subjects) of all with all; `bound` is what a measure says of itself.

    Examples
    --------
    Two subjects at a right angle: a model half way between them has 45° to both.

    >>> import numpy as np
    >>> found = between_subjects(np.array([[1.0, 0.0], [0.0, 1.0]]), "cosine")
    >>> found.lower.tolist(), found.upper.round(3).tolist()
    ([0.0, 0.0], [0.707, 0.707])
    """
    S = len(scores)
    others = ~np.eye(S, dtype=bool)
    lower = np.where(others, scores, 0.0).sum(axis=1) / (S - 1)
    apart = scores[others]
    if bound == "distance":
        upper = apart.mean() / 2
    elif bound == "share":
        upper = 1 - (1 - apart).mean() / 2
    elif bound == "angle":
        upper = np.cos(np.arccos(np.clip(apart, -1, 1)).mean() / 2)
    elif bound == "cosine":
        upper = np.sqrt(max(S + apart.sum(), 0.0)) / S
    else:
        upper = np.nan
    return Ceilings(lower, np.full(S, upper))


def side_by_side(measure: Measure, layers: Layers) -> Ceilings:
    """Each subject with all others, and with all: units together, the same sum of squares for everyone."""
    centred = [X - X.mean(axis=0, dtype=float) for X in layers]
    scaled = [X / max(float(np.linalg.norm(X)), 1e-300) for X in centred]
    everyone = np.concatenate(scaled, axis=1)
    others = [np.concatenate([*scaled[:s], *scaled[s + 1 :]], axis=1) for s in range(len(scaled))]
    lower = [measure(X, Y) for X, Y in zip(scaled, others, strict=True)]
    upper = [measure(X, everyone) for X in scaled]
    return Ceilings(np.array(lower), np.array(upper))


def _mean_subject(measure: Measure, layers: Layers, names: Sequence[str]) -> Ceilings:
    forms = [pair_form(measure.name, X, name) for X, name in zip(layers, names, strict=True)]
    vectors = np.stack(
        [np.concatenate([f.pairs, f.items if f.items is not None else []]) for f in forms]
    ).astype(np.float64)
    if measure.name not in RANKED:
        return ceilings(vectors)
    middle = (vectors.shape[1] + 1) / 2
    return ceilings(rankdata(vectors, axis=1) - middle, pool=_unit_ranks)  # whole numbers: ties stay ties


def _unit_ranks(vector: Floats) -> Floats:
    ranks = rankdata(vector) - (len(vector) + 1) / 2
    return ranks / np.linalg.norm(ranks)
