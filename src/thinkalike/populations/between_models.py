"""How far apart whole models are, from their fingerprints: one table of distances, `MODEL_DISTANCES`.

*features*: 1 − mean τ_w over all pairs of layers. For many models there is a short vector that nearly gives
it: without ties τ_w of two profiles is a scalar product: with s the signs of the differences over pairs of
features and w the weights of the pairs, τ = ½ (u_x · v_y + v_x · u_y), where u = w s / √Σ w s² and
v = s / √Σ w s². A scalar product of means is the mean of scalar products: the mean of (u, v) over the layers
of a model is all that the mean τ_w with another model needs. Features that tie make it an estimate, for their
weights then depend on both profiles; the compiled loop is exact.

*warped*, as the third version of Salle et al. has it: dynamic time warping of the layers' raw importances
(the embeddings left out), with the step pattern *symmetric2* of Sakoe and Chiba (1978): a step along both
counts its cost twice,

    D_ij = min(D_{i−1,j} + c_ij, D_{i,j−1} + c_ij, D_{i−1,j−1} + 2 c_ij),

so that every warping has the weight n + m, by which D_nm is divided.

*warped-shares*: importances as shares of their layer's, and the mean along the path
(`thinkalike.comparison.trajectories`).

*rsa*: from the distances of items, all blocks of a model side by side.

Between single layers, `layer_pairs` adds what that version has there: the Euclidean distance of importances,
and R², the squared correlation of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numba
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.spatial.distance import cdist

from thinkalike.comparison.model_distances import block_places
from thinkalike.comparison.trajectories import trajectory_distances
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.inference.weighted_tau import (
    harmonic_sums,
    pair_weights,
    sign_table,
    signs_of,
    tau_of_signs,
)
from thinkalike.labels import Floats
from thinkalike.machine import compiled
from thinkalike.populations.fingerprint_record import (
    SKETCHED,
    Fingerprint,
    check_same_reference,
    similarity_of,
)
from thinkalike.populations.sketch import sketched_rsa
from thinkalike.saving import Kept
from thinkalike.types import Chart

Single = npt.NDArray[np.float32]

FEATURES = "features"
"""The name of the distance that is taken if none is said"""


def mean_tau_matrix(profiles: Sequence[Floats], others: Sequence[Floats] | None = None) -> Floats:
    """Mean τ_w over all pairs of layers, of `profiles` (n_layers, F) with one another or with `others`.

    Within a model the diagonal is left out. NaN where no pair of layers has a τ_w.
    """
    rows, starts = _stacked(profiles)
    if others is None:
        values = np.full((len(profiles), len(profiles)), np.nan)
        _fill_own(rows, starts, harmonic_sums(profiles[0].shape[1]), values)
        return values
    other_rows, other_starts = _stacked(others)
    values = np.full((len(profiles), len(others)), np.nan)
    _fill_between(rows, starts, other_rows, other_starts, harmonic_sums(profiles[0].shape[1]), values)
    return values


def compact(importance: Floats) -> Single:
    """The short vector (F(F − 1),) of a model's importances (n_layers, F); layers that are constant left out.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import weightedtau
    >>> x, y = np.random.default_rng(0).normal(size=(2, 1, 6))
    >>> bool(np.isclose(compact_tau(compact(x), compact(y)[None])[0], weightedtau(x[0], y[0]).statistic))
    True
    """
    signs = signs_of(importance)
    first, second = np.triu_indices(importance.shape[1], k=1)
    s, w = signs[:, first, second], pair_weights(signs, signs)[:, first, second]
    norm = np.sqrt((w * s**2).sum(axis=1))
    known = norm > 0
    if not known.any():
        return np.zeros(2 * len(first), dtype=np.float32)
    s, w, norm = s[known], w[known], norm[known][:, None]
    return np.concatenate([(w * s / norm).mean(axis=0), (s / norm).mean(axis=0)]).astype(np.float32)


def compact_tau(one: Single, others: Single) -> Floats:
    """The estimated mean τ_w of a model with others (n, F(F − 1)), all by their short vectors."""
    half = len(one) // 2
    turned = np.concatenate([one[half:], one[:half]])
    return 0.5 * (others @ turned).astype(np.float64)


def _stacked(profiles: Sequence[Floats]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int64]]:
    starts = np.concatenate([[0], np.cumsum([len(one) for one in profiles])])
    return sign_table(np.concatenate(profiles)).astype(np.int8), starts


@compiled(error_model="numpy")
def _block_mean(x, y, harmonic, own):  # type: ignore[no-untyped-def]
    total, count = 0.0, 0
    for i in range(len(x)):
        for j in range(i if own else len(y)):
            value = tau_of_signs(x[i], y[j], harmonic)
            if value == value:
                total += value
                count += 1
    return total / count if count else np.nan


@compiled(parallel=True, error_model="numpy")
def _fill_own(rows, starts, harmonic, values):  # type: ignore[no-untyped-def]
    n = len(values)
    for k in numba.prange(n):
        a = k // 2 if k % 2 == 0 else n - 1 - k // 2  # short and long rows in turn: equal work
        x = rows[starts[a] : starts[a + 1]]
        for b in range(a):
            values[a, b] = values[b, a] = _block_mean(x, rows[starts[b] : starts[b + 1]], harmonic, False)
        values[a, a] = _block_mean(x, x, harmonic, True)


@compiled(parallel=True, error_model="numpy")
def _fill_between(rows, starts, others, other_starts, harmonic, values):  # type: ignore[no-untyped-def]
    for b in numba.prange(values.shape[1]):
        y = others[other_starts[b] : other_starts[b + 1]]
        for a in range(len(values)):
            values[a, b] = _block_mean(rows[starts[a] : starts[a + 1]], y, harmonic, False)


def warped(x: Floats, y: Floats) -> float:
    """The normalised distance of two sequences of importances (n, F) and (m, F) by symmetric2."""
    return float(_symmetric2(np.ascontiguousarray(x), np.ascontiguousarray(y)))


def warped_matrix(profiles: Sequence[Floats]) -> Floats:
    """The same between all of `profiles`, each (n_layers, F): (n, n)."""
    lengths = np.array([len(one) for one in profiles])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    values = np.zeros((len(profiles), len(profiles)))
    _fill_symmetric2(np.concatenate(profiles), starts, values)
    return values


@compiled(error_model="numpy")
def _symmetric2(x, y):  # type: ignore[no-untyped-def]
    n, m = len(x), len(y)
    before, now = np.empty(m), np.empty(m)
    for i in range(n):
        for j in range(m):
            cost = 0.0
            for f in range(x.shape[1]):
                cost += (x[i, f] - y[j, f]) ** 2
            cost = np.sqrt(cost)
            if i == 0 and j == 0:
                now[j] = cost
            elif i == 0:
                now[j] = now[j - 1] + cost
            elif j == 0:
                now[j] = before[j] + cost
            else:
                now[j] = min(before[j - 1] + 2 * cost, min(before[j], now[j - 1]) + cost)
        before, now = now, before
    return before[m - 1] / (n + m)


@compiled(parallel=True, error_model="numpy")
def _fill_symmetric2(rows, starts, values):  # type: ignore[no-untyped-def]
    for a in numba.prange(len(values)):
        for b in range(a):
            one = rows[starts[a] : starts[a + 1]]
            other = rows[starts[b] : starts[b + 1]]
            values[a, b] = values[b, a] = _symmetric2(one, other)


def one_less_mean_tau(profiles: Sequence[Floats]) -> Floats:
    """1 − mean τ_w over all pairs of layers; 0 on the diagonal."""
    values = 1.0 - mean_tau_matrix(profiles)
    np.fill_diagonal(values, 0.0)
    return values


def warped_shares(profiles: Sequence[Floats]) -> Floats:
    """Mean distance along the best monotone matching of layers, importances as shares of their layer's."""
    return trajectory_distances([str(k) for k in range(len(profiles))], profiles).warped


