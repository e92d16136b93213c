"""Model + stimuli → `Activations`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING

from thinkalike.activations.autoencoders import SparseAutoencoder
from thinkalike.activations.extraction_run import ExtractionSettings, run_extraction
from thinkalike.activations.model_inputs import ModelInputs, as_model_inputs
from thinkalike.activations.sparse_latents import LatentChoice
from thinkalike.activations.store import Activations
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.options import whole_number
from thinkalike.systems import signals, words
from thinkalike.systems.architectures import Part
from thinkalike.systems.beginning import Bos
from thinkalike.systems.mamba.selective_scan import SWITCH
from thinkalike.systems.passes import check_batch_size
from thinkalike.systems.sites import find_site
from thinkalike.systems.system import LoadOptions, open_system
from thinkalike.types import Processor

if TYPE_CHECKING:
    from torch import nn

    from thinkalike.stimuli.table import Stimuli


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
    autoencoder: SparseAutoencoder | str | Path | None = None,
    layer: int | None = None,
    latents: Sequence[int] | None = None,
    best: str | None = None,
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
        Where in a block to read: a name in `thinkalike.systems.sites.SITES`, each of which the page "Extract
        activations" explains ("Which layer"), as "residual", "attention" or "heads"; or the path of a module
        within a block, as "self_attn.q_proj" or ".mlp", with ":input" behind it for what enters it. All but
        "residual" have layers 1 … L, those of L blocks that have it.
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
    autoencoder, layer
        A sparse autoencoder, loaded or by the path of its safetensors file or folder, and the layer that it
        was trained on: the layers of the result are some of its latents, 3.l12, 3.l77, … Only these go to
        `out`; the residual stream stays in the cache.
    latents, best
        Which of them: by number; or the ten that tell the levels of this feature apart (`Latents.best`), with
        what they are worth on other sentences in `metadata["worth"]`.
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
    chosen = LatentChoice.asked(autoencoder, layer, latents, best)
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
    if chosen is None:
        return run_extraction(opened, shown, settings, out=out, cache=cache is not False)
    states = run_extraction(opened, shown, settings, out=None, cache=cache is not False)
    return chosen.of(states, shown.stimuli, out)


OPTIONS = tuple(
    name for name in signature(extract).parameters if name not in ("model", "stimuli", "system", "out")
)
"""The names of its options, which `compare` takes as `extraction`"""


def _check(settings: ExtractionSettings, shown: ModelInputs) -> None:
    if settings.system_turn is not None and not settings.chat:
        raise InvalidInput("A system turn was given without a chat: give chat=True (--chat) too.")
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
