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

from collections.abc import Sequence
from functools import partial
from math import ceil, lgamma
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats
from thinkalike.measures import get_measure
from thinkalike.measures.measure import Measure
from thinkalike.measures.pair_forms import (
    PAIR_FORMS,
    Orders,
    Step,
    finished,
    pair_form,
    reordered_products,
)
from thinkalike.pairs.pairset import Pairs

ROUNDING = 1e-6
"""Values this close are one value: permutations that give the same items the same partners"""


class Calibrated(NamedTuple):
    """Of one statistic, or of many at once.

    Attributes
    ----------
    p
        Share of permutations, the given order among them, that are at least as much alike.
    threshold
        What unrelated layers stay below in 1 − α of the cases (above, for distances).
    score
        0 up to the threshold, 1 for the best value there is; NaN where there is none.
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
    score = np.clip(score, 0.0, 1.0) if np.isfinite(best) else np.full_like(threshold, np.nan)
    return Calibrated(p, sign * threshold, score)


def sentence_orders(
    sentences: Sequence[object] | npt.NDArray[np.generic] | None, n_items: int, *, n: int = 200, seed: int = 0
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


def _by_length(sentences: Sequence[object] | npt.NDArray[np.generic]) -> list[Orders]:
    """For each number of items in a sentence, the places of the items, (n_sentences, n_items)."""
    _, code = np.unique(np.asarray(sentences).astype(str), return_inverse=True)
    places = np.split(np.argsort(code, kind="stable"), np.cumsum(np.bincount(code))[:-1])
    lengths = sorted({len(one) for one in places})
    return [np.stack([one for one in places if len(one) == length]) for length in lengths]


def null_values(
    measure: str | Measure,
    layers_a: Sequence[np.ndarray],
    layers_b: Sequence[np.ndarray],
    orders: Orders,
    *,
    names: tuple[Sequence[str], Sequence[str]] | None = None,
    pairs: Pairs | None = None,
    step: Step = lambda: None,
) -> tuple[Floats, Floats]:
    """A measure between all layers of two systems, as they are and with the items of the second reordered.

    Parameters
    ----------
    pairs : a sample of the pairs of items to take, for measures in `PAIR_FORMS`; all when None.

    Returns
    -------
    observed : (n_layers_a, n_layers_b)
    null : (n_orders, n_layers_a, n_layers_b)
    """
    chosen = get_measure(measure) if isinstance(measure, str) else measure
    if names is None:
        first = [f"layer {k}" for k in range(len(layers_a))]
        names = first, [f"layer {k} of the second system" for k in range(len(layers_b))]
    together = np.concatenate([np.arange(orders.shape[1])[None], orders])
    if chosen.name in PAIR_FORMS:
        a, b = (
            [partial(pair_form, chosen.name, layer, name) for layer, name in zip(layers, called, strict=True)]
            for layers, called in ((layers_a, names[0]), (layers_b, names[1]))
        )
        values = finished(chosen.name, reordered_products(a, b, together, pairs=pairs, step=step))
    else:
        values = _one_by_one(chosen, layers_a, layers_b, together, names, step)
    return values[0], values[1:]


def _one_by_one(
    measure: Measure,
    layers_a: Sequence[np.ndarray],
    layers_b: Sequence[np.ndarray],
    orders: Orders,
    names: tuple[Sequence[str], Sequence[str]],
    step: Step,
) -> Floats:
    """For any measure: the second side again for every order."""
    first = [
        measure.prepare(measure.accept(x, name), name) for x, name in zip(layers_a, names[0], strict=True)
    ]
    others = [measure.accept(y, name) for y, name in zip(layers_b, names[1], strict=True)]
    values = np.empty((len(orders), len(first), len(others)))
    for k, order in enumerate(orders):
        for j, (y, name) in enumerate(zip(others, names[1], strict=True)):
            prepared = measure.prepare(y[order], name)
            values[k, :, j] = [measure.compare(x, prepared) for x in first]
        step()
    return values
