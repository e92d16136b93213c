"""What reading a model takes: measured on a few of the texts, or guessed from its configuration."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thinkalike.activations.latent_choice import without_latents
from thinkalike.errors import ThinkalikeError
from thinkalike.stimuli.table import Stimuli

if TYPE_CHECKING:
    import pandas as pd

    from thinkalike.systems.system import LoadOptions, System

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


_imported: set[str] = set()
"""Modules of architectures that were opened here"""


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
        start = time.process_time()
        system = _opened(model, extraction)
        _ = system.model, system.tokenizer
        seconds = time.process_time() - start
        known = type(system.model).__module__ in _imported
        _imported.add(type(system.model).__module__)
        if known or seconds > LONG_TO_OPEN:
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