@dataclass(frozen=True)
class ModelDistance:
    """One way to say how far apart models are.

    Attributes
    ----------
    of : {"importance", "geometry"}
        What it is made from; only importances have folds and resamples.
    between : from a list of importances (n_layers, F) to (n, n); None for geometry.
    blocks : whether the embeddings are left out.
    """

    name: str
    about: str
    of: Literal["importance", "geometry"]
    between: Callable[[Sequence[Floats]], Floats] | None = None
    blocks: bool = True


MODEL_DISTANCES = {
    one.name: one
    for one in (
        ModelDistance(
            FEATURES, "1 − mean weighted τ over all pairs of layers", "importance", one_less_mean_tau, False
        ),
        ModelDistance("warped", "raw importances warped (third version)", "importance", warped_matrix),
        ModelDistance("warped-shares", "shares of importance warped", "importance", warped_shares),
        ModelDistance("rsa", "√(2(1 − ρ)) of all blocks side by side", "geometry"),
    )
}
"""Name → distance between models"""


@dataclass(frozen=True, eq=False, repr=False)
class Distances(Kept):
    """Between all models of a population."""

    by: str
    names: tuple[str, ...]
    values: Floats = field()
    """(n_models, n_models)"""

    def __repr__(self) -> str:
        return f"Distances({self.by}: {len(self.names)} models)"

    def to_frame(self) -> pd.DataFrame:
        """One row per pair of models."""
        first, second = np.triu_indices(len(self.names), k=1)
        names = np.array(self.names, dtype=object)
        return pd.DataFrame({"a": names[first], "b": names[second], "distance": self.values[first, second]})

    def plot(self, *, theme: str = "light") -> Chart:
        """All models against all."""
        from thinkalike.populations.charts import distance_chart

        return distance_chart(self, theme=theme)

    def among(self, names: Sequence[str]) -> Distances:
        """Of some of the models."""
        places = [self.names.index(name) for name in names]
        return Distances(self.by, tuple(names), self.values[np.ix_(places, places)])

    def nearest(self, name: str, n: int = 5) -> pd.DataFrame:
        """The `n` nearest models, nearest first."""
        if name not in self.names:
            raise UnknownName.among("model", name, self.names)
        own = self.names.index(name)
        order = [k for k in np.argsort(self.values[own], kind="stable") if k != own][:n]
        return pd.DataFrame({"model": [self.names[k] for k in order], "distance": self.values[own, order]})


