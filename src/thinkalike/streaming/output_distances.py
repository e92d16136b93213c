"""`compare_outputs`: how differently causal models of one vocabulary continue the same text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from thinkalike.checkpoint import Checkpoint
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.labels import Floats
from thinkalike.measures.outputs import (
    disagreement,
    jensen_shannon,
    prepare_logits,
    prepare_probabilities,
)
from thinkalike.options import one_name, whole_number
from thinkalike.progress import progress
from thinkalike.provenance import RUNNING_MODELS, digest_of, versions
from thinkalike.saving import KeptFolder
from thinkalike.stimuli.text import PackedText, Split
from thinkalike.streaming.text_passages import HowToRead, packed_tokens
from thinkalike.systems.batch import Batch
from thinkalike.systems.system import LoadOptions, System, open_system, open_systems
from thinkalike.types import Chart, Facts, Json, Tokenizer

if TYPE_CHECKING:
    from torch import nn

MEASURES = {
    "jensen-shannon": (prepare_probabilities, jensen_shannon),
    "disagreement": (prepare_logits, disagreement),
}
"""Name → what is made of logits once, and the distance of two such"""
ROWS_AT_ONCE = 128
"""Tokens whose predictions are held in float64 together"""
FEWEST_UNITS = 10
ONE_VOCABULARY = (
    "their predictions are over other tokens. Compare their layers (thinkalike cka --level word)."
)


@dataclass(frozen=True, eq=False, repr=False)
class OutputDistances(KeptFolder):
    """Distances between the predictions of models, over text.

    Attributes
    ----------
    systems : names of the models
    values : measure → (n_systems, n_systems), means over tokens; 0 on the diagonal
    standard_errors : the same, by jackknife over documents (or passages where documents are few)
    n_tokens : at how many places the models predicted the next token
    units : what the standard errors are over, and how many
    settings : what changed the numbers, by name

    Examples
    --------
    >>> import thinkalike as ta
    >>> from thinkalike.systems import bundled
    >>> models = ["nano-gelu-3l", "nano-solu-3l"]
    >>> found = ta.compare_outputs(models, bundled.sample_text(), length=32, max_passages=3)
    >>> found
    OutputDistances(nano-gelu-3l, nano-solu-3l; 96 tokens)
    >>> bool(0 < found.values["jensen-shannon"][0, 1] < 1)
    True
    """

    systems: tuple[str, ...]
    values: Mapping[str, Floats] = field()
    standard_errors: Mapping[str, Floats] = field()
    n_tokens: int
    units: Mapping[str, int]
    settings: Facts = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"OutputDistances({', '.join(self.systems)}; {self.n_tokens:,} tokens)"

    def table(self, measure: str = "jensen-shannon") -> pd.DataFrame:
        """Systems × systems."""
        _check_known(measure, self.values)
        return pd.DataFrame(self.values[measure], index=list(self.systems), columns=list(self.systems))

    def to_frame(self) -> pd.DataFrame:
        """One row per measure and pair of models."""
        first, second = np.triu_indices(len(self.systems), 1)
        return pd.concat(
            [
                pd.DataFrame(
                    {
                        "measure": name,
                        "a": [self.systems[k] for k in first],
                        "b": [self.systems[k] for k in second],
                        "value": self.values[name][first, second],
                        "standard_error": self.standard_errors[name][first, second],
                    }
                )
                for name in self.values
            ],
            ignore_index=True,
        )

    def _tables(self) -> dict[str, pd.DataFrame]:
        return {"outputs": self.to_frame()}

    def _about(self) -> Json:
        return {
            "systems": self.systems,
            "tokens": self.n_tokens,
            "units": dict(self.units),
            "settings": dict(self.settings),
            "versions": versions(RUNNING_MODELS),
        }

    def plot(self, measure: str = "jensen-shannon", *, theme: str = "light") -> Chart:
        """All models against all."""
        from thinkalike.charts.population_charts import model_matrix
        from thinkalike.charts.theme import get_theme, themed

        _check_known(measure, self.values)
        pairs = product(enumerate(self.systems), repeat=2)
        values = pd.DataFrame(
            [{"a": a, "b": b, "distance": self.values[measure][i, j]} for (i, a), (j, b) in pairs]
        )
        title = f"Predictions of {len(self.systems)} models over {self.n_tokens:,} tokens"
        chart = model_matrix(values, order=self.systems, label=measure, title=title, theme=get_theme(theme))
        return themed(chart, get_theme(theme))


def _check_known(measure: str, known: Collection[str]) -> None:
    if measure not in known:
        raise UnknownName.among("distance between predictions", measure, known)


@one_name
def compare_outputs(
    models: Sequence[str | Path | nn.Module] | Mapping[str, str | Path | nn.Module],
    text: str | Path | Sequence[str] | PackedText,
    *,
    length: int | None = None,
    split: Split | None = None,
    bos: bool | None = None,
    max_passages: int = 100,
    tokenizer: Tokenizer | None = None,
    device: str | None = None,
    dtype: str = "float32",
    checkpoint: str | Path | None = None,
) -> OutputDistances:
    """How differently causal language models of one vocabulary predict the next token of the same text.

    Two distances, each a mean over all tokens that are read: the Jensen–Shannon divergence of the two
    predictions in bits (0: the same, 1: nothing in common), and the share of places at which the likeliest
    next token is another.

    Parameters
    ----------
    models
        Two or more: hub ids, folders, bundled models, or loaded models; a mapping gives them names of their
        own. They must have the same tokenizer. Where output layers were filled up to different widths, the
        tokens of the tokenizer count and no others.
    text
        The path of a text file or of a folder of them, documents as strings, or `PackedText`.
    length
        Of a passage in tokens; as much as all models read, 1,024 at most.
    split
        What a document of a file or folder is: "files", "paragraphs" or "lines". If not given, the files of a
        folder and the paragraphs of a file.
    bos
        Whether every passage begins with a beginning-of-sequence token.
    max_passages
        Stop after so many.
    tokenizer
        If not the models' own: one for all, or name → tokenizer.
    device, dtype
        Where to run, and of the weights.
    checkpoint
        A file for the state so far: the same call again goes on from there. It is gone when all is done.

    Returns
    -------
    OutputDistances

    Examples
    --------
    >>> import thinkalike as ta
    >>> models = ["nano-gelu-3l", "nano-solu-3l"]
    >>> text = ["The dog sees the cat and the bird sees the dog."] * 2
    >>> ta.compare_outputs(models, text, length=8).table("disagreement").shape
    (2, 2)
    """
    whole_number("max_passages", max_passages, 1)
    systems = _opened(models, LoadOptions(device=device, dtype=dtype), tokenizer)
    how = HowToRead(length=length, bos=bos, split=split)
    passages = packed_tokens(systems, text, how, ONE_VOCABULARY)
    batch = passages.batch.take(slice(max_passages), trimmed=False)
    documents = [str(one) for one in passages.documents[: len(batch)]]
    settings = {
        "length": batch.width,
        "split": split,
        "bos": bos,
        "max_passages": max_passages,
        "dtype": dtype,
        "models": {system.name: system.about for system in systems},
        "text": passages.digest(),
    }
    first, second = np.triu_indices(len(systems), 1)
    found = np.full((len(batch), len(MEASURES), len(first)), np.nan)
    saved = None
    if checkpoint is not None:
        key = digest_of({**settings, "identities": [system.identity for system in systems]})
        saved = Checkpoint(checkpoint, key, seconds_between=2.0)
        before = saved.load()
        if before is not None:
            found = before[0]["found"]
    with progress("Reading passages", len(batch)) as step:
        for k in range(len(batch)):
            if np.isnan(found[k]).any():
                found[k] = _distances(systems, batch.take([k]), first, second)
                if saved is not None and saved.is_due:
                    saved.save({"found": found}, {})
            step.advance()
    if saved is not None:
        saved.finish()
    return _collected(systems, found, batch.mask.sum(axis=1), documents, settings)


def _opened(
    models: Sequence[str | Path | nn.Module] | Mapping[str, str | Path | nn.Module],
    options: LoadOptions,
    tokenizer: Tokenizer | None,
) -> list[System]:
    """With their output layers; only those that predict the next token."""
    named = {system.name: system for system in open_systems(models, options, tokenizer=tokenizer)}
    given = list(models.values()) if isinstance(models, Mapping) else list(models)
    systems = [
        open_system(model, options, name=name, head="own", tokenizer=named[name].tokenizer_given)
        for name, model in zip(named, given, strict=True)
    ]
    if len(systems) < 2:
        raise InvalidInput(f"Got only {systems[0].name}: give two models or more.")
    for system in systems:
        if system.task != "causal" or system.about["part"] is not None:
            what = "encoder-decoder" if system.about["part"] is not None else system.task
            raise InvalidInput(
                f"{system.name} is a {what} model, and here each predicts the next token: give causal "
                "language models, or the logits of others to MEASURES['jensen-shannon']."
            )
    return systems


def _distances(
    systems: Sequence[System], passage: Batch, first: np.ndarray, second: np.ndarray
) -> np.ndarray:
    """(n_measures, n_pairs), means over the tokens of one passage."""
    logits = [_logits(system, passage) for system in systems]
    n_tokens = len(logits[0])
    sums = np.zeros((len(MEASURES), len(first)))
    for start in range(0, n_tokens, ROWS_AT_ONCE):
        rows = [one[start : start + ROWS_AT_ONCE] for one in logits]
        for m, (prepare, distance) in enumerate(MEASURES.values()):
            prepared = [prepare(one) for one in rows]
            means = [distance(prepared[a], prepared[b]) for a, b in zip(first, second, strict=True)]
            sums[m] += len(rows[0]) * np.array(means)
    return np.asarray(sums / n_tokens)


def _logits(system: System, passage: Batch) -> np.ndarray:
    """(n_tokens, n_words of the tokenizer), float32."""
    import torch

    from thinkalike.systems.calling import arguments
    from thinkalike.systems.mamba.selective_scan import fused_scan

    model = system.model
    with torch.inference_mode(), fused_scan(model):
        answer = model(**arguments(system.stack, passage, model)).logits[0]
    found: np.ndarray = answer[passage.mask[0], : len(system.tokenizer)].float().cpu().numpy()
    return found


def _collected(
    systems: Sequence[System],
    found: np.ndarray,
    n_tokens: np.ndarray,
    documents: Sequence[str],
    settings: Facts,
) -> OutputDistances:
    """Means over all tokens, and their standard errors by leaving out documents or passages."""
    several = len(set(documents)) >= FEWEST_UNITS
    owner = np.unique(documents, return_inverse=True)[1] if several else np.arange(len(found))
    n_units = int(owner.max()) + 1
    sums = np.zeros((n_units, *found.shape[1:]))
    counts = np.zeros(n_units)
    np.add.at(sums, owner, found * n_tokens[:, None, None])
    np.add.at(counts, owner, n_tokens)
    means = sums.sum(axis=0) / counts.sum()
    errors = np.full_like(means, np.nan)
    if n_units > 1:
        without = (sums.sum(axis=0) - sums) / (counts.sum() - counts)[:, None, None]
        spread = ((without - without.mean(axis=0)) ** 2).sum(axis=0)
        errors = np.sqrt((n_units - 1) / n_units * spread)
    return OutputDistances(
        tuple(system.name for system in systems),
        {name: _square(means[m], len(systems)) for m, name in enumerate(MEASURES)},
        {name: _square(errors[m], len(systems)) for m, name in enumerate(MEASURES)},
        int(n_tokens.sum()),
        {"documents" if several else "passages": n_units},
        settings,
    )


def _square(values: np.ndarray, n: int) -> Floats:
    square = np.zeros((n, n))
    square[np.triu_indices(n, 1)] = values
    return square + square.T
