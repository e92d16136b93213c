"""`stream_cka`: CKA between all layers of several models over running text, documents, or pairs of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from thinkalike.checkpoint import Checkpoint
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.labels import block_of
from thinkalike.options import one_name
from thinkalike.stimuli.text import PackedText, Split
from thinkalike.streaming.batches import MIXED, MixedBatches, PassageBatches
from thinkalike.streaming.cka_matrix import CKAMatrix, Row
from thinkalike.streaming.passages import PADDINGS, Padding, Passages
from thinkalike.streaming.stream import Trace, make_matrix, model_batches, run_stream
from thinkalike.streaming.sums import FEWEST_UNITS, Average, StreamingCKA
from thinkalike.streaming.text_passages import (
    LEVELS,
    HowToRead,
    Level,
    documents_of,
    own_tokens,
    packed_tokens,
    shared_documents,
)
from thinkalike.systems.batch import Document
from thinkalike.systems.calling import layer_labels
from thinkalike.systems.sites import find_site
from thinkalike.systems.system import LoadOptions, System, open_systems
from thinkalike.types import Facts, Option, Tokenizer

if TYPE_CHECKING:
    from torch import nn

    from thinkalike.systems.hooks import Layer

Batching = Literal["sequence", "tokens", "chunks"]
BATCHINGS = ("sequence", "tokens", "chunks")
ROWS_OF_A_BATCH = {"token": 1024, "word": 1024, "sequence": 256}


@one_name
def stream_cka(
    models: Sequence[str | Path | nn.Module] | Mapping[str, str | Path | nn.Module],
    text: str | Path | Sequence[Document] | PackedText,
    *,
    level: Level = "token",
    batch: Batching | None = None,
    batch_size: int | None = None,
    pack: bool = True,
    split: Split | None = None,
    length: int | None = None,
    padding: Padding = "mask",
    pooling: str | None = None,
    bos: bool | None = None,
    drop_first: int = 0,
    site: str = "residual",
    layers: Sequence[Layer] | None = None,
    average: Average = "hsic",
    precision: float | None = None,
    max_batches: int = 1000,
    tokenizer: Tokenizer | None = None,
    device: str | None = None,
    dtype: str = "float32",
    gram_dtype: str = "float64",
    seed: int = 0,
    checkpoint: str | Path | None = None,
) -> CKAMatrix:
    """CKA between all layers of all `models`, in one pass over `text` that all of them read together.

    Parameters
    ----------
    models
        Hub ids, folders, bundled models, or loaded models; a mapping gives them names of their own.
    text
        The path of a text file or of a folder of them, documents as strings, pairs of texts, or `PackedText`.
        Of a longer text the first 20 million tokens are read.
    level
        A row is a "token" (all models need the same tokenizer), a "word" (each model reads its own tokens),
        or a whole "sequence" (pooled).
    batch
        "sequence": a batch per passage, CKA within contexts (Brown et al. 2023). "tokens": rows of several
        passages mixed in seeded order, the same for all models. "chunks": rows of several passages as they
        follow each other (Brown et al. 2023 on BERT). Rows that are sequences are always mixed.
    batch_size
        Rows of a batch of several passages.
    pack
        Join documents and cut them into passages of equal length. Without, a passage is a document, padded.
    split
        What a document of a file or folder is: "files", "paragraphs" or "lines". If not given, the files of a
        folder and the paragraphs of a file.
    length
        Of a passage in tokens (in words, for level="word"); as much as all models read, 1,024 at most.
    padding
        "keep" makes rows of the padding of unpacked documents too, as Brown et al. did with BERT.
    pooling
        Of the tokens of a word (the last) or a sequence (their mean).
    bos, drop_first
        Put a beginning-of-sequence token before every passage; leave out its first tokens, whose norm may be
        huge.
    site, layers
        Where to read (see `ta.extract`), and which layers; all.
    average
        "hsic": the ratio of summed HSICs. "ratio": the mean of each batch's CKA, as in Brown et al.
    precision
        Stop when the largest standard error, by jackknife over documents, is at most this.
    max_batches
        Stop after so many in any case.
    seed
        Of the order in which passages are read, one for all models, and of mixed batches.
    tokenizer
        If not the models' own: one for all, or name → tokenizer.
    device
        Where to run: "cpu", "cuda", …
    dtype, gram_dtype
        Of the models' weights, and of the Gram matrices; sums over batches are float64.
    checkpoint
        A file for the state so far: the same call again goes on from there. It is gone when all is done.

    Returns
    -------
    CKAMatrix

    Examples
    --------
    >>> import thinkalike as ta
    >>> from thinkalike.systems import bundled
    >>> models = ["nano-gelu-3l", "nano-solu-3l"]
    >>> found = ta.stream_cka(models, bundled.sample_text(), length=32, max_batches=3)
    >>> found.block("nano-gelu-3l", "nano-solu-3l").shape
    (4, 4)
    """
    how = HowToRead(_known("level", level, LEVELS), length, padding, pooling, bos, drop_first, split)
    _known("padding", padding, PADDINGS)
    batching = _batching(batch, batch_size, level, seed)
    systems = open_systems(models, LoadOptions(device=device, dtype=dtype), tokenizer=tokenizer)
    passages = _passages(text, systems, how, pack, seed)
    labels = [_chosen_layers(system, site, layers) for system in systems]
    rows: list[Row] = [(s.name, label) for s, own in zip(systems, labels, strict=True) for label in own]
    stream = StreamingCKA([f"{system}:{layer}" for system, layer in rows], average=average, dtype=gram_dtype)
    unit = _unit(batching, passages)
    settings = {
        "over": "text",
        **asdict(how),
        "packed": pack,
        "batch": _name(batching),
        "batch_size": getattr(batching, "batch_size", None),
        "site": site,
        "average": average,
        "precision": precision,
        "max_batches": max_batches,
        "dtype": dtype,
        "gram_dtype": gram_dtype,
        "seed": seed,
        "models": {system.name: system.about for system in systems},
        "text": passages.digest(),
    }
    history: Trace = []
    start, done = 0, lambda position: None
    if checkpoint is not None:
        key = _key(settings, systems, rows)
        saved = Checkpoint(checkpoint, key, seconds_between=SECONDS_BETWEEN)
        start = _resume(saved, stream, history, batching)
        done = partial(_save, saved=saved, stream=stream, trace=history, batching=batching)
    batches = model_batches(
        [system.stack for system in systems],
        labels,
        passages,
        batching,
        site=site,
        by_document=unit == "documents",
        seed=seed,
        start=start,
        done=done,
    )
    trace, stopped = run_stream(
        batches, rows, stream, precision=precision, max_batches=max_batches, trace=history
    )
    if checkpoint is not None:
        saved.finish()
    notes = _notes(unit, batching, passages)
    return make_matrix(stream, rows, trace, stopped, unit=unit, settings=settings, notes=notes)


def count_batches(
    models: Sequence[str | Path | nn.Module] | Mapping[str, str | Path | nn.Module],
    text: str | Path | Sequence[Document] | PackedText,
    **options: Option,
) -> tuple[int, int]:
    """How many batches the text has under the options of `stream_cka`, and how many of them come together.

    Of mixed rows there may be fewer: what is left of a pool is spread over its batches.
    """
    given = {**{name: p.default for name, p in signature(stream_cka).parameters.items()}, **options}
    names = ("level", "length", "padding", "pooling", "bos", "drop_first", "split")
    how = HowToRead(*(given[name] for name in names))
    batching = _batching(given["batch"], given["batch_size"], how.level, given["seed"])
    load = LoadOptions(device=given["device"], dtype=given["dtype"])
    systems = open_systems(models, load, tokenizer=given["tokenizer"])
    passages = _passages(text, systems, how, given["pack"], given["seed"])
    n = len(passages.documents)
    if isinstance(batching, PassageBatches):
        return n, 1
    return max(1, int(passages.n_rows(np.arange(n)).sum()) // batching.batch_size), MIXED


def _key(settings: Facts, systems: Sequence[System], rows: Sequence[Row]) -> str:
    """A digest of what the sums so far depend on; when to stop is not part of it."""
    from thinkalike.provenance import digest_of

    lasting = {name: value for name, value in settings.items() if name not in ("precision", "max_batches")}
    return digest_of({**lasting, "identities": [s.identity for s in systems], "rows": list(rows)})


def _passages(text: Any, systems: Sequence[System], how: HowToRead, pack: bool, seed: int) -> Passages:
    """The text as passages: packed, or document by document."""
    if isinstance(text, PackedText):
        return packed_tokens(systems, text, how)
    if how.level == "word" or (how.level == "sequence" and not pack):
        return own_tokens(systems, [_single(one) for one in documents_of(text, how.split)], how, seed=seed)
    pairs = not isinstance(text, (str, Path)) and len(text) > 0 and isinstance(text[0], tuple)
    if pairs or not pack:
        return shared_documents(systems, documents_of(text, how.split), how)
    if how.padding == "keep":
        raise InvalidInput("Packed text has no padding to keep: leave out padding='keep', or say pack=False.")
    return packed_tokens(systems, text, how)


def _chosen_layers(system: System, site: str, layers: Sequence[Layer] | None) -> list[Layer]:
    where = find_site(site)
    if where.mark is not None or where.reads == "state":
        raise InvalidInput(
            f"site={site!r} cannot be streamed, for its layers are parts of blocks or states between tokens: "
            f"extract it, ta.extract(model, stimuli, site={site!r}), and compare with ta.similarity(…, "
            f"measure='cka'), or in the terminal with compare … --site {site} --measure cka."
        )
    every = layer_labels(system.stack, site)
    for layer in layers or ():
        if block_of(layer) != str(layer):
            raise InvalidInput(
                f"Layer {layer!r} cannot be streamed: it is a part of a block, or a latent. Extract it, and "
                "compare with ta.similarity(…, measure='cka')."
            )
        if layer not in every:
            raise UnknownName.among("layer", layer, every, where=system.name)
    return every if layers is None else list(layers)


def _single(document: Document) -> str:
    return document if isinstance(document, str) else " ".join(document)


def _batching(
    batch: Batching | None, batch_size: int | None, level: Level, seed: int
) -> PassageBatches | MixedBatches:
    if batch is not None:
        _known("batch", batch, BATCHINGS)
    if level == "sequence" and batch == "sequence":
        raise InvalidInput("A row is a sequence here, so a batch cannot be one: leave out batch='sequence'.")
    if level == "sequence" and batch == "chunks":
        raise InvalidInput("Rows that are sequences have no neighbours: leave out batch='chunks'.")
    if batch in ("tokens", "chunks") or level == "sequence":
        return MixedBatches(batch_size or ROWS_OF_A_BATCH[level], mixed=batch != "chunks", seed=seed)
    if batch_size is not None:
        raise InvalidInput(
            "batch_size is for batches of several passages; a single sequence has its length. Use length."
        )
    return PassageBatches()


def _name(batching: PassageBatches | MixedBatches) -> Batching:
    if isinstance(batching, PassageBatches):
        return "sequence"
    return "tokens" if batching.mixed else "chunks"


def _unit(batching: PassageBatches | MixedBatches, passages: Passages) -> str:
    """What the jackknife leaves out."""
    if isinstance(batching, MixedBatches):
        return "pools of passages"
    return "documents" if len(set(passages.documents)) >= FEWEST_UNITS else "passages"


def _notes(unit: str, batching: PassageBatches | MixedBatches, passages: Passages) -> list[str]:
    notes = []
    if unit == "passages":
        notes.append(
            f"The text has {len(set(passages.documents))} documents, too few for a jackknife over them: the "
            "standard errors are over passages and may be too small, for neighbouring passages are alike."
        )
    if batching.skipped:
        notes.append(f"{batching.skipped} passages had fewer than 4 rows and were left out.")
    return notes


def _known(what: str, name: object, known: Sequence[str]) -> Any:
    if name not in known:
        raise UnknownName.among(what, name, known)
    return name


SECONDS_BETWEEN = 2.0


def _resume(
    saved: Checkpoint, stream: StreamingCKA, trace: Trace, batching: PassageBatches | MixedBatches
) -> int:
    """Fill in what was done before; the number of passages that need not be read again."""
    found = saved.load()
    if found is None:
        return 0
    arrays, about = found
    stream.restore(arrays)
    trace.extend(about["trace"])
    batching.restore(about["batching"])
    return int(about["position"])


def _save(
    position: int,
    saved: Checkpoint,
    stream: StreamingCKA,
    trace: Trace,
    batching: PassageBatches | MixedBatches,
) -> None:
    """Keep the state after `position` passages, unless that was done a moment ago."""
    if saved.is_due:
        saved.save(stream.state(), {"position": position, "trace": trace, "batching": batching.state()})
