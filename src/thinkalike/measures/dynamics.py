"""Dynamical similarity: whether two layers move alike through a sequence."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput, MissingExtra
from thinkalike.measures.inputs import Array, Vectors, as_layer
from thinkalike.measures.measure import Measure

DELAYS = 4
RANK = 10


@dataclass(frozen=True)
class SequenceMeasure(Measure):
    """Of trajectories: one (n_steps, n_units), or several of equal length (n_runs, n_steps, n_units)."""

    def accept(self, values: npt.ArrayLike, name: str) -> Vectors:
        if np.ndim(values) != 3:
            return as_layer(values, name)
        runs = np.asarray(values)
        return as_layer(runs.reshape(-1, runs.shape[2]), name).reshape(runs.shape)


def prepare_dynamics(X: Vectors, name: str = "X", *, delays: int = DELAYS, rank: int = RANK) -> Array:
    """The linear map that takes a delay embedding of `X` one step on, in its `rank` leading directions."""
    n_steps, n_units = X.shape[-2:]
    if n_steps < delays + rank + 2:
        raise InvalidInput(
            f"{name} has {n_steps} steps: dsa needs at least {delays + rank + 2} to see dynamics. "
            "Give longer sequences, with rows in the order of time."
        )
    centred = X - X.reshape(-1, n_units).mean(axis=0)
    dmd = _dsa().DMD(centred, n_delays=delays, rank=min(rank, delays * n_units), lamb=1e-8)
    dmd.fit()
    return dmd.A_v


def dsa(A: Array, B: Array) -> float:
    """Squared Wasserstein distance between the eigenvalues of two layers' one-step maps, in [0, ∞).

    0 for the same modes of oscillation and decay; not a metric, for it does not see how the modes are mixed.
    Ostrow et al. 2023, in the form that `dsa-metric` 2 takes by default.
    """
    return abs(float(_dsa().SimilarityTransformDist(score_method="wasserstein").fit_score(A, B)))


def _dsa() -> ModuleType:
    try:
        import DSA
    except ImportError:
        raise MissingExtra.needed("dsa-metric", "dsa") from None
    return DSA
