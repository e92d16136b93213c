r"""The geometry of a layer in a few kilobytes: its distances and Gram entries at a fixed set of pairs.

The pairs are the same for every model. Kept are, for each layer, the rank of the distance of a pair in 16
steps, and its entry of the U-centred Gram matrix in 49 steps that are finer near 0. From these

    RSA = the correlation of ranks over pairs,   CKA = Σ w ab / √(Σ w a² Σ w b²) of Gram entries over pairs,

w being the weight of a pair. In 16 steps ranks have 1 − 1/16² of their variance, and between two layers the
square of that of their covariance: so the correlation of the steps is divided by that share.

Which pairs a sketch keeps is drawn once for each reference, and a file of the package from then on. For ranks
of distances every pair is as likely as any other. Entries of a Gram matrix are mostly small, and a few pairs,
of the same word in the same place, carry most of it: these are drawn more often and weigh less. How large an
entry will be is guessed from the stimuli alone, as that of a system in which every feature, and the word
itself, weighs the same. Both draws go evenly through the pairs sorted by the features that they differ in, so
that no kind of pair is left to chance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.spatial.distance import squareform

from thinkalike.files import read_arrays
from thinkalike.labels import Floats
from thinkalike.measures.cka import prepare_linear, u_centred
from thinkalike.measures.hsic import u_centring_terms
from thinkalike.measures.inputs import as_layer
from thinkalike.pairs.distances import make_target
from thinkalike.pairs.pairset import Pairs
from thinkalike.pairs.ranks import centred_ranks, sort_distances
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


RANK_LEVELS = 16
GRAM_LEVELS = 24
"""To either side of 0: with five times as many CKA is hardly nearer, and each entry takes two bits more"""

Codes = npt.NDArray[np.uint8]
SignedCodes = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False, repr=False)
class Sketch:
    """The layers of one system at the pairs of a reference."""

    ranks: Codes = field()
    """(n_layers, n_ranked) 0 … 15, the nearest pairs 0"""
    gram: SignedCodes = field()
    """(n_layers, n_products) −24 … 24, in units of the layer's largest entry, roots taken"""
    together: Codes = field()
    """(n_ranked,) ranks of the distances in all blocks side by side"""


class Sketcher:
    """Takes the layers of one system one by one."""

    def __init__(self, pairs: SketchPairs) -> None:
        self.pairs = pairs
        self.ranks: list[Codes] = []
        self.gram: list[SignedCodes] = []
        self._sum, self._slack = np.zeros(len(pairs.ranked)), np.zeros(pairs.ranked.n_items)

    def add(self, X: np.ndarray, name: str, *, is_block: bool = True) -> None:
        """A layer (n_items, n_units); `is_block` if it counts when all blocks stand side by side."""
        layer, ranked = as_layer(X, name), self.pairs.ranked
        y, rounding = make_target(layer, "euclidean").between(ranked.i, ranked.j)
        self.ranks.append(_rank_codes(y, rounding, ranked))
        self.gram.append(_gram_codes(prepare_linear(layer, name), self.pairs.products))
        if is_block:
            self._sum += y
            self._slack += rounding

    def finished(self) -> Sketch:
        together = _rank_codes(self._sum, self._slack, self.pairs.ranked)
        return Sketch(np.stack(self.ranks), np.stack(self.gram), together)


def sketched_rsa(codes: Codes) -> Floats:
    """RSA between all rows of rank codes (n_rows, n_ranked): (n_rows, n_rows)."""
    values = codes.astype(np.float32)
    values -= values.mean(axis=1, keepdims=True)
    found = np.clip(_cosines(values) / (1 - RANK_LEVELS**-2), -1, 1)
    np.fill_diagonal(found, 1.0)
    return found


def sketched_cka(codes: SignedCodes, weights: npt.NDArray[np.float32]) -> Floats:
    """Unbiased linear CKA between all rows of Gram codes (n_rows, n_products): (n_rows, n_rows)."""
    values = codes.astype(np.float32)
    values *= np.abs(values)  # the roots that were taken, undone
    return _cosines(values * np.sqrt(weights))


def _cosines(values: npt.NDArray[np.float32]) -> Floats:
    with np.errstate(invalid="ignore"):
        unit = values / np.sqrt((values**2).sum(axis=1, keepdims=True))
    return np.clip((unit @ unit.T).astype(np.float64), -1, 1)


def _rank_codes(y: Floats, rounding: Floats, pairs: Pairs) -> Codes:
    ranks, _ = centred_ranks(*sort_distances(y, pairs.i, pairs.j, rounding))
    place = ranks / len(ranks) + 0.5  # (0, 1)
    return np.clip(place * RANK_LEVELS, 0, RANK_LEVELS - 1).astype(np.uint8)


def _gram_codes(C: Floats, pairs: Pairs) -> SignedCodes:
    norms = np.einsum("ij,ij->i", C, C)
    u = u_centring_terms(norms, norms.sum(), len(C))
    entries = np.einsum("ij,ij->i", C[pairs.i], C[pairs.j]) + u[pairs.i] + u[pairs.j]
    scaled = entries / np.abs(entries).max()
    return np.rint(np.sign(scaled) * np.sqrt(np.abs(scaled)) * GRAM_LEVELS).astype(np.int8)