def distance_of(by: str) -> ModelDistance:
    """The distance of that name."""
    if by not in MODEL_DISTANCES:
        raise UnknownName.among("distance between models", by, MODEL_DISTANCES)
    return MODEL_DISTANCES[by]


def between_models(fingerprints: Sequence[Fingerprint], *, by: str = FEATURES) -> Distances:
    """How far apart models are.

    Parameters
    ----------
    by : {"features", "warped", "warped-shares", "rsa"}
        A name in `MODEL_DISTANCES`.
    """
    distance = distance_of(by)
    check_same_reference(fingerprints)
    if len(fingerprints) < 2:
        raise InvalidInput(f"There is {len(fingerprints)} model: distances need two or more.")
    names = tuple(one.name for one in fingerprints)
    if distance.between is None:
        ranks = np.stack([one.sketch.together for one in fingerprints])
        return Distances(by, names, np.sqrt(2 * (1 - sketched_rsa(ranks))))
    importances = [one.profile.mean_importance[_rows(one, distance)] for one in fingerprints]
    return Distances(by, names, distance.between(importances))


def between_folds(fingerprints: Sequence[Fingerprint], *, by: str = "warped") -> Floats:
    """The distances again from each fold's importances: (n_folds, n_models, n_models)."""
    distance = distance_of(by)
    if distance.between is None:
        raise InvalidInput(f"{by!r} is made from distances of items, which have no folds: choose another.")
    n_folds = min(one.profile.importance.shape[1] for one in fingerprints)
    return np.stack(
        [
            distance.between([_fold(one, k)[_rows(one, distance)] for one in fingerprints])
            for k in range(n_folds)
        ]
    )


def _rows(one: Fingerprint, distance: ModelDistance) -> list[int]:
    return block_places(one.profile.rows)[one.name] if distance.blocks else list(range(len(one.layers)))


def _fold(one: Fingerprint, k: int) -> Floats:
    """The importances of one fold; of a feature that has none there, the mean of the others."""
    values = one.profile.importance[:, k]
    return np.where(np.isfinite(values), values, one.profile.mean_importance)


def euclidean_matrix(x: Floats, y: Floats) -> Floats:
    """(n, m) Euclidean distances of importances (n, F) and (m, F)."""
    return cdist(x, y)


def r_squared_matrix(x: Floats, y: Floats) -> Floats:
    """(n, m) squared Pearson correlations of importances (n, F) and (m, F); NaN for constant ones."""
    unit_x, unit_y = _unit(x), _unit(y)
    return np.minimum((unit_x @ unit_y.T) ** 2, 1.0)


def _unit(x: Floats) -> Floats:
    centred = x - x.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        unit: Floats = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    return unit


def layer_pairs(one: Fingerprint, other: Fingerprint) -> pd.DataFrame:
    """One row per pair of layers, the most alike first.

    Returns
    -------
    DataFrame
        `layer` of the one and `other_layer`; `tau`, τ_w of their importances; `r_squared`, the squared
        correlation of these, and `euclidean`, their distance, as the third version of Salle et al. has them;
        `rsa` and `cka`, estimated from the sketches.

    Examples
    --------
    >>> import thinkalike as ta
    >>> found = layer_pairs(*ta.Atlas().fingerprints(["nano-gpt2", "nano-bert"]))
    >>> list(found.columns), len(found)
    (['layer', 'other_layer', 'tau', 'r_squared', 'euclidean', 'rsa', 'cka'], 49)
    """
    n = len(one.layers)
    blocks = {"tau": similarity_of([one, other]).values[:n, n:]}
    x, y = one.profile.mean_importance, other.profile.mean_importance
    blocks |= {"r_squared": r_squared_matrix(x, y), "euclidean": euclidean_matrix(x, y)}
    for measure in SKETCHED:
        blocks[measure] = similarity_of([one, other], measure=measure).values[:n, n:]
    first, second = (np.asarray(layers, dtype=object) for layers in (one.layers, other.layers))
    labels = {"layer": np.repeat(first, len(second)), "other_layer": np.tile(second, n)}
    frame = pd.DataFrame({**labels, **{name: block.ravel() for name, block in blocks.items()}})
    return frame.sort_values("tau", ascending=False, kind="stable", ignore_index=True)
