r"""Σ_{i<j} a_ij b_π(i)π(j) for many layers, many others and many orders π of the items.

Measures that are inner products over pairs of items (`measures.pair_forms`) need nothing computed again when
the items of one layer change places: its entries are looked up in another order, and the rest is one matrix
product for all layers. Over a sample of the pairs, the same sample in every order, it costs less still.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thinkalike.machine import compiled
from thinkalike.measures.pair_forms import PairForm
from thinkalike.pairs.pairset import Pairs
from thinkalike.parallel import cores, stream_in_order

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Orders = npt.NDArray[np.int64]
Forms = Sequence[Callable[[], PairForm]]
"""A layer each, its vector over all pairs made when its turn comes"""
Step = Callable[[], object]

_AT_ONCE = 1 << 15  # pairs of items looked up at a time
_MEMORY = 1 << 31  # bytes of vectors over pairs held at a time


def reordered_products(
    still: Forms, moved: Forms, orders: Orders, *, pairs: Pairs | None = None, step: Step = lambda: None
) -> Floats:
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

    pairs: Singles
    items: Singles | None

    @classmethod
    def of(cls, layers: Forms, chosen: Pairs) -> _Vectors:
        forms = [make() for make in layers]
        scale = np.float32(chosen.n_all / len(chosen))
        kept = [form.pairs if chosen.sample is None else scale * form.pairs[chosen.sample] for form in forms]
        return cls(np.stack(kept), _items(forms))


class _Squares(NamedTuple):
    """Some layers as squares (n_items, n_items, n_layers), for entries in any order."""

    square: Singles
    items: Singles | None

    @classmethod
    def of(cls, layers: Forms, n_items: int) -> _Squares:
        square = np.zeros((n_items, n_items, len(layers)), dtype=np.float32)
        forms = []
        for k, make in enumerate(layers):
            form = make()
            _fill_square(form.pairs, square[:, :, k])
            forms.append(form._replace(pairs=form.pairs[:0]))
        return cls(square, _items(forms))


def _items(forms: Sequence[PairForm]) -> Singles | None:
    found = [form.items for form in forms if form.items is not None]
    return np.stack(found, axis=1) if found else None


def _products(vectors: _Vectors, squares: _Squares, chosen: Pairs, orders: Orders, step: Step) -> Floats:
    n_layers = squares.square.shape[2]

    def of_order(order: Orders) -> Floats:
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
