"""What is left out and what changes places: drawn once, and the same for every layer, system and measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from thinkalike.errors import InvalidInput
from thinkalike.inference.geometry_tests import Null
from thinkalike.inference.left_out import MOST_PAIRS, LeftOut, has_range, left_out_matrices, left_out_rsa
from thinkalike.inference.null_calibration import null_values, sentence_orders
from thinkalike.inference.ranges import Indices, leave_parts_out
from thinkalike.measures.measure import Measure
from thinkalike.measures.pair_forms import PAIR_FORMS, Orders, PairForm, reordered_products
from thinkalike.measures.rsa import RankedLayers
from thinkalike.pairs.pairset import Pairs, draw_places
from thinkalike.stimuli.differences import FeatureDifferences

PERMUTATIONS = 200
"""Orders of the sentences that a measure is held against, unless told otherwise"""
NULL_PAIRS = 30_000
"""Pairs of items that the null is computed from: of more, a seeded sample. It moves ρ by 0.006"""
MOST_ITEMS = 6_000
"""With more items, whose pairs do not fit into memory, there is no null"""


@dataclass(frozen=True, eq=False)
class SentencePlan:
    """Parts of the sentences to leave out, and orders to put them into.

    Attributes
    ----------
    kept
        The items that stay, for each part that is left out; none where there is no range.
    orders
        (n_permutations, n_items); none where there is no null.
    asked
        Whether the permutations were asked for: measures that need everything computed again for each have
        them only then.
    why_not
        What is not given, and why.
    """

    n_items: int
    kept: tuple[Indices, ...] = field(repr=False)
    orders: Orders = field(repr=False)
    asked: bool
    seed: int
    why_not: tuple[str, ...] = ()

    def left_out(self, measure: str, layers: Sequence[np.ndarray]) -> LeftOut | None:
        """`measure` between all layers without each part; None where it has no range."""
        if not self.kept or not has_range(measure):
            return None
        return left_out_matrices(measure, layers, self.kept, seed=self.seed)

    def left_out_ranked(
        self, ranked: RankedLayers, differences: FeatureDifferences | None = None
    ) -> LeftOut | None:
        """The same for RSA, from ranks that are there already, and what the features explain of it."""
        if not self.kept:
            return None
        return left_out_rsa(*_some_ranks(ranked, self.seed), self.kept, differences)

    def null(self, measure: Measure, layers: Sequence[np.ndarray], names: Sequence[str]) -> Null | None:
        """`measure` between all layers, sentences as they are and exchanged."""
        if not len(self.orders) or not (self.asked or measure.name in PAIR_FORMS):
            return None
        if not measure.matches_items:  # no order of the items changes it
            return None
        pairs = Pairs.of(self.n_items, max_pairs=NULL_PAIRS, seed=self.seed)
        return Null(*null_values(measure, layers, layers, self.orders, names=(names, names), pairs=pairs))

    def null_ranked(self, ranked: RankedLayers) -> Null | None:
        """The same for RSA, from ranks that are there already."""
        if not len(self.orders):
            return None
        scale = np.float32(1 / np.sqrt(len(ranked.pairs)))
        forms = [partial(_unit_form, ranked, layer, scale) for layer in range(ranked.n_layers)]
        together = np.concatenate([np.arange(self.n_items)[None], self.orders])
        pairs = Pairs.of(self.n_items, max_pairs=NULL_PAIRS, seed=self.seed)
        values = reordered_products(forms, forms, together, pairs=pairs)
        return Null(values[0], values[1:])


def plan_sentences(
    sentences: Sequence[object] | npt.NDArray[np.generic] | None,
    n_items: int,
    *,
    ranges: bool = True,
    permutations: int | None = None,
    seed: int = 0,
) -> SentencePlan:
    """Draw what is left out and what changes places; where there are too few sentences, say so.

    Parameters
    ----------
    sentences : the sentence of each item; None if every item stands for itself.
    ranges : whether to leave sentences out.
    permutations : orders of the sentences; 200 when None, for measures that take them cheaply.
    """
    kept: tuple[Indices, ...] = ()
    orders: Orders = np.empty((0, n_items), dtype=np.int64)
    why_not = []
    n_orders = PERMUTATIONS if permutations is None else permutations
    try:
        kept = tuple(leave_parts_out(sentences, n_items, seed=seed)) if ranges else ()
    except InvalidInput as error:
        why_not.append(str(error))
    try:
        if n_orders and n_items > MOST_ITEMS:
            raise InvalidInput(f"What chance gives is not computed for more than {MOST_ITEMS:,} items.")
        orders = sentence_orders(sentences, n_items, n=n_orders, seed=seed) if n_orders else orders
    except InvalidInput as error:
        if permutations is not None:
            raise
        why_not.append(str(error))
    return SentencePlan(n_items, kept, orders, permutations is not None, seed, tuple(why_not))


def _some_ranks(ranked: RankedLayers, seed: int) -> tuple[npt.NDArray[np.float32], Pairs]:
    """The ranks of all layers at a sample of the pairs, and that sample."""
    pairs, n = ranked.pairs, len(ranked.pairs)
    if n <= MOST_PAIRS:
        return np.stack([ranked.row(k) for k in range(ranked.n_layers)]), pairs
    places = draw_places(n, MOST_PAIRS, np.random.default_rng(seed))
    sample = places if pairs.sample is None else pairs.sample[places]
    return np.stack([ranked.row(k)[places] for k in range(ranked.n_layers)]), Pairs(pairs.n_items, sample)


def _unit_form(ranked: RankedLayers, layer: int, scale: np.float32) -> PairForm:
    return PairForm(ranked.row(layer) * scale, None)
