r"""What would this measure say of two layers that have nothing to do with each other?

RSA, CKA and their kin are not 0 for unrelated layers, and the best of many pairs of layers is higher still.
So the same statistic is computed again with the sentences of one side permuted (Gröger, Wen and Brbić 2026):

    p          = (1 + #{null ≥ s}) / (K + 1)                    over K permutations
    threshold  = the ⌈(1 − α)(K + 1)⌉-th smallest of null and s together
    calibrated = max(0, (s − threshold) / (s_best − threshold))

One permutation goes to all layers, and means and maxima over layers are taken in each: their null is that of
the same mean, the same maximum.

**What may be exchanged.** Words of one sentence depend on each other, so sentences move as wholes, and a
sentence can only stand in for another with as many items. Word k of one sentence then meets word k of
another: what all systems share because they see the length of the sentence and the place in it stays in the
null, and does not count as likeness. Items that belong to no sentence are exchanged one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, lgamma
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from thinkalike.errors import InvalidInput
from thinkalike.machine import compiled
from thinkalike.measures import get_measure
from thinkalike.measures.measure import Measure
from thinkalike.measures.pair_forms import PAIR_FORMS, PairForm, finished, pair_form

Floats = npt.NDArray[np.float64]
Orders = npt.NDArray[np.int64]
Step = Callable[[], object]

ROUNDING = 1e-6
"""Values this close are one value: permutations that give the same items the same partners"""
_AT_ONCE = 1 << 15  # pairs of items looked up at a time
_MEMORY = 1 << 31  # bytes of vectors over pairs held at a time


class Calibrated(NamedTuple):
    """Of one statistic, or of many at once.

    Attributes
    ----------
    p
        Share of permutations, the given order among them, that are at least as much alike.
    threshold
        What unrelated layers stay below in 1 − α of the cases (above, for distances).
    score
        0 up to the threshold, 1 for the best value there is.
    """

    p: Floats
    threshold: Floats
    score: Floats


def calibrate(
    observed: Floats, null: Floats, *, best: float = 1.0, alpha: float = 0.05, distance: bool = False
) -> Calibrated:
    """Hold `observed` (...) against `null` (K, ...); `distance` where smaller is more alike."""
    sign = -1.0 if distance else 1.0
    s, drawn = sign * np.asarray(observed), sign * np.asarray(null)
    n = len(drawn) + 1
    together = np.sort(np.concatenate([drawn, s[None]]), axis=0)
    threshold = together[min(max(ceil((1 - alpha) * n - 1e-9), 1), n) - 1]
    room = sign * best - threshold
    score = np.divide(s - threshold, room, out=np.zeros_like(threshold), where=room > 0)
    p = (1 + (drawn >= s - ROUNDING).sum(axis=0)) / n
    return Calibrated(p, sign * threshold, np.clip(score, 0.0, 1.0))


def sentence_orders(
    sentences: Sequence[Any] | npt.NDArray[Any] | None, n_items: int, *, n: int = 200, seed: int = 0
) -> Orders:
    """`n` orders (n, n_items) of the items in which whole sentences of equal length changed places.

    Parameters
    ----------
    sentences : the sentence of each item; None if every item may go anywhere.
    """
    rng = np.random.default_rng(seed)
    if sentences is None:
        return np.stack([rng.permutation(n_items) for _ in range(n)])
    if len(sentences) != n_items:
        raise InvalidInput(f"There are {n_items} items and {len(sentences)} sentences: give one per item.")
    alike = _by_length(sentences)
    possible = sum(lgamma(len(places) + 1) for places in alike)
    if possible < np.log(100):
        raise InvalidInput(
            f"Whole sentences of equal length can change places in only {round(np.exp(possible))} ways: "
            "too few to say what chance gives. Show more sentences, or more of the same length."
        )
    orders = np.empty((n, n_items), dtype=np.int64)
    for k in range(n):
        for places in alike:
            orders[k, places] = places[rng.permutation(len(places))]
    return orders


def _by_length(sentences: Sequence[Any] | npt.NDArray[Any]) -> list[Orders]:
    """For each number of items in a sentence, the places of the items, (n_sentences, n_items)."""
    _, code = np.unique(np.asarray(sentences).astype(str), return_inverse=True)
    places = np.split(np.argsort(code, kind="stable"), np.cumsum(np.bincount(code))[:-1])
    lengths = sorted({len(one) for one in places})
    return [np.stack([one for one in places if len(one) == length]) for length in lengths]


def null_values(
    measure: str | Measure,
    layers_a: Sequence[Any],
    layers_b: Sequence[Any],
    orders: Orders,
    *,
    names: tuple[Sequence[str], Sequence[str]] | None = None,
    step: Step = lambda: None,
) -> tuple[Floats, Floats]:
    """A measure between all layers of two systems, as they are and with the items of the second reordered.

    Returns
    -------
    observed : (n_layers_a, n_layers_b)
    null : (n_orders, n_layers_a, n_layers_b)
    """
    chosen = get_measure(measure) if isinstance(measure, str) else measure
    if names is None:
        first = [f"layer {k}" for k in range(len(layers_a))]
        names = first, [f"layer {k} of the second system" for k in range(len(layers_b))]
    identity = np.arange(orders.shape[1])[None]
    together = np.concatenate([identity, orders])
    if chosen.name in PAIR_FORMS:
        values = _by_products(chosen.name, layers_a, layers_b, together, names, step)
    else:
        values = _one_by_one(chosen, layers_a, layers_b, together, names, step)
    return values[0], values[1:]


def _one_by_one(
    measure: Measure,
    layers_a: Sequence[Any],
    layers_b: Sequence[Any],
    orders: Orders,
    names: tuple[Sequence[str], Sequence[str]],
    step: Step,
) -> Floats:
    """For any measure: everything again for every order."""
    values = []
    for order in orders:
        reordered = [np.asarray(layer)[order] for layer in layers_b]
        values.append(measure.matrix(list(layers_a), reordered, names_a=names[0], names_b=names[1]))
        step()
    return np.stack(values)


def _by_products(
    measure: str,
    layers_a: Sequence[Any],
    layers_b: Sequence[Any],
    orders: Orders,
    names: tuple[Sequence[str], Sequence[str]],
    step: Step,
) -> Floats:
    """For inner products over pairs of items: entries looked up in another order, and matrix products.

    Layers are taken in parts that fit into memory.
    """
    n = orders.shape[1]
    at_once = max(1, _MEMORY // (4 * n * n * 2))
    values = np.empty((len(orders), len(layers_a), len(layers_b)))
    for b in range(0, len(layers_b), at_once):
        moved = _Moved.of(_forms(measure, layers_b[b : b + at_once], names[1][b:]), n)
        for a in range(0, len(layers_a), at_once):
            still = _forms(measure, layers_a[a : a + at_once], names[0][a:])
            values[:, a : a + at_once, b : b + at_once] = _products(still, moved, orders, step)
    return finished(measure, values)


def _forms(measure: str, layers: Sequence[Any], names: Sequence[str]) -> list[PairForm]:
    return [pair_form(measure, layer, name) for layer, name in zip(layers, names, strict=False)]


class _Moved(NamedTuple):
    """The vectors of some layers as squares (n_items, n_items, n_layers), for entries in any order."""

    square: npt.NDArray[np.float32]
    items: npt.NDArray[np.float32] | None

    @classmethod
    def of(cls, forms: Sequence[PairForm], n_items: int) -> _Moved:
        square = np.zeros((n_items, n_items, len(forms)), dtype=np.float32)
        _fill_squares(np.stack([form.pairs for form in forms], axis=1), square)
        return cls(square, _items(forms))


def _items(forms: Sequence[PairForm]) -> npt.NDArray[np.float32] | None:
    found = [form.items for form in forms if form.items is not None]
    return np.stack(found, axis=1) if found else None


def _products(forms: Sequence[PairForm], moved: _Moved, orders: Orders, step: Step) -> Floats:
    """Σ_{i<j} a_ij b_π(i)π(j) for every layer, every other and every order: (n_orders, n_a, n_b)."""
    n_items, _, n_b = moved.square.shape
    pairs = np.stack([form.pairs for form in forms])  # (n_a, P)
    items = _items(forms)
    values = np.zeros((len(orders), len(forms), n_b))
    rows = _row_parts(n_items)
    room = np.empty((max(stop - start for _, _, start, stop in rows), n_b), dtype=np.float32)
    with threadpool_limits(1, "blas"):  # the products are small: threads only wait for each other
        for k, order in enumerate(orders):
            for first, last, start, stop in rows:
                found = room[: stop - start]
                _look_up(moved.square, order, first, last, found)
                values[k] += pairs[:, start:stop] @ found
            if items is not None and moved.items is not None:
                values[k] += items.T @ moved.items[order]
            step()
    return values


def _row_parts(n_items: int) -> list[tuple[int, int, int, int]]:
    """First and last item, and the places of their pairs with later ones, in parts of about the same size."""
    starts = np.arange(n_items) * n_items - np.arange(n_items) * (np.arange(n_items) + 1) // 2
    parts, first = [], 0
    while first < n_items - 1:
        last = int(np.searchsorted(starts, starts[first] + _AT_ONCE))
        last = min(max(last, first + 1), n_items - 1)
        parts.append((first, last, int(starts[first]), int(starts[last])))
        first = last
    return parts


@compiled()
def _fill_squares(pairs, square):  # type: ignore[no-untyped-def]
    """(P, L) in the order of pdist to (n, n, L), mirrored."""
    n, _, n_layers = square.shape
    place = 0
    for i in range(n):
        for j in range(i + 1, n):
            for k in range(n_layers):
                square[i, j, k] = square[j, i, k] = pairs[place, k]
            place += 1


@compiled()
def _look_up(square, order, first, last, found):  # type: ignore[no-untyped-def]
    """The entries of the pairs (order[i], order[j]) for first ≤ i < last and j > i, in the order of pdist."""
    n, _, n_layers = square.shape
    place = 0
    for i in range(first, last):
        row = square[order[i]]
        for j in range(i + 1, n):
            entry = row[order[j]]
            for k in range(n_layers):
                found[place, k] = entry[k]
            place += 1
