r"""Noise ceilings of measures that compare directions, for models of so many directions.

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

from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats
from thinkalike.measures.inputs import as_layer
from thinkalike.measures.linear_maps import Basis, prepare_basis, prepare_leading
from thinkalike.measures.measure import Measure

Layers = Sequence[npt.NDArray[np.floating]]


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
