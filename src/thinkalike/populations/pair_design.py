"""Which pairs of items a sketch keeps: drawn once for each reference, and a file of the package from then on.

For ranks of distances every pair is as likely as any other. Entries of a Gram matrix are mostly small, and a
few pairs, of the same word in the same place, carry most of it: these are drawn more often and weigh less.
How large an entry will be is guessed from the stimuli alone, as that of a system in which every feature, and
the word itself, weighs the same. Both draws go evenly through the pairs sorted by the features that they
differ in, so that no kind of pair is left to chance.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.spatial.distance import squareform

from thinkalike.files import read_arrays
from thinkalike.labels import Floats
from thinkalike.measures.cka import u_centred
from thinkalike.pairs.pairset import Pairs
from thinkalike.populations.reference_sets import FOLDER
from thinkalike.stimuli.table import Stimuli

RANKED = 13_000
"""Pairs whose distances are kept"""
PRODUCTS = 11_500
"""Pairs whose Gram entries are kept"""
EVENLY = 0.5
"""Share of the latter that is drawn evenly: no pair weighs more than twice as much as it would"""


class SketchPairs(NamedTuple):
    """The pairs of one reference.

    Attributes
    ----------
    ranked, products
        Pairs of which a sketch keeps the rank of their distance, and their Gram entry.
    weights
        (n_products,) how many of all pairs each of `products` stands for, up to a factor.
    """

    ranked: Pairs
    products: Pairs
    weights: npt.NDArray[np.float32]


@lru_cache(maxsize=8)
def sketch_pairs(name: str) -> SketchPairs:
    """The pairs of the reference stimuli of that name."""
    arrays, about = read_arrays(FOLDER / f"{name}-pairs.npz", way_out="install thinkalike again")
    pairs = [Pairs(about["n_items"], arrays[kind].astype(np.int64)) for kind in ("ranked", "products")]
    return SketchPairs(pairs[0], pairs[1], arrays["weights"])


def draw_pairs(stimuli: Stimuli, *, seed: int = 0) -> SketchPairs:
    """Draw the pairs of new reference stimuli; of few items all pairs are taken."""
    codes = [
        pd.factorize(column.astype(object).where(column.notna(), "–"))[0] for column in _columns(stimuli)
    ]
    n, rng = len(stimuli), np.random.default_rng(seed)
    every = Pairs.of(n)
    kinds = np.zeros(len(every), dtype=np.int64)
    for code in codes:
        kinds = 2 * kinds + (code[every.i] != code[every.j])
    order = np.lexsort((rng.permutation(len(every)), kinds))
    guessed = squareform(u_centred(_alike(codes)), checks=False) ** 2
    rates = EVENLY + (1 - EVENLY) * guessed / guessed.mean()
    even = np.ones(len(every))
    ranked = _systematic(even, order, RANKED, rng)
    products = _systematic(rates, order, PRODUCTS, rng)
    weights = np.ones(len(products)) if len(products) == len(every) else 1 / rates[products]
    return SketchPairs(Pairs(n, ranked), Pairs(n, products), weights.astype(np.float32))


def _columns(stimuli: Stimuli) -> list[pd.Series]:
    features, items = stimuli.features, stimuli.items
    columns = [features[name] for name in features]
    return [*columns, items["word"]] if "word" in items and items["word"].duplicated().any() else columns


def _alike(codes: list[npt.NDArray[np.int64]]) -> Floats:
    """(n, n) how alike items are when every feature has the same variance."""
    columns = []
    for code in codes:
        levels = np.eye(int(code.max()) + 1)[code]
        levels -= levels.mean(axis=0)
        columns.append(levels / max(float(np.linalg.norm(levels)), 1e-12))
    stacked = np.concatenate(columns, axis=1)
    return stacked @ stacked.T


def _systematic(
    rates: Floats, order: npt.NDArray[np.int64], size: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """About `size` places, each taken in proportion to its rate, at even steps along `order`; rising."""
    if size >= len(order):
        return np.arange(len(order))
    along = np.cumsum(rates[order])
    steps = (rng.random() + np.arange(size)) * along[-1] / size
    return np.unique(order[np.minimum(np.searchsorted(along, steps), len(order) - 1)])
