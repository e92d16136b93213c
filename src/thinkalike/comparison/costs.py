"""What reading a model and looking at a layer take, measured or guessed.

A model is read on a few of the texts, or guessed from its configuration. A layer of invented vectors is
looked at as the run will do it, at the items in question or at fewer: beyond `MEASURED_ITEMS` three smaller
sets of the items tell how it grows, seconds = c + a n + b P, with P the pairs of items that are gone through
one by one; a sampled pair costs what a short sample of them does.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

from thinkalike.activations.sparse_latents import without_latents
from thinkalike.activations.store import Activations
from thinkalike.comparison.layerpass import LayerTask, Look, OfGeometry
from thinkalike.comparison.profiling import ProfilingPlan, plan_profiles
from thinkalike.encoding.plan import EncodingPlan
from thinkalike.errors import InvalidInput, ThinkalikeError
from thinkalike.pairs.distances import make_target
from thinkalike.pairs.pairset import MAX_PAIRS, Pairs
from thinkalike.pairs.ranks import standardised_ranks
from thinkalike.stimuli.table import Stimuli

if TYPE_CHECKING:
    import pandas as pd

    from thinkalike.systems.system import LoadOptions, System

MEASURED_ITEMS = 2_000
SMALLER = (250, 500, 1_000)
SAMPLED_ITEMS, SAMPLED_PAIRS = 20_000, 50_000
BYTES_A_PAIR = 44
"""That ranking takes for a while: distances, their order twice, ranks in double and single precision"""
KEPT_A_PAIR = 16
"""Of the pairs that are kept, with their ends and places, or with their patterns"""

FIRST_TEXTS, MOST_TEXTS = 8, 512
ENOUGH_SECONDS = 0.4
"""Of the processor: fewer texts say too little, more cost too much"""
LONG_TO_OPEN = 10.0
"""Seconds beside which the code of an architecture, loaded with its first model, does not matter"""
CHARACTERS_A_TOKEN = 4.0
WEIGHTS = ("*.safetensors", "*.gguf", "*.bin")

SECONDS_TO_OPEN = 0.6
BYTES_A_SECOND = 4e8
"""That loading weights and taking their digest go through"""
FLOPS_A_SECOND = 2e10
"""Of one processor, in a model of some size; a small one spends its time between the products"""
SECONDS_A_LAYER_AND_PASS = 4e-3
TOKENS_A_PASS = 1_024


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


@dataclass(frozen=True)
class SystemSize:
    """What a system is, as far as it is known before it is read.

    Attributes
    ----------
    n_units
        The width of each layer; None if the configuration does not say.
    seconds
        Of the processor, to read all texts; 0 for what is there, None if it cannot be told.
    memory
        Bytes of the weights.
    stored
        Whether a run directory has its activations already.
    """

    name: str
    n_units: tuple[int, ...] | None
    seconds: float | None = 0.0
    memory: int = 0
    stored: bool = False


def measured_reading(name: str, model: str, stimuli: Stimuli, extraction: Mapping[str, Any]) -> SystemSize:
    """Open the model, and have it read a few of the texts."""
    from thinkalike.activations import extract

    extraction, n_latents = without_latents(extraction)
    system, opening = _timed_opening(model, extraction)
    loaded, tokenizer = system.model, system.tokenizer
    load_only = {field.name for field in fields(_load_options())}
    how = {k: v for k, v in extraction.items() if k not in load_only | {"processor", "cache"}}
    how |= {k: extraction[k] for k in ("part", "blocks") if extraction.get(k) is not None}
    texts = stimuli.sentences.sample(frac=1.0, random_state=0).index
    total = _characters(stimuli, stimuli.sentences.index)
    with tempfile.TemporaryDirectory() as folder:
        alone = _showing(stimuli, texts[:1])
        extract(loaded, alone, processor=tokenizer, **how)  # what is loaded once
        start = time.process_time()
        extract(loaded, alone, processor=tokenizer, out=Path(folder, "alone"), **how)
        once = time.process_time() - start  # whatever the number of texts: digests, the store itself
        count = min(FIRST_TEXTS, len(texts))
        while True:
            some = _showing(stimuli, texts[:count])
            start = time.process_time()
            found = extract(loaded, some, processor=tokenizer, out=Path(folder, f"{count}"), **how)
            taken = max(time.process_time() - start - once, 0.0)
            if taken >= ENOUGH_SECONDS or count >= min(len(texts), MOST_TEXTS):
                break
            count = min(4 * count, len(texts), MOST_TEXTS)
    seconds = opening + once + taken * total / _characters(stimuli, texts[:count])
    return SystemSize(name, _kept(found.n_units, n_latents), seconds, _weights(system))


def _timed_opening(model: str, extraction: Mapping[str, Any]) -> tuple[System, float]:
    """The model, and the processor seconds of opening it once the code of its architecture is loaded."""
    while True:
        loaded = frozenset(sys.modules)
        start = time.process_time()
        system = _opened(model, extraction)
        _ = system.model, system.tokenizer
        seconds = time.process_time() - start
        if type(system.model).__module__ in loaded or seconds > LONG_TO_OPEN:
            return system, seconds


def guessed_reading(name: str, model: str, stimuli: Stimuli, extraction: Mapping[str, Any]) -> SystemSize:
    """From the configuration and the size of its files alone; no weights are loaded."""
    extraction, n_latents = without_latents(extraction)
    try:
        system = _opened(model, extraction)
    except ThinkalikeError:  # whoever reads it will say it better
        return SystemSize(name, None, None)
    config, weights = system.config, _weights(system)
    depth, width = (getattr(config, name, None) for name in ("num_hidden_layers", "hidden_size"))
    if not isinstance(depth, int) or not isinstance(width, int) or not weights:
        return SystemSize(name, None, None)
    tokens = _characters(stimuli, stimuli.sentences.index) / CHARACTERS_A_TOKEN
    passes = 1 + tokens / TOKENS_A_PASS
    seconds = (
        SECONDS_TO_OPEN
        + weights / BYTES_A_SECOND
        + 2 * (weights / 4) * tokens / FLOPS_A_SECOND
        + SECONDS_A_LAYER_AND_PASS * (depth + 1) * passes
    )
    return SystemSize(name, _kept((width,) * (depth + 1), n_latents), seconds, weights)


def _kept(n_units: tuple[int, ...], n_latents: int | None) -> tuple[int, ...]:
    """The widths of the layers that stay: those that were read, or latents of one unit each."""
    return n_units if n_latents is None else (1,) * n_latents


def _opened(model: str, extraction: Mapping[str, Any]) -> System:
    from thinkalike.systems.system import open_system

    options = _load_options()
    given = {k: v for k, v in extraction.items() if v is not None and hasattr(options, k)}
    return open_system(model, type(options)(**given), head="causal" if extraction.get("generate") else None)


def _load_options() -> LoadOptions:
    from thinkalike.systems.system import LoadOptions

    return LoadOptions()


def _weights(system: System) -> int:
    """Bytes of its files; 0 if they are not here."""
    if system.folder is None:
        return 0
    for pattern in WEIGHTS:
        files = list(Path(system.folder).glob(pattern))
        if files:
            return sum(file.stat().st_size for file in files)
    return 0


def _characters(stimuli: Stimuli, texts: pd.Index) -> float:
    return float(max(stimuli.sentences[texts].str.len().sum(), 1))


def _showing(stimuli: Stimuli, texts: pd.Index) -> Stimuli:
    return stimuli.subset(np.asarray(stimuli.items["sentence"].isin(texts)))
