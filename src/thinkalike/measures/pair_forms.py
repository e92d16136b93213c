r"""Measures that are inner products over pairs of items: value(X, Y) = Σ_{i<j} a_ij b_ij + Σ_i a_i b_i.

Each layer gives a unit vector of its own: the standardised ranks of its distances (RSA), or its centred Gram
matrix (CKA). Whoever reorders the items of one layer then only has to look the entries up in another order:
nothing is computed again. The null of unrelated layers lives on that (`inference.null_calibration`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import squareform

from thinkalike.errors import InvalidInput
from thinkalike.measures.cka import prepare_gaussian, prepare_linear, u_centred
from thinkalike.measures.distance_correlation import prepare_centred_distances, prepare_whitened
from thinkalike.measures.inputs import Array, Vectors, as_layer
from thinkalike.measures.rdms import CORRELATIONS, DISTANCES, prepare_items, rsa_name
from thinkalike.pairs.distances import QuadraticTarget
from thinkalike.pairs.pairset import Pairs
from thinkalike.pairs.ranks import pair_distances, standardised_ranks

Single = npt.NDArray[np.float32]


class PairForm(NamedTuple):
    """A layer as a unit vector over pairs of items.

    Attributes
    ----------
    pairs
        (n(n−1)/2,) in the order of `scipy.spatial.distance.pdist`.
    items
        (n,) what each item has with itself; None where that counts for nothing.
    """

    pairs: Single
    items: Single | None


def pair_form(measure: str, X: npt.ArrayLike, name: str = "X") -> PairForm:
    """The vector of layer `X` (n_items, n_units) for a measure in `PAIR_FORMS`."""
    return PAIR_FORMS[measure](as_layer(X, name), name)


def finished(measure: str, products: Array) -> Array:
    """The measure from the inner products of its vectors."""
    products = np.clip(products, -1, 1)
    return FINISHES[measure](products) if measure in FINISHES else products


def _unit(pairs: Array, items: Array | None, name: str) -> PairForm:
    size = np.sqrt((pairs**2).sum() + (0.0 if items is None else (items**2).sum()))
    if not size > 0:
        raise InvalidInput(f"All pairs of items are alike in {name}: there is nothing to compare.")
    return PairForm(
        (pairs / size).astype(np.float32), None if items is None else (items / size).astype(np.float32)
    )


def _linear(X: Vectors, name: str) -> PairForm:
    C = prepare_linear(X, name)
    return _unit(_condensed(u_centred(C @ C.T)), None, name)


def _linear_biased(X: Vectors, name: str) -> PairForm:
    C = prepare_linear(X, name)
    gram = C @ C.T
    return _unit(np.sqrt(2) * _condensed(gram), np.diag(gram), name)


def _gaussian(X: Vectors, name: str) -> PairForm:
    return _unit(_condensed(prepare_gaussian(X, name)), None, name)


def _distances(X: Vectors, name: str, *, distance: str, correlation: str) -> PairForm:
    C = prepare_items(X, name, distance=distance)
    target, pairs = QuadraticTarget(((1.0, C),)), Pairs(len(C))
    if correlation == "spearman":
        values = standardised_ranks(pairs, target).astype(np.float64)
    else:
        squared, _ = pair_distances(pairs, target)
        values = np.sqrt(squared) if distance == "euclidean" else squared
        values = np.where(np.ptp(values) > 1e-7 * values.max(), values - values.mean(), np.nan)
    if np.isnan(values[0]):
        raise InvalidInput(
            f"All pairs of items are equally far apart in {name}: there is no order to correlate. "
            "Leave it out."
        )
    return _unit(values, None, name)


def _matrix(X: Vectors, name: str, *, prepare: Callable[[Vectors, str], Array]) -> PairForm:
    """A symmetric matrix over items as the pairs and the diagonal that make its norm."""
    matrix = prepare(X, name)
    return _unit(np.sqrt(2) * _condensed(matrix), np.diag(matrix), name)


def _condensed(gram: Array) -> Array:
    return squareform(gram, checks=False)


PAIR_FORMS: dict[str, Callable[[Vectors, str], PairForm]] = {
    "cka": _linear,
    "cka-biased": _linear_biased,
    "cka-angular": _linear_biased,
    "cka-rbf": _gaussian,
    "rsa-whitened": partial(_matrix, prepare=prepare_whitened),
    "distance-correlation": partial(_matrix, prepare=prepare_centred_distances),
    "distance-correlation-unbiased": partial(
        _matrix, prepare=partial(prepare_centred_distances, unbiased=True)
    ),
    **{
        rsa_name(distance, correlation): partial(_distances, distance=distance, correlation=correlation)
        for distance in DISTANCES
        for correlation in CORRELATIONS
        if correlation != "kendall"
    },
}
"""Name of the measure → its vectors"""
FINISHES: dict[str, Callable[[Array], Array]] = {
    "cka-angular": np.arccos,
    "distance-correlation": lambda products: np.sqrt(products.clip(0)),
}
"""Name of a measure that is not the product itself → what it is of it"""
