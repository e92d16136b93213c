r"""Noise ceilings of a group of subjects: what the best of models could reach with subjects like these.

Of a measure that is a cosine between vectors the mean subject is the mean of these vectors, and the ceilings
are those of Nili et al. (2014). Other measures have no mean subject. What they have is the scores of subjects
with one another: the mean of these is what *another subject*, taken as a model, reaches (`lower`). Where the
values make distances d that keep the triangle inequality, no model M whatever can be nearer than half the way
(`upper`):

    mean_{s≠t} d(s, t) ≤ mean_{s≠t} [d(s, M) + d(t, M)] = 2 mean_s d(s, M)

and where they are cosines of some vectors a_s, none has a mean above ‖Σ a_s‖ / S = √(mean of all s(s, t)).
What compares directions is bounded by how many of them the model has. Of all others the upper one is an
estimate: each subject with all, itself among them, side by side.

Canonical correlations and regressions have no mean subject: subjects' spans have no mean that is a span. But
what they say of a model M is bounded by the share of some matrix of each subject that M's directions hold,
tr(P_M A_s), with P_M the projector on them. No m directions hold more of the mean of these matrices than its
first m eigenvectors do (Ky Fan 1949):

    mean_s tr(P_M A_s) ≤ Σ_{i ≤ m} λ_i(mean_s A_s)

A_s is the projector P_s on subject s, or its Gram matrix of trace 1. Canonical correlations are square roots,
and the mean of roots is at most the root of the mean. The lower ceiling is what another subject reaches as a
model, by its m largest directions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from thinkalike.errors import InvalidInput
from thinkalike.inference.over_subjects import Ceilings, ceilings
from thinkalike.labels import Floats
from thinkalike.measures.inputs import as_layer
from thinkalike.measures.linear_maps import Basis, prepare_basis, prepare_leading
from thinkalike.measures.measure import Measure
from thinkalike.measures.pair_forms import FINISHES, PAIR_FORMS, pair_form

Layers = Sequence[npt.NDArray[np.floating]]
SIDE_BY_SIDE = ("mutual-knn",)
"""Measures whose lower ceiling, too, is of all other subjects together, because simulations show that it
holds. Those that gain from mere units, as Procrustes does, find the group nearer than the truth."""
RANKED = ("rsa", "rsa-cosine", "rsa-correlation")
RHO_A = "rsa-rho-a"
HELD_OUT = "regression-cv"
_MEANS = "each subject with the mean of the others, and of all"
_PAIRS = "subjects with one another"
_TOGETHER = "each subject with all others side by side, and with all"
_ESTIMATE = "the upper one is an estimate"
WORDS = {
    "mean subject": f"{_MEANS}; no model can be above the upper one",
    "mean ranks": f"{_MEANS}; {_ESTIMATE}, which a model that takes many pairs for equal can be a little "
    "above",
    "mean profile": f"{_MEANS}; {_ESTIMATE}, for another order of the features may be a little better",
    "side by side": f"{_TOGETHER}; {_ESTIMATE}, as no bound is known",
    "bound": f"{_PAIRS}; no model can be nearer than the upper one",
    "directions": f"{_PAIRS}, by as many directions as the model has, with which none can be above the "
    "upper one",
    "held out": f"{_PAIRS}, by as many directions as the model has; {_ESTIMATE}, what they explain of the "
    "direction that they share most, on the same items",
    "range": f"{_PAIRS}; the upper one is the end of the range, as nothing below it bounds what a model can "
    "reach",
    "estimate": f"{_PAIRS}; {_ESTIMATE}, as no bound is known: each subject with all side by side",
}
"""How ceilings were made → what they are"""


def way_of(measure: Measure) -> str:
    """How the ceilings of a measure are made: a key of `WORDS`."""
    if measure.name in SIDE_BY_SIDE:
        return "side by side"
    if measure.name in RANKED:
        return "mean ranks"
    if measure.name == RHO_A or (measure.name in PAIR_FORMS and measure.name not in FINISHES):
        return "mean subject"
    if measure.bound == "range":
        return "range"
    if measure.name in BEST:
        return "held out" if measure.name == HELD_OUT else "directions"
    return "estimate" if measure.bound is None else "bound"


def measure_ceilings(
    measure: Measure, layers: Layers, models: Layers, names: Sequence[str]
) -> tuple[Floats, Floats]:
    """The lower and the upper ceiling (n_models,) of the mean score of subjects' layers (n_items, n_units).

    NaN for one subject; the lower one also where subjects are too wide for one another, which a model need
    not be.
    """
    if len(layers) < 2:
        return np.full(len(models), np.nan), np.full(len(models), np.nan)
    if measure.name in BEST:
        return ceilings_of_directions(measure, layers, models, names)
    way = way_of(measure)
    if way in ("mean subject", "mean ranks"):
        found = _mean_subject(measure, layers, names)
    elif way == "side by side":
        found = side_by_side(measure, layers)
    else:
        found = _one_another(measure, layers, names)
    upper = measure.range[1] if way == "range" else found.upper.mean()
    return np.full(len(models), found.lower.mean()), np.full(len(models), upper)


def _one_another(measure: Measure, layers: Layers, names: Sequence[str]) -> Ceilings:
    try:
        among = measure.matrix(layers, names_a=names)
    except InvalidInput:  # subjects too wide for one another need not be too wide for a model
        unknown = np.full(len(layers), np.nan)
        return Ceilings(unknown, unknown)
    found = between_subjects(among, measure.bound)
    return found._replace(upper=side_by_side(measure, layers).upper) if measure.bound is None else found


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
        upper = _mean_length(apart, S)
    elif bound == "root":
        upper = np.sqrt(_mean_length(apart**2, S))
    else:
        upper = np.nan
    return Ceilings(lower, np.full(S, upper))


def _mean_length(cosines: Floats, n: int) -> float:
    """‖Σ a_s‖ / n of n unit vectors, from the cosines of every two."""
    return float(np.sqrt(max(n + cosines.sum(), 0.0)) / n)


def side_by_side(measure: Measure, layers: Layers) -> Ceilings:
    """Each subject with all others, and with all: units together, the same sum of squares for everyone.

    Layers are centred, unless the measure asks where the origin is.
    """
    moved = "translation" in measure.invariances
    centred = [X - X.mean(axis=0, dtype=float) if moved else X for X in layers]
    scaled = [X / max(float(np.linalg.norm(X)), 1e-300) for X in centred]
    everyone = np.concatenate(scaled, axis=1)
    others = [np.concatenate([*scaled[:s], *scaled[s + 1 :]], axis=1) for s in range(len(scaled))]
    lower = [measure(X, Y) for X, Y in zip(scaled, others, strict=True)]
    upper = [measure(X, everyone) for X in scaled]
    return Ceilings(np.array(lower), np.array(upper))


def _mean_subject(measure: Measure, layers: Layers, names: Sequence[str]) -> Ceilings:
    vectors = np.stack([_vector(measure, X, name) for X, name in zip(layers, names, strict=True)])
    if measure.name not in (*RANKED, RHO_A):
        return ceilings(vectors)
    P = vectors.shape[1]
    untied = np.sqrt((P**3 - P) / 12)  # the length of ranks without ties

    def pool(vector: Floats) -> Floats:
        ranks = rankdata(vector) - (P + 1) / 2
        return np.asarray(ranks / (untied if measure.name == RHO_A else np.linalg.norm(ranks)))

    ranks = rankdata(vectors, axis=1) - (P + 1) / 2  # whole numbers: ties stay ties
    return ceilings(ranks, pool=pool, length=untied if measure.name == RHO_A else None)


def _vector(measure: Measure, X: npt.NDArray[np.floating], name: str) -> Floats:
    """What the measure compares, over pairs of items."""
    if measure.name == RHO_A:
        return np.asarray(measure.prepare(as_layer(X, name), name))
    form = pair_form(measure.name, X, name)
    return np.concatenate([form.pairs, form.items if form.items is not None else []]).astype(np.float64)


class Best(NamedTuple):
    """How far a measure can get.

    Attributes
    ----------
    reach : (bases of the subjects, m directions of the model) → a value that the mean score is not above
    prepare : layer → its directions
    """

    reach: Callable[[Sequence[Basis], int], float]
    prepare: Callable[..., Basis] = prepare_basis


def largest_share(factors: Sequence[Floats], m: int) -> float:
    """Σ_{i ≤ m} λ_i(mean_s F_s F_sᵀ) of factors (n_items, any).

    Examples
    --------
    Two subjects of one direction each, at a right angle: one direction holds half of both, two hold all.

    >>> import numpy as np
    >>> one, other = np.eye(3)[:, :1], np.eye(3)[:, 1:2]
    >>> [round(largest_share([one, other], m), 3) for m in (1, 2)]
    [0.5, 1.0]
    """
    sizes = np.linalg.svd(np.concatenate(factors, axis=1), compute_uv=False)
    return float((sizes[:m] ** 2).sum() / len(factors))


def _projectors(bases: Sequence[Basis], m: int, over: Callable[[int, int], int]) -> float:
    return largest_share([one.directions / np.sqrt(over(one.rank, m)) for one in bases], m)


def _correlations(bases: Sequence[Basis], m: int) -> float:
    return float(np.sqrt(_projectors(bases, m, min)))


def _overlap(bases: Sequence[Basis], m: int) -> float:
    return _projectors(bases, m, max)


def _to_model(bases: Sequence[Basis], m: int) -> float:
    """What subjects explain of a model is a mean over its directions, and none is better than the best."""
    return largest_share([one.directions for one in bases], 1)


def _to_subject(bases: Sequence[Basis], m: int) -> float:
    sizes = [one.sizes / np.linalg.norm(one.sizes) for one in bases]
    return largest_share([one.directions * size for one, size in zip(bases, sizes, strict=True)], m)


def _both_ways(bases: Sequence[Basis], m: int) -> float:
    return (_to_model(bases, m) + _to_subject(bases, m)) / 2


def _anything(bases: Sequence[Basis], m: int) -> float:
    """Weights may be all on one correlation, and that is 1 for a model with a direction of each subject."""
    return 1.0


BEST = {
    "cca": Best(_correlations),
    "svcca": Best(_correlations, prepare_leading),
    "pwcca": Best(_anything),
    "eigenspace-overlap": Best(_overlap),
    "regression": Best(_to_model),
    "regression-reverse": Best(_to_subject),
    "regression-mean": Best(_both_ways),
    "regression-cv": Best(_to_model),
}
"""Measure → the best that a model can do. Of "regression-cv" on the same items: held-out ones are predicted
less well on average, but nothing proves it for those at hand."""


def ceilings_of_directions(
    measure: Measure, layers: Layers, models: Layers, names: Sequence[str]
) -> tuple[Floats, Floats]:
    """Lower and upper (n_models,), for a measure in `BEST`; the lower one NaN where subjects are too wide."""
    reach, prepare = BEST[measure.name]
    bases = [prepare(as_layer(X)) for X in layers]
    ranks = [prepare(as_layer(X)).rank for X in models]
    lower = {m: _another_subject(measure, layers, m, names) for m in set(ranks)}
    upper = {m: min(reach(bases, m), 1.0) for m in set(ranks)}
    return np.array([lower[m] for m in ranks]), np.array([upper[m] for m in ranks])


def _another_subject(measure: Measure, layers: Layers, m: int, names: Sequence[str]) -> float:
    """The mean score of subjects with the first m directions of one another."""
    try:
        scores = measure.matrix(layers, [leading(X, m) for X in layers], names_a=names, names_b=names)
    except InvalidInput:  # with so many directions
        return np.nan
    return float(scores[~np.eye(len(layers), dtype=bool)].mean())


def leading(X: npt.NDArray[np.floating], m: int) -> Floats:
    """The first m principal components of a layer, (n_items, m or as many as it has)."""
    basis = prepare_basis(as_layer(X))
    return np.asarray(basis.directions[:, :m] * basis.sizes[:m])
