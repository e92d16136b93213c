"""The order of pairs by distance: one tie rule for scores, importances and RSA.

Two distances are equal when they are no further apart than rounding can have moved them; `Target` says for
each item how far that is. So the same vector twice makes ties, whichever way a product was summed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thinkalike.labels import Floats
from thinkalike.pairs.distances import Target
from thinkalike.pairs.kernels import ascending, average_ranks, tie_stops
from thinkalike.pairs.pairset import Ends, Pairs

Indices = npt.NDArray[np.int64]


def pair_distances(pairs: Pairs, target: Target) -> tuple[Floats, Floats]:
    """Squared distances (n_pairs,), and (n_items,) how far rounding may have moved those of an item."""
    if pairs.is_sample:
        return target.between(pairs.i, pairs.j)
    return target.within(np.arange(pairs.n_items))


def sort_distances(y: Floats, i: Ends, j: Ends, rounding: Floats | None = None) -> tuple[Indices, Indices]:
    """The order of pairs (i, j) by their distances y, and where each run of equal distances ends in it.

    Parameters
    ----------
    rounding : (n_items,) how far rounding may have moved the distances of an item; None for not at all
    """
    order, stops = ascending(np.asarray(y, dtype=np.float64)), np.empty(len(y), dtype=np.int64)
    slack = np.zeros(int(max(i.max(), j.max())) + 1) if rounding is None else rounding
    return order, stops[: tie_stops(y, order, i, j, slack, stops)]


def centred_ranks(order: Indices, stops: Indices) -> tuple[Floats, float]:
    """Average ranks (n_pairs,) less their mean, from `sort_distances`; and the sum of their squares."""
    ranks = np.empty(len(order))
    return ranks, average_ranks(order, stops, ranks)


def standardised_ranks(pairs: Pairs, target: Target) -> npt.NDArray[np.float32]:
    """Ranks (n_pairs,) of the distances, ties averaged; mean 0, mean square 1; NaN if all are equal."""
    y, rounding = pair_distances(pairs, target)
    ranks, spread = centred_ranks(*sort_distances(y, pairs.i, pairs.j, rounding))
    ranks *= 1.0 / np.sqrt(spread / len(ranks)) if spread > 0 else np.nan
    return ranks.astype(np.float32)
