r"""Measures that are inner products over pairs of items: value(X, Y) = Σ_{i<j} a_ij b_ij + Σ_i a_i b_i.

Each layer gives a unit vector of its own: the standardised ranks of its distances (RSA), or its centred Gram
matrix (CKA). Where the items of one layer change places, nothing is computed again: with an order π its
entries are looked up in another order, and Σ_{i<j} a_ij b_π(i)π(j) for many layers, many others and many
orders is one matrix product. Over a sample of the pairs, the same sample in every order, it costs less still.
The null of unrelated layers lives on that (`inference.null_calibration`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import squareform

from thinkalike.errors import InvalidInput
from thinkalike.machine import compiled
from thinkalike.measures.cka import prepare_gaussian, prepare_linear, u_centred
from thinkalike.measures.distance_correlation import prepare_centred_distances, prepare_whitened
from thinkalike.measures.inputs import Array, Vectors, as_layer
from thinkalike.measures.rdms import CORRELATIONS, DISTANCES, prepare_items, rsa_name
from thinkalike.pairs.distances import QuadraticTarget
from thinkalike.pairs.pairset import Pairs
from thinkalike.pairs.ranks import pair_distances, standardised_ranks
from thinkalike.parallel import cores, stream_in_order

Single = npt.NDArray[np.float32]
Orders = npt.NDArray[np.int64]
Step = Callable[[], object]

_AT_ONCE = 1 << 15  # pairs of items looked up at a time
_MEMORY = 1 << 31  # bytes of vectors over pairs held at a time


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


Forms = Sequence[Callable[[], PairForm]]
"""A layer each, its vector over all pairs made when its turn comes"""


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


def reordered_products(
    still: Forms, moved: Forms, orders: Orders, *, pairs: Pairs | None = None, step: Step = lambda: None
) -> Array:
    """(n_orders, n_still, n_moved) inner products, the items of `moved` in each of `orders` (n_orders, n).

    Over `pairs` if they are a sample, scaled up to all. Layers are taken in parts that fit into memory.
    """
    n = orders.shape[1]
    chosen = Pairs(n) if pairs is None else pairs
    values = np.empty((len(orders), len(still), len(moved)))
    for b in _parts(len(moved), 4 * n * n):
        squares = _Squares.of(moved[b], n)
        for a in _parts(len(still), 4 * len(chosen)):
            vectors = _Vectors.of(still[a], chosen)
            values[:, a, b] = _products(vectors, squares, chosen, orders, step)
    return values


def _parts(n_layers: int, size: int) -> Iterator[slice]:
    at_once = max(1, _MEMORY // (2 * size))
    return (slice(k, k + at_once) for k in range(0, n_layers, at_once))


class _Vectors(NamedTuple):
    """Some layers over the chosen pairs, (n_layers, n_pairs), and what items have with themselves."""

    pairs: Single
    items: Single | None

    @classmethod
    def of(cls, layers: Forms, chosen: Pairs) -> _Vectors:
        forms = [make() for make in layers]
        scale = np.float32(chosen.n_all / len(chosen))
        kept = [form.pairs if chosen.sample is None else scale * form.pairs[chosen.sample] for form in forms]
        return cls(np.stack(kept), _items(forms))


class _Squares(NamedTuple):
    """Some layers as squares (n_items, n_items, n_layers), for entries in any order."""

    square: Single
    items: Single | None

    @classmethod
    def of(cls, layers: Forms, n_items: int) -> _Squares:
        square = np.zeros((n_items, n_items, len(layers)), dtype=np.float32)
        forms = []
        for k, make in enumerate(layers):
            form = make()
            _fill_square(form.pairs, square[:, :, k])
            forms.append(form._replace(pairs=form.pairs[:0]))
        return cls(square, _items(forms))


def _items(forms: Sequence[PairForm]) -> Single | None:
    found = [form.items for form in forms if form.items is not None]
    return np.stack(found, axis=1) if found else None


def _products(vectors: _Vectors, squares: _Squares, chosen: Pairs, orders: Orders, step: Step) -> Array:
    n_layers = squares.square.shape[2]

    def of_order(order: Orders) -> Array:
        room = np.empty((min(_AT_ONCE, len(chosen)), n_layers), dtype=np.float32)
        values = np.zeros((len(vectors.pairs), n_layers))
        for start in range(0, len(chosen), _AT_ONCE):
            part = slice(start, min(start + _AT_ONCE, len(chosen)))
            found = room[: part.stop - start]
            _look_up(squares.square, order, chosen.i[part], chosen.j[part], found)
            values += vectors.pairs[:, part] @ found
        if vectors.items is not None and squares.items is not None:
            values += vectors.items.T @ squares.items[order]
        return values

    values = np.empty((len(orders), len(vectors.pairs), n_layers))
    found = stream_in_order(of_order, list(orders), description="What chance gives", threads=cores())
    for k, one in enumerate(found):
        values[k] = one
        step()
    return values


@compiled(nogil=True)
def _fill_square(pairs, square):  # type: ignore[no-untyped-def]
    """(P,) in the order of pdist to (n, n), mirrored."""
    n = len(square)
    place = 0
    for i in range(n):
        for j in range(i + 1, n):
            square[i, j] = square[j, i] = pairs[place]
            place += 1


@compiled(nogil=True)
def _look_up(square, order, first, second, found):  # type: ignore[no-untyped-def]
    """The entries of all layers at the pairs (order[i], order[j])."""
    for p in range(len(first)):
        entry = square[order[first[p]], order[second[p]]]
        for k in range(len(entry)):
            found[p, k] = entry[k]
