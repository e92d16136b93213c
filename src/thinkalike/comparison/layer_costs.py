r"""What looking at a layer takes: measured on invented vectors, at the items in question or at fewer.

One layer is looked at as the run will do it. Beyond `MEASURED_ITEMS` three smaller sets of the items tell how
it grows, seconds = c + a n + b P, with P the pairs of items that are gone through one by one; a sampled pair
costs what a short sample of them does.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

from thinkalike.activations.store import Activations
from thinkalike.comparison.layerpass import LayerTask, Look, OfGeometry
from thinkalike.comparison.profiling import ProfilingPlan, plan_profiles
from thinkalike.encoding.plan import EncodingPlan
from thinkalike.errors import InvalidInput
from thinkalike.pairs.distances import make_target
from thinkalike.pairs.pairset import MAX_PAIRS, Pairs
from thinkalike.pairs.ranks import standardised_ranks
from thinkalike.stimuli.table import Stimuli

MEASURED_ITEMS = 2_000
SMALLER = (250, 500, 1_000)
SAMPLED_ITEMS, SAMPLED_PAIRS = 20_000, 50_000
BYTES_A_PAIR = 44
"""That ranking takes for a while: distances, their order twice, ranks in double and single precision"""
KEPT_A_PAIR = 16
"""Of the pairs that are kept, with their ends and places, or with their patterns"""


@dataclass(frozen=True)
class PairCounts:
    """How many pairs of items a layer is looked at by.

    Attributes
    ----------
    whole
        Gone through one by one, in all.
    sampled
        Drawn from more.
    largest
        In one go.
    kept
        Whose ends or patterns stay in memory for all layers.
    """

    whole: int
    sampled: int
    largest: int
    kept: int

    @classmethod
    def of(cls, n_items: int, plan: ProfilingPlan, *, geometry: bool) -> PairCounts:
        settings, most = plan.encoding.settings, plan.encoding.settings.max_pairs
        every = n_items * (n_items - 1) // 2
        sets = [every] if geometry else []
        if isinstance(plan.encoding, EncodingPlan):
            inside = n_items // settings.n_folds
            sets += [inside * (inside - 1) // 2] * settings.n_folds
        else:
            sets.append(every)
        used = [min(pairs, most) for pairs in sets]
        resampled = every if plan.resampling is not None and every <= MAX_PAIRS else 0
        return cls(
            whole=sum(pairs for pairs in sets if pairs <= most) + resampled,
            sampled=sum(most for pairs in sets if pairs > most),
            largest=max([*used, resampled]),
            kept=sum(used) + resampled,
        )

    @property
    def working_memory(self) -> int:
        """Bytes for one layer at a time, without its vectors."""
        return BYTES_A_PAIR * self.largest

    @property
    def shared_memory(self) -> int:
        return KEPT_A_PAIR * self.kept


def seconds_a_layer(
    stimuli: Stimuli, plan: ProfilingPlan, widths: Sequence[int], *, geometry: bool
) -> dict[int, float] | None:
    """Processor seconds of looking at one layer, by its width; None if no smaller plan can be made."""
    few = sorted({min(widths), max(widths)})
    try:
        found = {width: _seconds(stimuli, plan, width, geometry=geometry) for width in few}
    except InvalidInput:  # labels for all items, say, that a part of them does not have
        return None
    low, high = few[0], few[-1]
    slope = (found[high] - found[low]) / max(high - low, 1)
    return {width: max(found[low] + slope * (width - low), 0.0) for width in set(widths)}


def _seconds(stimuli: Stimuli, plan: ProfilingPlan, width: int, *, geometry: bool) -> float:
    n = len(stimuli)
    if n <= MEASURED_ITEMS:
        return _look(stimuli, plan, width, geometry=geometry)
    rows, times = [], []
    order = np.random.default_rng(0).permutation(n)
    for few in SMALLER:
        some = stimuli.subset(np.sort(order[:few]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            smaller = plan_profiles(some, **plan.asked)
        times.append(_look(some, smaller, width, geometry=geometry))
        rows.append((1.0, few, PairCounts.of(few, smaller, geometry=geometry).whole))
    terms, seconds = np.array(rows), np.array(times)
    coefficients, _ = nnls(terms / seconds[:, None], np.ones(len(seconds)))  # shares, not seconds, should fit
    counts = PairCounts.of(n, plan, geometry=geometry)
    sampled = _seconds_a_sampled_pair(width, plan) * counts.sampled if counts.sampled else 0.0
    return float(coefficients @ (1.0, n, counts.whole)) + sampled


def _look(stimuli: Stimuli, plan: ProfilingPlan, width: int, *, geometry: bool) -> float:
    X = np.random.default_rng(0).standard_normal((len(stimuli), width), dtype=np.float32)
    look = Look.of(stimuli, plan)
    wanted: OfGeometry = "all" if geometry else "nothing"
    task = LayerTask(Activations.from_arrays({0: X}), 0, True, wanted, plan.resampling is not None)
    return _shorter_of_two(lambda: look(task))


def _seconds_a_sampled_pair(width: int, plan: ProfilingPlan) -> float:
    X = np.random.default_rng(0).standard_normal((SAMPLED_ITEMS, width), dtype=np.float32)
    pairs = Pairs.of(SAMPLED_ITEMS, max_pairs=SAMPLED_PAIRS)
    target = make_target(X, plan.encoding.settings.distance)
    return _shorter_of_two(lambda: standardised_ranks(pairs, target)) / SAMPLED_PAIRS


def _shorter_of_two(work: Callable[[], object]) -> float:
    """Processor seconds on one thread; the first time, machine code may have to be loaded."""
    times = []
    with threadpool_limits(1, "blas"):
        for _ in range(2):
            start = time.thread_time()
            work()
            times.append(time.thread_time() - start)
    return max(min(times), 1e-6)
