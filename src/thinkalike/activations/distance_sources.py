r"""Distances as systems: RDMs of anyone's making, and cross-validated distances of repeated measurements.

Items whose squared distances are y have the coordinates of classical scaling, from the eigenvectors of
K = −½HyH. If some eigenvalues are negative, no items in space have these distances; then

    y_ij + c  for i ≠ j,  with c = −2 λ_min

are those of items in space. Much does not see c: it goes into the intercept of MLEM, it changes no rank
(RSA), it is private to single items (unbiased CKA), and whitened RSA removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import squareform

from thinkalike.activations.store import Activations, Name
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.labels import Floats

TOLERANCE = 1e-6
"""Of the largest entry: two halves of a matrix that differ by less are the same"""


def from_distances(
    rdms: npt.ArrayLike | Mapping[Name, npt.ArrayLike],
    *,
    system: str = "RDM",
    items: Sequence[str] | None = None,
    squared: bool = False,
) -> Activations:
    """Activations whose Euclidean distances are those given, up to a constant; see the module.

    Parameters
    ----------
    rdms : a matrix (n_items, n_items) or condensed (n_pairs,), or a mapping of layers to such
    items : names of the items
    squared : whether the values are squared distances, as crossnobis and rsatoolbox's "euclidean" are. Only
        then may they be negative.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import pdist
    >>> X = np.random.default_rng(0).normal(size=(6, 3))
    >>> found = from_distances(pdist(X), system="monkey")
    >>> bool(np.allclose(pdist(found["RDM"]), pdist(X)))
    True
    """
    layers, shifts = {}, {}
    for label, one in _by_layer(rdms, "RDM").items():
        y = checked_rdm(one, name=str(label), squared=squared)
        layers[label], shifts[str(label)] = coordinates(y if squared else y**2)
    return _activations(layers, system, items, {"distances": "given", "added to squared distances": shifts})


def from_runs(
    runs: npt.ArrayLike | Mapping[Name, npt.ArrayLike],
    *,
    system: str = "runs",
    items: Sequence[str] | None = None,
    residuals: npt.ArrayLike | Mapping[Name, npt.ArrayLike] | None = None,
    distance: str = "crossnobis",
) -> Activations:
    """Activations whose squared distances are cross-validated, so unbiased by noise, up to a constant.

    Parameters
    ----------
    runs : array (n_runs, n_items, n_units), or a mapping of layers to such; the noise of different runs must
        be independent
    residuals : array (n_samples, n_units), or a mapping of layers to such; optional, for "crossnobis"
        What is left of the measurements after the model of each run. Units are whitened by their covariance,
        shrunk (Ledoit & Wolf 2004).
    distance : {"crossnobis", "poisson"}
        "poisson" for counts of spikes; see `crossed_poisson`. Any other is made outside, and given to
        `from_distances` with `squared=True`.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.random.default_rng(0).poisson(np.tile(range(1, 7), (2, 9, 1)).swapaxes(1, 2))
    >>> from_runs(counts, system="neurons", distance="poisson")
    Activations(neurons: 1 layers × 6 items × 5 units)
    """
    if distance not in CROSSED:
        raise UnknownName.among("cross-validated distance", distance, CROSSED)
    if residuals is not None and distance != "crossnobis":
        raise InvalidInput(f"residuals whiten the units, for crossnobis only: leave them out for {distance}.")
    layers, shifts = {}, {}
    for label, one in _by_layer(runs, "runs").items():
        rest = {} if residuals is None else {"residuals": _residuals_of(residuals, label)}
        layers[label], shifts[str(label)] = coordinates(CROSSED[distance](one, **rest))
    about = {"distances": distance, "whitened": residuals is not None}
    return _activations(layers, system, items, {**about, "added to squared distances": shifts})


def _by_layer(given: npt.ArrayLike | Mapping[Name, npt.ArrayLike], only: str) -> dict[object, npt.ArrayLike]:
    """What was given for each layer; what is not a mapping is that of the only one."""
    return dict[object, npt.ArrayLike](given.items()) if isinstance(given, Mapping) else {only: given}


def _residuals_of(residuals: npt.ArrayLike | Mapping[Name, npt.ArrayLike], layer: object) -> npt.ArrayLike:
    """Those of one layer: units of different layers need not be the same, nor as many."""
    if not isinstance(residuals, Mapping):
        return np.asarray(residuals)
    of_layers = _by_layer(residuals, "")
    if layer not in of_layers:
        raise InvalidInput(f"There are no residuals of {layer}: give those of every layer, or of none.")
    return np.asarray(of_layers[layer])


def crossnobis(runs: npt.ArrayLike, *, residuals: npt.ArrayLike | None = None) -> Floats:
    """Squared distances (n_items, n_items), the mean of (x_i − x_j)^r · (x_i − x_j)^s over runs r ≠ s.

    On average 0 for items that are alike, and so negative half of the time (Walther et al. 2016). Not divided
    by the number of units.
    """
    x = _checked_runs(runs)
    if residuals is not None:
        x = x @ noise_whitening(residuals, x.shape[2])
    x = x - x.mean(axis=1, keepdims=True)
    return _across_runs(x, x)


PRIOR_RATE, PRIOR_WEIGHT = 1.0, 0.1
"""Added to counts, as rsatoolbox does: a tenth of a run in which every neuron fired once"""


def crossed_poisson(runs: npt.ArrayLike) -> Floats:
    """Cross-validated symmetric divergence of Poisson rates (Schütt et al. 2023), for counts of spikes.

    The mean of (x_i − x_j)^r · (log x_i − log x_j)^s over runs r ≠ s: what is expected of the logarithm of
    one distribution's likelihood under the other, both ways. On average 0 for items that are alike.
    """
    x = _checked_runs(runs)
    if x.min() < 0:
        raise InvalidInput(f"The runs hold {x.min():g}: counts cannot be below 0. Use crossnobis.")
    x = (x + PRIOR_RATE * PRIOR_WEIGHT) / (1 + PRIOR_WEIGHT)
    return _across_runs(x, np.log(x))


CROSSED: dict[str, Callable[..., Floats]] = {"crossnobis": crossnobis, "poisson": crossed_poisson}


def _across_runs(a: Floats, b: Floats) -> Floats:
    """The mean of (a_i − a_j)^r · (b_i − b_j)^s over r ≠ s, of arrays (n_runs, n_items, n_units)."""
    n_runs = len(a)
    gram = a.sum(axis=0) @ b.sum(axis=0).T - np.einsum("rid,rjd->ij", a, b)
    gram /= n_runs * (n_runs - 1)
    own = np.diag(gram)
    y = own[:, None] + own[None, :] - gram - gram.T
    np.fill_diagonal(y, 0.0)
    return np.asarray(y)


def _checked_runs(runs: npt.ArrayLike) -> Floats:
    lengths = [np.shape(one) for one in runs] if np.iterable(runs) else []
    for r, shape in enumerate(lengths):
        if shape[:1] != lengths[0][:1]:
            raise InvalidInput(
                f"run {r + 1} has {shape[0]} items, run 1 has {lengths[0][0]}: every item must be measured "
                "in every run. Leave the others out, or average runs that complete each other."
            )
        if shape[1:] != lengths[0][1:]:
            raise InvalidInput(
                f"run {r + 1} has the shape {shape}, run 1 {lengths[0]}: every unit must be measured "
                "in every run. Leave the others out."
            )
    x = np.asarray(runs, dtype=np.float64)
    if x.ndim != 3:
        raise InvalidInput(f"Got runs of shape {x.shape}: give (n_runs, n_items, n_units).")
    n_runs, n_items, _ = x.shape
    if n_runs < 2:
        raise InvalidInput(
            f"Got {n_runs} run: cross-validation needs two independent measurements of each item."
        )
    if n_items < 2:
        raise InvalidInput(f"Got {n_items} condition: a distance needs two.")
    if not np.isfinite(x).all():
        raise InvalidInput("The runs hold NaN or infinity: leave out these items or units in every run.")
    return x


def noise_whitening(residuals: npt.ArrayLike, n_units: int) -> Floats:
    """(n_units, n_units) inverse root of the residuals' covariance, shrunk as Ledoit & Wolf (2004) do."""
    from sklearn.covariance import ledoit_wolf

    rest = np.asarray(residuals, dtype=np.float64)
    if rest.ndim != 2 or rest.shape[1] != n_units:
        raise InvalidInput(f"Got residuals of shape {rest.shape}: give (n_samples, {n_units}).")
    if not np.isfinite(rest).all():
        raise InvalidInput("The residuals hold NaN or infinity: leave out these samples.")
    if not np.ptp(rest, axis=0).any():
        raise InvalidInput("The residuals are the same in every sample: there is no noise to whiten by.")
    values, vectors = np.linalg.eigh(ledoit_wolf(rest)[0])
    return (vectors / np.sqrt(np.maximum(values, values[-1] * 1e-12))) @ vectors.T


