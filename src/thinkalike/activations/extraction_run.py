"""How an extraction runs: its key, what is lacking where it is kept, the rows to read, chunk by chunk."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from thinkalike.activations.model_inputs import ModelInputs
from thinkalike.activations.parts import Parts, into_parts
from thinkalike.activations.reader import FORMAT, damaged_chunks, done_chunks, is_complete, open_store
from thinkalike.activations.store import Activations, Array, Layer
from thinkalike.activations.writer import MemoryWriter, Writer, check_free, owning_store
from thinkalike.errors import InvalidInput, ModelError
from thinkalike.machine import cache_directory
from thinkalike.progress import progress
from thinkalike.provenance import RUNNING_MODELS, digest_of, versions
from thinkalike.systems.beginning import Bos
from thinkalike.systems.calling import evaluating, layer_labels, read_layers
from thinkalike.systems.carried_states import read_carried_states
from thinkalike.systems.chats import chat_frame
from thinkalike.systems.continuations import continue_prompts, written_texts
from thinkalike.systems.fingerprints import fingerprint_processor
from thinkalike.systems.passes import (
    SIGNALS_AT_ONCE,
    TOKENS_AT_ONCE,
    RowSource,
    SignalSource,
    TextSource,
    make_plan,
    n_chunks,
)
from thinkalike.systems.sites import find_site, modules_at
from thinkalike.systems.stack import Stack
from thinkalike.systems.system import System
from thinkalike.systems.texts import Reader, Sequences
from thinkalike.systems.windows import Windows
from thinkalike.types import Json


class ChunkTarget(Protocol):
    """What takes the rows of a chunk."""

    def is_done(self, chunk: int) -> bool: ...

    def write(self, chunk: int, rows: Mapping[Layer, Array]) -> None: ...


def run(
    stack: Stack,
    source: RowSource,
    open_target: Callable[[Sequence[int]], ChunkTarget],
    *,
    labels: Sequence[Layer],
    site: str,
    system: str,
    done: frozenset[int] = frozenset(),
) -> None:
    """Compute every chunk that is not `done` and hand it to the target.

    The target is opened with the widths of the layers, which the first answer tells.
    """
    target: ChunkTarget | None = None
    with (
        evaluating(stack.model),
        progress(f"extracting {system}", len(source.order)) as step,
    ):
        for chunk in range(n_chunks(source)):
            if chunk not in done and not (target is not None and target.is_done(chunk)):
                rows = answers(stack, source, chunk, labels=labels, site=site)
                if target is None:
                    target = open_target([rows[label].shape[1] for label in labels])
                target.write(chunk, rows)
            step.advance(_n_rows(source, chunk))


def answers(
    stack: Stack, source: RowSource, chunk: int, *, labels: Sequence[Layer], site: str
) -> dict[Layer, Array]:
    """What every layer answers to the rows of a chunk, (n_rows, n_units) each."""
    import torch

    found: dict[Layer, Array] = {}
    n_rows = _n_rows(source, chunk)
    groups = source.groups(chunk)
    while groups:
        group = groups.pop(0)
        one = source.prepare(chunk, group)
        try:
            if find_site(site).reads == "state" and one.reading is not None:
                read = read_carried_states(stack, one.reading, labels=labels)
            else:
                read = read_layers(stack, one.inputs, one.keep, labels=labels, site=site)
        except torch.OutOfMemoryError as error:
            if len(group) == 1:
                raise ModelError(
                    "The memory does not hold the model and one input: use dtype='bfloat16', "
                    "device_map='auto' or device='cpu'."
                ) from error
            groups = [*np.array_split(group, 2), *groups]
            continue
        for layer, states in read.items():
            rows = states.cpu().numpy()
            if len(rows) == n_rows:  # the usual case, one pass: nothing to put together
                found[layer] = rows
            else:
                found.setdefault(layer, np.empty((n_rows, rows.shape[1]), np.float32))[one.places] = rows
    return found


def _n_rows(source: RowSource, chunk: int) -> int:
    return min(source.chunk_rows, len(source.order) - chunk * source.chunk_rows)


KINDS = {"input_ids": "text", "pixel_values": "image"}


@dataclass(frozen=True)
class ExtractionSettings:
    """Everything but the model and the stimuli that changes the numbers."""

    pooling: str
    site: str
    final_norm: bool
    blocks: str | None
    bos: Bos
    drop_first: int
    dtype: str
    device: str
    batch_size: int | str
    sampling_rate: int | None
    fused_scan: bool
    chat: bool = False
    system_turn: str | None = None
    window: int | None = None
    generate: int = 0


def run_extraction(
    system: System,
    shown: ModelInputs,
    settings: ExtractionSettings,
    *,
    out: str | Path | None,
    cache: bool,
) -> Activations:
    """What the system answers: from `out` or the cache if it is there whole, else what lacks is computed."""
    attributes = _attributes(system, settings)
    if out is None and not cache:
        return _as_shown(_compute(system, shown, settings, attributes), shown, system.name)
    attributes["shown"] = shown.fingerprint
    key = attributes["key"] = _key(system, attributes)
    place = out or cache_path(str(system.about["model"]), key)
    check_free(place, attributes)
    if not is_complete(place) or damaged_chunks(place):
        with owning_store(place, attributes):
            if not is_complete(place):  # else it was finished while we waited
                _compute(system, shown, settings, attributes, place)
    return _as_shown(open_store(place), shown, system.name)


def _compute(
    system: System,
    shown: ModelInputs,
    settings: ExtractionSettings,
    attributes: dict[str, Any],
    place: str | Path | None = None,
) -> Activations:
    """Run the model over what is lacking at `place`, or over all if nothing is to be kept."""
    stack = system.stack
    source = _source(system, shown, settings, attributes["metadata"])
    if isinstance(source, TextSource):
        attributes["metadata"]["beginning"] = asdict(source.sequences.beginning)
    parts = _parts(stack, settings)
    attributes["parts"] = None if parts is None else asdict(parts)
    attributes["layers"] = layer_labels(stack, settings.site, settings.final_norm)
    attributes["stimuli_digest"] = _digest(shown, source.rows, settings.pooling)
    stored = [source.rows[row] for row in source.order]
    memory: list[MemoryWriter] = []

    def open_target(n_units: Sequence[int]) -> ChunkTarget:
        if place is not None:
            return Writer(
                place,
                attributes=attributes,
                items=stored,
                positions=source.order,
                n_units=n_units,
                chunk_rows=source.chunk_rows,
            )
        memory.append(
            MemoryWriter(attributes=attributes, items=stored, positions=source.order, n_units=n_units)
        )
        return memory[0]

    run(
        stack,
        source,
        open_target,
        labels=attributes["layers"],
        site=settings.site,
        system=system.name,
        done=frozenset[int]() if place is None else done_chunks(place)[0],
    )
    if place is not None:
        return open_store(place)
    found = Activations.from_arrays(
        memory[0].matrices, system=system.name, items=source.rows, metadata=attributes["metadata"]
    )
    return found if parts is None else into_parts(found, parts)


def _parts(stack: Stack, settings: ExtractionSettings) -> Parts | None:
    """How layers of the site fall into layers of their own; None if they do not."""
    site = find_site(settings.site)
    if site.reads == "state" and getattr(stack.model, "main_input_name", "input_ids") != "input_ids":
        raise InvalidInput("site='state' is read after each token of a text: images and sounds have none.")
    if site.mark is None:
        return None
    if settings.final_norm:
        raise InvalidInput(
            f"The final norm has no parts as site={settings.site!r} does: leave out final_norm, or take it "
            "with site='residual'."
        )
    modules_at(stack, settings.site)  # refuses a site that the model lacks
    return Parts(site.mark, None if site.parts is None else site.parts(stack))


def _attributes(system: System, settings: ExtractionSettings) -> Json:
    metadata = {**system.about, **asdict(settings), "versions": versions(RUNNING_MODELS)}
    return {
        "key": None,
        "shown": None,
        "system": system.name,
        "metadata": metadata,
    }


def _key(system: System, attributes: Mapping[str, Any]) -> str:
    """A digest of all that changes the numbers, or how they are cut into chunks."""
    names = (
        "model",
        "revision",
        "commit",
        "part_asked",
        "quantised",
    )  # the identity says it, whatever it is called
    return digest_of(
        {
            "identity": system.identity,
            "processor": None
            if system.tokenizer_given is None
            else fingerprint_processor(system.tokenizer_given),
            "shown": attributes["shown"],
            "image library": "torchvision" if find_spec("torchvision") else "pillow",
            "how": {name: value for name, value in attributes["metadata"].items() if name not in names},
            "at once": [TOKENS_AT_ONCE, SIGNALS_AT_ONCE],
            "format": FORMAT,
        }
    )


def _source(
    system: System, shown: ModelInputs, settings: ExtractionSettings, metadata: dict[str, Any]
) -> RowSource:
    """The rows to compute, as the model reads them; what it wrote itself is noted in the metadata."""
    stack = system.stack
    kind = KINDS.get(getattr(stack.model, "main_input_name", "input_ids"), "audio")
    if (kind == "text") != (shown.inputs is None):
        given = "text" if shown.inputs is None else "images or sounds"
        reads = {"text": "text", "image": "images", "audio": "sounds"}[kind]
        raise InvalidInput(f"{system.name} reads {reads}, but the stimuli are {given}.")
    if kind != "text" and stack.part == "decoder":
        raise InvalidInput(f"{system.name} writes text about sounds: only its encoder can be read.")
    processor = system.processor(kind)
    if shown.inputs is None:
        sequences = _reader(system, settings).read(shown.stimuli)
        metadata["unknown"] = _unknown(system, sequences)
        if settings.generate:
            prompts, sequences = sequences, _continued(system, shown, settings, sequences)
            metadata["written"] = written_texts(system.tokenizer, prompts, sequences)
        device = next(stack.model.parameters()).device.type
        plan = make_plan(sequences.row_text, sequences.lengths, batch_size=settings.batch_size, device=device)
        return TextSource(sequences, plan, stack)
    if settings.pooling == "cls" and not any(
        n.endswith("cls_token") for n, _ in stack.model.named_parameters()
    ):
        raise InvalidInput(f"{system.name} has no [CLS] position: choose mean.")
    return SignalSource(
        list(shown.stimuli.items.index),
        shown.inputs,
        kind=kind,
        processor=processor,
        pooling=settings.pooling,
        sampling_rate=settings.sampling_rate,
        batch_size=settings.batch_size,
        stack=stack,
    )


def _unknown(system: System, sequences: Sequences) -> float:
    """The share of the rows whose tokens the model cannot tell from those of other unknown words."""
    token = system.tokenizer.unk_token_id
    share = 0.0 if token is None else len(sequences.having(token)) / len(sequences.rows)
    if share == 1:
        raise InvalidInput(
            f"The tokenizer of {system.name} knows none of these words: to the model all are "
            f"{system.tokenizer.unk_token}. Give a model of their language, or the tokenizer that it was "
            "trained with (processor=…)."
        )
    return share


def _reader(system: System, settings: ExtractionSettings) -> Reader:
    frame = None
    if settings.chat:
        frame = chat_frame(
            system.tokenizer,
            system.name,
            system_turn=settings.system_turn,
            answers=settings.generate > 0,
        )
    return Reader(
        system.tokenizer,
        system.name,
        pooling="last" if settings.generate else settings.pooling,
        bos=settings.bos,
        drop_first=settings.drop_first,
        max_length=None if settings.generate else system.max_length,  # with what is written: `_continued`
        frame=frame,
        windows=None if settings.window is None else Windows(settings.window),
    )


def _continued(
    system: System, shown: ModelInputs, settings: ExtractionSettings, prompts: Sequences
) -> Sequences:
    """The prompts with what the model wrote after them; an item is a whole text."""
    items, texts = shown.stimuli.items, shown.stimuli.sentences
    whole = (items["start"] == 0) & (items["end"] == texts[items["sentence"]].str.len().to_numpy())
    if not whole.all():
        raise InvalidInput(
            f"generate={settings.generate} continues texts, but item {items.index[~whole][0]!r} is a word of "
            "one: give whole texts as items."
        )
    return continue_prompts(
        system.model,
        prompts,
        settings.generate,
        pooling=settings.pooling,
        name=system.name,
        max_length=system.max_length,
    )


def _as_shown(found: Activations, shown: ModelInputs, system: str) -> Activations:
    """Name the stimuli by their present digest: features may have changed, which no model sees."""
    digest = _digest(shown, found.item_names, found.metadata["pooling"])
    return replace(found, system=system, stimuli_digest=digest)


def _digest(shown: ModelInputs, rows: Sequence[str], pooling: str) -> str | None:
    """The digest of the stimuli that the rows answer to, one by one; None if there are no such."""
    if not shown.has_digest or pooling == "all":
        return None
    if len(rows) == len(shown.stimuli):
        return shown.stimuli.digest
    return shown.stimuli.subset(shown.stimuli.items.index.isin(rows)).digest


def cache_path(model: str, key: str) -> str:
    """The store for a key. The model's name is in it for people to read; the key alone decides."""
    readable = re.sub(r"[^\w.@-]+", "-", Path(model).name).strip("-.")[:60] or "model"
    return f"{cache_directory().rstrip('/')}/activations/{readable}-{key[:24]}.zarr"
