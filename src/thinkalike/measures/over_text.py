"""`stream_cka`: CKA between all layers of several models over running text, documents, or pairs of texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.measures.batches import MIXED, MixedBatches, PassageBatches
from thinkalike.measures.checkpoint import Checkpoint
from thinkalike.measures.cka_matrix import CKAMatrix, Row
from thinkalike.measures.passages import Padding, Passages
from thinkalike.measures.reading import (
    LEVELS,
    Document,
    HowToRead,
    Level,
    ReadingModel,
    documents_of,
    own_tokens,
    packed_tokens,
    shared_documents,
)
from thinkalike.measures.stream import Trace, make_matrix, model_batches, run_stream
from thinkalike.measures.streaming import FEWEST_UNITS, Average, StreamingCKA
from thinkalike.stimuli.text import PackedText, Split

if TYPE_CHECKING:
    from torch import nn

    from thinkalike.activations.architectures import Stack
    from thinkalike.activations.hooks import Layer

Batching = Literal["sequence", "tokens"]
BATCHINGS = ("sequence", "tokens")
ROWS_OF_A_BATCH = {"token": 1024, "word": 1024, "sequence": 256}


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
    tokenizer: Any = None,
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
        The path of a text file, documents as strings, pairs of texts, or `PackedText`.
    level
        A row is a "token" (all models need the same tokenizer), a "word" (each model reads its own tokens),
        or a whole "sequence" (pooled).
    batch
        "sequence": a batch per passage, CKA within contexts (Brown et al. 2023). "tokens": rows of several
        passages mixed in seeded order, the same for all models. Rows that are sequences are always mixed.
    batch_size
        Rows of a mixed batch.
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
    tokenizer
        If not the models' own: one for all, or name → tokenizer.
    dtype, gram_dtype
        Of the models' weights, and of the Gram matrices; sums over batches are float64.
    checkpoint
        A file for the state so far: the same call again goes on from there. It is gone when all is done.
    """
    how = HowToRead(_known("level", level, LEVELS), length, padding, pooling, bos, drop_first, split)
    batching = _batching(batch, batch_size, level, seed)
    systems = [_opened(name, model, device, dtype, tokenizer) for name, model in _named(models)]
    _check_names([system.about.name for system in systems])
    abouts = [system.about for system in systems]
    passages = _passages(text, abouts, how, pack, enough=partial(_enough, batching, max_batches))
    labels = [_labels(system, site, layers) for system in systems]
    rows: list[Row] = [(s.about.name, label) for s, own in zip(systems, labels, strict=True) for label in own]
    stream = StreamingCKA([f"{system}:{layer}" for system, layer in rows], average=average, dtype=gram_dtype)
    unit = _unit(batching, passages)
    settings = {
        "over": "text",
        **asdict(how),
        "packed": pack,
        "batch": "sequence" if isinstance(batching, PassageBatches) else "tokens",
        "batch_size": getattr(batching, "batch_size", None),
        "site": site,
        "average": average,
        "precision": precision,
        "max_batches": max_batches,
        "dtype": dtype,
        "gram_dtype": gram_dtype,
        "seed": seed,
        "models": {system.about.name: system.origin for system in systems},
    }
    history: Trace = []
    start, done = 0, lambda position: None
    if checkpoint is not None:
        saved = Checkpoint(checkpoint, _key(settings, systems, passages, rows))
        start = saved.resume(stream, history, batching)
        done = partial(saved.save, stream=stream, trace=history, batching=batching)
    batches = model_batches(
        [system.stack for system in systems],
        labels,
        passages,
        batching,
        site=site,
        by_document=unit == "documents",
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


def _key(
    settings: Mapping[str, Any], systems: Sequence[_System], passages: Passages, rows: Sequence[Row]
) -> str:
    """A digest of what the sums so far depend on; the precision to stop at is not part of it."""
    from thinkalike.activations.cache import digest_of

    lasting = {name: value for name, value in settings.items() if name != "precision"}
    identities = [system.identity() for system in systems]
    return digest_of({**lasting, "identities": identities, "text": passages.digest(), "rows": list(rows)})


@dataclass(frozen=True, eq=False)
class _System:
    """A loaded model, what reading text needs to know of it, and where it came from."""

    about: ReadingModel
    stack: Stack
    origin: Mapping[str, Any]
    identity: Callable[[], str]


def _named(models: Any) -> list[tuple[str | None, Any]]:
    if isinstance(models, (str, Path)):
        raise InvalidInput(f"models is {str(models)!r}: give a list of models, such as [{str(models)!r}].")
    if not len(models):
        raise InvalidInput("There are no models to compare: give at least one.")
    return list(models.items()) if isinstance(models, Mapping) else [(None, model) for model in models]


def _opened(name: str | None, model: Any, device: str | None, dtype: str, tokenizer: Any) -> _System:
    from thinkalike.activations.loading import pick_device
    from thinkalike.activations.subject import by_name, context_length, in_memory

    if isinstance(model, (str, Path)):
        subject = by_name(
            model,
            revision=None,
            part=None,
            untrained=False,
            seed=0,
            blocks=None,
            dtype=dtype,
            device=pick_device(device),
            device_map=None,
            gguf_file=None,
            trust_remote_code=False,
        )
    else:
        subject = in_memory(model, part=None, untrained=False, seed=0, blocks=None)
    stack = subject.load()
    most = context_length(stack)
    if stack.part == "decoder" and most is not None:
        most -= 1  # the start token
    name = name or subject.system
    own = tokenizer.get(name) if isinstance(tokenizer, Mapping) else tokenizer
    about = ReadingModel(name, own or subject.processor("text"), most)
    return _System(about, stack, subject.about, subject.identity)


def _passages(
    text: Any, models: Sequence[ReadingModel], how: HowToRead, pack: bool, enough: Callable[[int], int]
) -> Passages:
    """The text as passages: packed, or document by document."""
    if isinstance(text, PackedText):
        return packed_tokens(models, text, how)
    if how.level == "word" or (how.level == "sequence" and not pack):
        documents = [_single(document) for document in documents_of(text, how.split)]
        return own_tokens(models, documents, how, enough=enough)
    pairs = not isinstance(text, (str, Path)) and len(text) > 0 and isinstance(text[0], tuple)
    if pairs or not pack:
        return shared_documents(models, documents_of(text, how.split), how)
    return packed_tokens(models, text, how, enough=enough)


def _single(document: Document) -> str:
    return document if isinstance(document, str) else " ".join(document)


def _labels(system: _System, site: str, layers: Sequence[Layer] | None) -> list[Layer]:
    from thinkalike.activations.run import layer_labels

    every = layer_labels(system.stack, site, False)
    if layers is None:
        return every
    for layer in layers:
        if layer not in every:
            raise UnknownName.among(f"layer in {system.about.name}", layer, every)
    return list(layers)


def _batching(
    batch: Batching | None, batch_size: int | None, level: Level, seed: int
) -> PassageBatches | MixedBatches:
    if batch is not None:
        _known("batch", batch, BATCHINGS)
    if level == "sequence" and batch == "sequence":
        raise InvalidInput("A row is a sequence here, so a batch cannot be one: leave out batch='sequence'.")
    if batch == "tokens" or level == "sequence":
        return MixedBatches(batch_size or ROWS_OF_A_BATCH[level], seed=seed)
    if batch_size is not None:
        raise InvalidInput(
            "batch_size is for mixed batches; a batch of one sequence has its length. Use length."
        )
    return PassageBatches()


def _enough(batching: PassageBatches | MixedBatches, max_batches: int, rows_of_a_passage: int) -> int:
    """So many passages suffice for these batches: no more of a large file need be read."""
    if isinstance(batching, PassageBatches):
        return max_batches
    return -(-(max_batches + MIXED) * batching.batch_size // rows_of_a_passage)


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


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"{name} comes twice: give the models names, {{'first': …, 'second': …}}.")


def _known(what: str, name: Any, known: Sequence[str]) -> Any:
    if name not in known:
        raise UnknownName.among(what, name, known)
    return name
