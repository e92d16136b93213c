"""Model + stimuli → `Activations`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING

from thinkalike.activations.cache import cache_path
from thinkalike.activations.chunks import ChunkTarget, run
from thinkalike.activations.model_inputs import ModelInputs, as_model_inputs
from thinkalike.activations.parts import Parts, into_parts
from thinkalike.activations.reader import FORMAT, damaged_chunks, done_chunks, is_complete, open_store
from thinkalike.activations.store import Activations
from thinkalike.activations.writer import MemoryWriter, Writer, check_free, owning_store
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.options import whole_number
from thinkalike.provenance import RUNNING_MODELS, digest_of, versions
from thinkalike.systems import signals, words
from thinkalike.systems.architectures import Part
from thinkalike.systems.beginning import Bos
from thinkalike.systems.calling import layer_labels
from thinkalike.systems.chats import chat_frame
from thinkalike.systems.chunk_plan import TOKENS_AT_ONCE, check_batch_size, make_plan
from thinkalike.systems.continuations import continue_prompts, written_texts
from thinkalike.systems.fingerprints import fingerprint_processor
from thinkalike.systems.mamba.selective_scan import SWITCH
from thinkalike.systems.passes import SIGNALS_AT_ONCE, RowSource, SignalSource, TextSource
from thinkalike.systems.sites import find_site
from thinkalike.systems.stack import Stack
from thinkalike.systems.system import LoadOptions, System, open_system
from thinkalike.systems.texts import Reader, Sequences
from thinkalike.systems.windows import Windows
from thinkalike.types import Json, Processor

if TYPE_CHECKING:
    from torch import nn

    from thinkalike.stimuli.table import Stimuli

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


def extract(
    model: str | Path | nn.Module,
    stimuli: Stimuli | Sequence[object],
    *,
    inputs: Sequence[object] | None = None,
    pooling: str | None = None,
    site: str = "residual",
    final_norm: bool = False,
    part: Part | None = None,
    blocks: str | None = None,
    revision: str | None = None,
    untrained: bool = False,
    seed: int = 0,
    bos: Bos = "auto",
    drop_first: int = 0,
    chat: bool = False,
    system_turn: str | None = None,
    window: int | None = None,
    generate: int = 0,
    dtype: str | None = None,
    device: str | None = None,
    device_map: object = None,
    batch_size: int | str = "auto",
    processor: Processor = None,
    sampling_rate: int | None = None,
    gguf_file: str | None = None,
    trust_remote_code: bool = False,
    system: str | None = None,
    out: str | Path | None = None,
    cache: bool | None = None,
) -> Activations:
    """Show `stimuli` to `model` and keep what every layer answers to every item.

    Layer 0 is what enters the first block (the embeddings); layer k the residual stream after block k, before
    any final norm. The result is cached on disk; a call that was interrupted goes on where it stopped.

    Parameters
    ----------
    model
        A hub id, the path of a folder, the name of a bundled model, or a model that is already loaded.
        A name may say more: `MODEL[@REVISION][:encoder|:decoder][:untrained]`.
    stimuli
        `Stimuli`; or texts, which are then whole items; or images or sounds, as arrays or paths of images.
    inputs
        The images or sounds of `stimuli` whose items are not words, in their order.
    pooling
        How the tokens of an item become one vector: "last" (the default for text, as in Salle et al. 2024),
        "first", "mean" (the default for images and sounds), "cls" (whole texts and images only), or "all",
        which gives each token a row of its own, named ITEM/0, ITEM/1, …
    site
        "residual"; "block", what the block's last addition adds to the stream (Brown et al. 2023, C.2);
        "attention" or "mlp", what these add; "heads", the output of each head before they are mixed, layers
        1.h0, 1.h1, …; "neurons" of the MLP; "router", the logits of a mixture of experts, and "experts", the
        weight of each, 0 where it was not chosen, layers 1.e0, 1.e1, …; "state", what a state-space model
        carries along; or the path of a module within a block, as "self_attn.q_proj" or ".mlp", with ":input"
        behind it for what enters it. All but "residual" have layers 1 … L, those of L blocks that have it.
    final_norm
        Also keep the last layer after the model's final norm, as layer "final_norm".
    part
        "encoder" or "decoder" of a model that has both, which are two systems. The decoder reads a start
        token and then the same text as the encoder; the vector of a token is where the decoder reads it.
    blocks
        The dotted path of the list of blocks, for an architecture that the table does not have.
    revision
        Branch, tag or commit on the hub; for a folder, a subfolder with a checkpoint.
    untrained, seed
        Take the same architecture with random weights drawn from `seed`.
    bos
        "auto": texts begin as they did in training, where that can be known (see
        `thinkalike.systems.beginning.begin_texts`); `metadata["beginning"]` says what was done and why. True
        puts a beginning-of-sequence token before each text, False takes it away, None leaves that to the
        tokenizer.
    drop_first
        Leave out the first tokens of each text, whose norm can be huge. Items with no other token get no row.
    chat, system_turn
        Show each text as the user's turn of a chat, by the template of the model's tokenizer, with a turn of
        the system before it if one is given. Items are words inside the turn, and only they.
    window
        Read texts that are longer than so many tokens in windows of that length, each beginning half a window
        after the last; an item is read in the earliest that holds it. Longer texts are refused if not given.
    generate
        Let the model continue each text by so many tokens, always the likeliest, and take these as the item,
        which is a whole text; `metadata["written"]` has what it wrote. A text may end before.
    dtype
        "float32" (the default), "bfloat16", "float16", or "auto" for what the weights are stored in.
    device, device_map
        Where to run: "cpu", "cuda", …; or "auto" to spread a big model over what there is (needs accelerate).
    batch_size
        How many texts, images or sounds at most go through the model together; "auto" goes by tokens.
    processor
        The tokenizer, image processor or feature extractor, if not the model's own.
    sampling_rate
        Of the sounds, in Hz; that which the model was trained on if not given.
    gguf_file
        The file of a folder with quantised weights.
    trust_remote_code
        Let the hub's own code of this model run. Read it first.
    system
        The name that the result goes by, if not the model's.
    out
        Where to keep the result, a path or any fsspec address; the cache if not given.
    cache
        False keeps the result in memory only, which is the default for a model that is already loaded: what
        was done to it, such as hooks, cannot be seen in a key.

    Returns
    -------
    Activations
        `acts[layer]` is (n_items, n_units), float32, rows in the order of the stimuli.

    Examples
    --------
    >>> import thinkalike as ta
    >>> stimuli = ta.Stimuli.from_grammar(5, seed=0)
    >>> acts = ta.extract("nano-gpt2", stimuli)
    >>> acts.layers, acts[0].shape == (len(stimuli), 128)
    ((0, 1, 2, 3, 4, 5, 6), True)
    """
    shown = as_model_inputs(stimuli, inputs)
    if not isinstance(model, (str, Path)):
        _refuse_for_loaded(
            revision=revision, dtype=dtype, device=device, device_map=device_map, gguf_file=gguf_file
        )
        cache = bool(cache)
    options = LoadOptions(
        revision=revision,
        part=part,
        untrained=untrained,
        seed=seed,
        blocks=blocks,
        dtype="float32" if dtype is None else dtype,
        device=device,
        device_map=device_map,
        gguf_file=gguf_file,
        trust_remote_code=trust_remote_code,
    )
    whole_number("generate", generate, 0)
    opened = open_system(
        model, options, name=system, head="causal" if generate else None, tokenizer=processor
    )
    settings = ExtractionSettings(
        pooling=pooling or ("last" if shown.inputs is None else "mean"),
        site=site,
        final_norm=final_norm,
        blocks=blocks,
        bos=bos,
        drop_first=drop_first,
        dtype=opened.dtype,
        device=opened.device if device_map is None else str(device_map),
        batch_size=batch_size,
        sampling_rate=sampling_rate,
        fused_scan=os.environ.get(SWITCH, "1") != "0",
        chat=chat,
        system_turn=system_turn,
        window=window,
        generate=generate,
    )
    _check(settings, shown)
    return _extract(opened, shown, settings, out=out, cache=cache is not False)


OPTIONS = tuple(
    name for name in signature(extract).parameters if name not in ("model", "stimuli", "system", "out")
)
"""The names of its options, which `compare` takes as `extraction`"""


def _extract(
    system: System,
    shown: ModelInputs,
    settings: ExtractionSettings,
    *,
    out: str | Path | None,
    cache: bool,
) -> Activations:
    attributes = _attributes(system, settings)
    if out is None and not cache:
        return _as_shown(_compute(system, shown, settings, attributes), shown, system.name)
    attributes["shown"] = shown.fingerprint
    attributes["key"] = _key(system, attributes)
    place = out or cache_path(system.about["model"], attributes["key"])
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
    attributes: Json,
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
    return Parts(site.mark, None if site.parts is None else site.parts(stack))


def _attributes(system: System, settings: ExtractionSettings) -> Json:
    metadata = {**system.about, **asdict(settings), "versions": versions(RUNNING_MODELS)}
    return {
        "key": None,
        "shown": None,
        "system": system.name,
        "metadata": metadata,
    }


def _key(system: System, attributes: Json) -> str:
    """A digest of all that changes the numbers, or how they are cut into chunks."""
    names = ("model", "revision", "commit", "part_asked")  # the identity says it, whatever it is called
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


def _source(system: System, shown: ModelInputs, settings: ExtractionSettings, metadata: Json) -> RowSource:
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
        if settings.generate:
            prompts, sequences = sequences, _continued(system, shown, settings, sequences)
            metadata["written"] = written_texts(processor, prompts, sequences)
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
        max_length=system.max_length,
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


def _check(settings: ExtractionSettings, shown: ModelInputs) -> None:
    if settings.system_turn is not None and not settings.chat:
        raise InvalidInput("A system turn was given without a chat: give chat=True too.")
    if shown.inputs is not None and (settings.chat or settings.window or settings.generate):
        raise InvalidInput("Images and sounds are not text: leave out chat, window and generate.")
    if settings.generate and settings.window:
        raise InvalidInput("What a model writes follows the whole prompt: leave out window, or generate.")
    if settings.generate and settings.pooling == "cls":
        raise InvalidInput("What a model writes has no [CLS] token: choose last, first, mean or all.")
    find_site(settings.site)
    known = words.POOLINGS if shown.inputs is None else signals.POOLINGS
    if settings.pooling not in known:
        raise UnknownName.among("pooling", settings.pooling, known)
    if settings.batch_size != "auto":
        check_batch_size(settings.batch_size)


def _refuse_for_loaded(**options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise InvalidInput(
                f"{name}={value!r} has no meaning for a model that is already loaded: leave it out."
            )
