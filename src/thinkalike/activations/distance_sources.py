r"""Distances as systems: RDMs of anyone's making, and cross-validated distances of repeated measurements.

Items whose squared distances are y have the coordinates of classical scaling, from the eigenvectors of
K = −½HyH. If some eigenvalues are negative, no items in space have these distances; then

    y_ij + c  for i ≠ j,  with c = −2 λ_min

are those of items in space. Much does not see c: it goes into the intercept of MLEM, it changes no rank
(RSA), it is private to single items (unbiased CKA), and whitened RSA removes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import squareform

from thinkalike.activations.store import Activations
from thinkalike.errors import InvalidInput

Floats = npt.NDArray[np.float64]
TOLERANCE = 1e-6
"""Of the largest entry: two halves of a matrix that differ by less are the same"""


def from_distances(
    rdms: Any, *, system: str = "RDM", items: Sequence[str] | None = None, squared: bool = False
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
    given = dict(rdms) if hasattr(rdms, "keys") else {"RDM": rdms}
    layers, shifts = {}, {}
    for label, one in given.items():
        y = checked_rdm(one, name=str(label), squared=squared)
        layers[label], shifts[str(label)] = coordinates(y if squared else y**2)
    return _activations(layers, system, items, {"distances": "given", "added to squared distances": shifts})


def from_runs(
    runs: Any,
    *,
    system: str = "runs",
    items: Sequence[str] | None = None,
    residuals: npt.ArrayLike | None = None,
) -> Activations:
    """Activations whose squared distances are crossnobis, unbiased by noise, up to a constant.

    Parameters
    ----------
    runs : array (n_runs, n_items, n_units), or a mapping of layers to such; the noise of different runs must
        be independent
    residuals : array (n_samples, n_units), optional
        What is left of the measurements after the model of each run. Units are whitened by their covariance,
        shrunk (Ledoit & Wolf 2004).
    """
    given = dict(runs) if hasattr(runs, "keys") else {"runs": runs}
    layers, shifts = {}, {}
    for label, one in given.items():
        layers[label], shifts[str(label)] = coordinates(crossnobis(one, residuals=residuals))
    about = {"distances": "crossnobis", "whitened": residuals is not None}
    return _activations(layers, system, items, {**about, "added to squared distances": shifts})


def crossnobis(runs: npt.ArrayLike, *, residuals: npt.ArrayLike | None = None) -> Floats:
    """Squared distances (n_items, n_items), the mean of (x_i − x_j)^r · (x_i − x_j)^s over runs r ≠ s.

    On average 0 for items that are alike, and so negative half of the time (Walther et al. 2016). Not divided
    by the number of units.
    """
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
    n_runs, n_items, n_units = x.shape
    if n_runs < 2:
        raise InvalidInput(f"Got {n_runs} run: crossnobis needs two independent measurements of each item.")
    if n_items < 2:
        raise InvalidInput(f"Got {n_items} condition: a distance needs two.")
    if not np.isfinite(x).all():
        raise InvalidInput("The runs hold NaN or infinity: leave out these items or units in every run.")
    if residuals is not None:
        x = x @ noise_whitening(residuals, n_units)
    x = x - x.mean(axis=1, keepdims=True)
    total = x.sum(axis=0)
    gram = (total @ total.T - np.einsum("rid,rjd->ij", x, x)) / (n_runs * (n_runs - 1))
    own = np.diag(gram)
    y = own[:, None] + own[None, :] - gram - gram.T
    np.fill_diagonal(y, 0.0)
    return y


def noise_whitening(residuals: npt.ArrayLike, n_units: int) -> Floats:
    """(n_units, n_units) inverse root of the residuals' covariance, shrunk as Ledoit & Wolf (2004) do."""
    from sklearn.covariance import ledoit_wolf

    rest = np.asarray(residuals, dtype=np.float64)
    if rest.ndim != 2 or rest.shape[1] != n_units:
        raise InvalidInput(f"Got residuals of shape {rest.shape}: give (n_samples, {n_units}).")
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
