"""Where the blocks of a model are: one table of architectures, checked against the model itself.

`layers_of(model)` gives a `Stack`: the blocks in the order in which they run. Layer 0 is what enters the
first block; layer k is the residual stream after block k, before any final norm.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from thinkalike.errors import InvalidInput, ModelError, UnknownName
from thinkalike.registry import Registry
from thinkalike.types import Config, Json, Value

if TYPE_CHECKING:
    from torch import nn

Kind = Literal["encoder", "decoder", "state space", "encoder-decoder", "vision", "speech", "unknown"]
Part = Literal["encoder", "decoder"]
PARTS = ("encoder", "decoder")


@dataclass(frozen=True)
class Architecture:
    """One row of the table. Paths are dotted, with integers for positions in a ModuleList.

    Attributes
    ----------
    blocks
        From the base model (from each of its two stacks for an encoder-decoder) to the list of blocks.
    final_norm
        From the same place to the norm after the last block, if there is one.
    attention, mlp
        From a block to the module whose output is what attention, or the MLP, adds to the residual stream.
    mixer
        The same for a block with one such addition only.
    parallel
        The flag of the config that says that attention and MLP are added together, in parallel.
    two_stacks
        An encoder and a decoder, which are two systems.
    channels_first
        States are (batch, units, height, width) rather than (batch, position, units).
    reads_mask
        The model takes an attention mask.
    max_length
        How many tokens it reads: by its table of positions, by that table less the padding offset
        (RoBERTa), or any number.
    settings
        Fields of the config that we set when we load the model.
    """

    kind: Kind
    blocks: str
    final_norm: str | None = None
    attention: str | None = None
    mlp: str | None = None
    mixer: str | None = None
    parallel: str | None = None
    two_stacks: bool = False
    channels_first: bool = False
    reads_mask: bool = True
    max_length: Literal["positions", "offset positions", "any"] = "positions"
    settings: Json = field(default_factory=dict)

    def site_paths(self, site: str, config: Config) -> tuple[str, ...]:
        """From a block to the modules whose summed outputs are the `site`; empty if it has no such site."""
        return tuple(path for path in SITES[site](self, config) if path is not None)


Site = Callable[[Architecture, Any], Sequence[str | None]]
"""From an architecture and a model's config to the paths from a block to the modules whose summed outputs are
the site; none, or None, where the architecture has no such site"""


def _residual(row: Architecture, config: Config) -> Sequence[str | None]:
    """The stream itself, which is not the output of a module within the block."""
    return ()


def _block(row: Architecture, config: Config) -> Sequence[str | None]:
    """What a block adds last; attention and MLP together where they are added in parallel."""
    together = row.parallel is not None and getattr(config, row.parallel, False)
    return (row.attention, row.mlp) if together else (row.mixer or row.mlp,)


def _accept_site(name: str, given: object) -> Site:
    if not callable(given):
        raise InvalidInput(f"The site {name!r} is {given!r}: give a function (architecture, config) → paths.")
    return given


def _accept_architecture(name: str, given: object) -> Architecture:
    if not isinstance(given, Architecture):
        raise InvalidInput(f"The architecture {name!r} is {given!r}: give an Architecture.")
    return given


SITES: Registry[Site] = Registry(
    "site",
    "thinkalike.sites",
    {
        "residual": _residual,
        "block": _block,
        "attention": lambda row, config: (row.attention,),
        "mlp": lambda row, config: (row.mlp,),
    },
    accept=_accept_site,
)
"""Where in a block states are read; the residual stream after it, or the outputs of modules within it"""


_BERT = Architecture("encoder", "encoder.layer", attention="attention.output.dense", mlp="output.dense")
_ROBERTA = replace(_BERT, max_length="offset positions")
_LLAMA = Architecture("decoder", "layers", final_norm="norm", attention="self_attn", mlp="mlp")
_GEMMA2 = replace(_LLAMA, attention="post_attention_layernorm", mlp="post_feedforward_layernorm")
_MAMBA = Architecture("state space", "layers", final_norm="norm_f", mixer="mixer", max_length="any")
_T5 = Architecture(
    "encoder-decoder",
    "block",
    final_norm="final_layer_norm",
    attention="layer.0.SelfAttention",
    mlp="layer.-1.DenseReluDense",
    two_stacks=True,
    max_length="any",
)
_BART = Architecture("encoder-decoder", "layers", attention="self_attn", mlp="fc2", two_stacks=True)
_VIT = Architecture("vision", "layers", final_norm="layernorm", attention="attention", mlp="mlp")
_WAV2VEC2 = Architecture(
    "speech", "encoder.layers", final_norm="encoder.layer_norm", attention="attention", mlp="feed_forward"
)

ARCHITECTURES: Registry[Architecture] = Registry(
    "architecture",
    "thinkalike.architectures",
    {
        "bert": _BERT,
        "roberta": _ROBERTA,
        "xlm-roberta": _ROBERTA,
        "camembert": _ROBERTA,
        "electra": _BERT,
        "deberta": _BERT,
        "deberta-v2": _BERT,
        "distilbert": Architecture("encoder", "transformer.layer", attention="attention", mlp="ffn"),
        "albert": Architecture(
            "encoder",
            "encoder.albert_layer_groups",
            attention="albert_layers.-1.attention.dense",
            mlp="albert_layers.-1.ffn_output",
        ),
        "modernbert": Architecture("encoder", "layers", final_norm="final_norm", attention="attn", mlp="mlp"),
        "gpt2": Architecture("decoder", "h", final_norm="ln_f", attention="attn", mlp="mlp"),
        "gpt_neox": Architecture(
            "decoder",
            "layers",
            final_norm="final_layer_norm",
            attention="attention",
            mlp="mlp",
            parallel="use_parallel_residual",
        ),
        "opt": Architecture(
            "decoder",
            "decoder.layers",
            final_norm="decoder.final_layer_norm",
            attention="self_attn",
            mlp="fc2",
        ),
        "llama": _LLAMA,
        "mistral": _LLAMA,
        "qwen2": _LLAMA,
        "qwen3": _LLAMA,
        "phi3": _LLAMA,
        "mixtral": _LLAMA,
        "gemma": _LLAMA,
        "gemma2": _GEMMA2,
        "gemma3_text": _GEMMA2,
        "gemma3": replace(_GEMMA2, blocks="language_model.layers", final_norm="language_model.norm"),
        "thinkalike_nano_decoder": replace(_LLAMA, attention="attention"),
        "mamba": _MAMBA,
        "mamba2": _MAMBA,
        "rwkv": Architecture(
            "state space",
            "blocks",
            final_norm="ln_out",
            attention="attention",
            mlp="feed_forward",
            reads_mask=False,
            max_length="any",
            # In evaluation transformers halves the stream every six blocks; without, it is the stream itself.
            settings={"rescale_every": 0},
        ),
        "t5": _T5,
        "mt5": _T5,
        "bart": _BART,
        "vit": _VIT,
        "convnext": Architecture("vision", "encoder.stages", channels_first=True),
        "wav2vec2": _WAV2VEC2,
        "hubert": _WAV2VEC2,
        "whisper": replace(_BART, kind="speech", final_norm="layer_norm"),
    },
    accept=_accept_architecture,
)
"""By the model_type of the config"""


@dataclass(frozen=True, eq=False)
class Stack:
    """The blocks of a model in the order in which they run; a shared block stands there once per run.

    Attributes
    ----------
    model
        What to call: the base model, or the encoder alone of an encoder-decoder.
    owner
        The module that runs the blocks; one call of it is one pass through the stack.
    """

    model: nn.Module
    owner: nn.Module
    blocks: tuple[nn.Module, ...]
    final_norm: nn.Module | None
    architecture: Architecture
    model_type: str
    part: Part | None = None
    notes: Json = field(default_factory=dict, repr=False)

    @property
    def n_blocks(self) -> int:
        return len(self.blocks)

    @property
    def config(self) -> Config:
        return self.model.config

    def sites(self, site: str) -> tuple[tuple[nn.Module, ...], ...]:
        """For each block, the modules whose summed outputs are the `site`."""
        paths = self.architecture.site_paths(site, self.config)
        if not paths:
            have = [s for s in SITES if self.architecture.site_paths(s, self.config)]
            raise InvalidInput(
                f"A {self.model_type} model has no site {site!r} that we know of: "
                f"choose {' or '.join(['residual', *have])}."
            )
        return tuple(tuple(follow(block, path) for path in paths) for block in self.blocks)


def layers_of(model: nn.Module, *, part: Part | None = None, blocks: str | None = None) -> Stack:
    """Find the blocks of `model`, with or without a head on top.

    Parameters
    ----------
    model
        A loaded model.
    part
        Which stack of an encoder-decoder; the encoder if not given.
    blocks
        The dotted path of the list of blocks, for an architecture that the table does not have.

    Returns
    -------
    Stack

    Examples
    --------
    >>> from thinkalike.systems import bundled, layers_of
    >>> len(layers_of(bundled.load("nano-gelu-3l")[0]).blocks)
    3
    """
    base = getattr(model, "base_model", model)
    model_type = str(getattr(getattr(base, "config", None), "model_type", type(base).__name__))
    row = ARCHITECTURES.get(model_type)
    if part is not None and part not in PARTS:
        raise UnknownName.among("part", part, PARTS)
    if row is not None and not row.two_stacks and part is not None:
        raise InvalidInput(f"A {model_type} model is one stack: leave out part={part!r}.")
    if part is None and (row.two_stacks if row else _has_two_stacks(base)):
        part = "encoder"
    root = base if part is None else getattr(base, part, None)
    if root is None:
        raise ModelError(f"This {model_type} model has no {part} of its own: hand over the {part} itself.")
    # An encoder runs by itself; a decoder is run by the whole model, which feeds it the encoder's answer.
    caller = root if part == "encoder" else base

    if blocks is not None:
        path, row = blocks, replace(row or Architecture("unknown", blocks), blocks=blocks)
    elif row is not None and _fits(root, row):
        path = row.blocks
    else:
        path = _discover(root, model_type)
        row = Architecture("unknown", path)
    listed = _listed(root, path, model_type)
    return Stack(
        model=caller,
        owner=_owner(root, path),
        blocks=_in_order(listed, getattr(base, "config", None)),
        final_norm=follow(root, row.final_norm, missing_ok=True) if row.final_norm else None,
        architecture=row,
        model_type=model_type,
        part=part,
    )


def follow(module: nn.Module, path: str, *, missing_ok: bool = False) -> Value:
    """The submodule at a dotted path; integers, also negative ones, count in a ModuleList."""
    at: Value = module
    for step in path.split("."):
        found = at[int(step)] if step.lstrip("-").isdigit() else getattr(at, step, None)
        if found is None:
            if missing_ok:
                return None
            raise ModelError(f"{type(module).__name__} has no module {path!r}.")
        at = found
    return at


def _has_two_stacks(base: nn.Module) -> bool:
    return bool(getattr(getattr(base, "config", None), "is_encoder_decoder", False))


def _fits(root: nn.Module, row: Architecture) -> bool:
    """Whether the model is built as the table says; another version of transformers may differ."""
    from torch import nn

    return isinstance(follow(root, row.blocks, missing_ok=True), nn.ModuleList)


def _listed(root: nn.Module, path: str, model_type: str) -> list[nn.Module]:
    from torch import nn

    found = follow(root, path, missing_ok=True)
    if not isinstance(found, (nn.ModuleList, nn.Sequential)) or not len(found):
        known = ", ".join(name for name, _ in _lists(root)) or "none"
        raise ModelError(
            f"There is no list of blocks at {path!r} in this {model_type} model. Lists: {known}."
        )
    if len({type(block) for block in found}) > 1:
        raise ModelError(f"The blocks at {path!r} in this {model_type} model are not of one kind.")
    return list(found)


def _in_order(listed: list[nn.Module], config: Config) -> tuple[nn.Module, ...]:
    """Spread shared blocks over the layers they serve as, as ALBERT does with its groups."""
    n_runs = getattr(config, "num_hidden_layers", len(listed))
    if not hasattr(config, "num_hidden_groups") or n_runs <= len(listed):
        return tuple(listed)
    return tuple(listed[run * len(listed) // n_runs] for run in range(n_runs))


def _owner(root: nn.Module, path: str) -> nn.Module:
    parent, _, _ = path.rpartition(".")
    return follow(root, parent) if parent else root


def _lists(root: nn.Module) -> Iterator[tuple[str, nn.ModuleList]]:
    from torch import nn

    for name, module in root.named_modules():
        if isinstance(module, nn.ModuleList) and len(module) and len({type(block) for block in module}) == 1:
            yield name, module


def _discover(root: nn.Module, model_type: str) -> str:
    """The path of the longest list of equal blocks; of equally long ones, that with the most parameters."""
    candidates = [
        (len(blocks), sum(p.numel() for p in blocks.parameters()), name) for name, blocks in _lists(root)
    ]
    if not candidates:
        raise ModelError(
            f"No list of equal blocks found in this {model_type} model: "
            "name it with blocks='path.to.the.list', or hand over arrays with Activations.from_arrays."
        )
    length, _, path = max(candidates)
    warnings.warn(
        f"The architecture {model_type!r} is not in the table: taking the {length} equal blocks at {path!r} "
        "as its layers. If that is wrong, name the right list with blocks='path.to.the.list'.",
        UserWarning,
        stacklevel=3,
    )
    return path