def coordinates(y: Floats) -> tuple[Floats, float]:
    """Rows (n_items, n_items − 1) with squared distances y + c, and c, which is 0 if y itself has such."""
    if np.abs(y).max() == 0:
        raise InvalidInput("All distances are 0: there is nothing to compare.")
    n, rows = len(y), y.mean(axis=0)
    gram = -0.5 * (y - rows[:, None] - rows[None, :] + rows.mean())
    # The mean is no direction between items: made the largest, it can be told from the others and left out.
    apart = 2 * np.linalg.norm(gram)
    values, vectors = np.linalg.eigh((gram + gram.T) / 2 + apart / n)
    values, vectors = values[:-1], vectors[:, :-1]
    lowest = float(values[0])
    shift = -2 * lowest if lowest < -1e-9 * np.abs(values).max() else 0.0
    return vectors * np.sqrt(np.maximum(values + shift / 2, 0.0)), shift


def checked_rdm(given: object, *, name: str, squared: bool) -> Floats:
    """The matrix (n_items, n_items), or an error that says why it is none of distances."""
    D = np.asarray(given, dtype=np.float64)
    if D.ndim == 1:
        try:
            D = squareform(D, checks=False)
        except ValueError:
            raise InvalidInput(
                f"{name} has {D.size} distances, which is n(n − 1)/2 for no n: give all pairs."
            ) from None
    if D.ndim != 2 or D.shape[0] != D.shape[1]:
        raise InvalidInput(f"{name} has shape {D.shape}: give distances (n_items, n_items), or condensed.")
    if len(D) < 3:
        raise InvalidInput(f"{name} has {len(D)} condition(s): one pair has no order. Give at least 3.")
    if not np.isfinite(D).all():
        raise InvalidInput(f"{name} has NaN or infinite distances: leave out the conditions that have them.")
    scale = np.abs(D).max()
    if np.abs(D - D.T).max() > TOLERANCE * scale:
        i, j = np.unravel_index(np.argmax(np.abs(D - D.T)), D.shape)
        raise InvalidInput(
            f"{name} is not symmetric: D[{i}, {j}] = {D[i, j]:g} but D[{j}, {i}] = {D[j, i]:g}. "
            "Give (D + D.T) / 2 if that is what you mean."
        )
    if np.abs(np.diag(D)).max() > TOLERANCE * scale:
        raise InvalidInput(f"{name} has a diagonal that is not 0: give distances, not similarities.")
    if D.min() < 0 and not squared:
        raise InvalidInput(
            f"{name} has negative distances: give distances, not similarities. Cross-validated ones, which "
            "may be negative, are squared: squared=True."
        )
    return (D + D.T) / 2


def looks_like_distances(matrix: npt.NDArray[np.generic]) -> bool:
    """Whether what was given as vectors of items is a matrix of distances: square, symmetric, 0 to itself."""
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] and len(matrix) >= 3
    if not square or matrix.dtype.kind not in "fiu" or not matrix.any():
        return False
    own = np.asarray(np.diag(matrix), dtype=np.float64)
    least = TOLERANCE * max(float(matrix.max()), -float(matrix.min()))
    if not np.abs(own).max() <= least:  # nearly always: vectors, of which no copy is needed
        return False
    values = np.asarray(matrix, dtype=np.float64)
    return bool(np.abs(values - values.T).max() <= least)


def _activations(
    layers: dict[object, Floats], system: str, items: Sequence[str] | None, about: dict[str, object]
) -> Activations:
    """In float64: what is tied stays tied."""
    n = {len(X) for X in layers.values()}
    if len(n) > 1:
        raise InvalidInput(f"The RDMs of {system} are of {sorted(n)} items: give all over the same items.")
    made = Activations.from_arrays(layers, system=system, items=items)
    kept: list[Any] = list(layers.values())
    return replace(made, metadata=about, _read=kept.__getitem__)
