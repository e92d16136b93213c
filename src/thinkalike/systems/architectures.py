"""Where the blocks of a model are, and what is inside them: one table of architectures.

`stack.layers_of(model)` reads it and checks it against the model itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from thinkalike.errors import InvalidInput
from thinkalike.registry import Registry

Kind = Literal[
    "encoder", "decoder", "state space", "encoder-decoder", "vision", "speech", "two towers", "unknown"
]
Part = Literal["encoder", "decoder", "text", "vision"]
PARTS: tuple[Part, ...] = ("encoder", "decoder", "text", "vision")
HALVES: tuple[Part, ...] = ("encoder", "decoder")


@dataclass(frozen=True)
class Architecture:
    """One row of the table. Paths are dotted, with integers for positions in a ModuleList.

    Attributes
    ----------
    blocks
        From the base model (from each of its parts, if it has several) to the list of blocks.
    final_norm
        From the same place to the norm after the last block, if there is one.
    attention, mlp
        From a block to the module whose output is what attention, or the MLP, adds to the residual stream.
    mixer
        The same for a block with one such addition only.
    heads
        From a block to the projection that mixes the heads: what enters it is their outputs, side by side.
    neurons
        From a block to the last projection of the MLP: what enters it is the activity of the neurons.
    router
        From a block to the module that answers (logits, weights of the chosen experts, which they are).
    state
        From a block to the module that carries a state from token to token, in the cache of transformers.
    parallel
        The flag of the config that says that attention and MLP are added together, in parallel.
    parts
        The stacks of a model that has several, which are as many systems; unasked, the first is taken.
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
    heads: str | None = None
    neurons: str | None = None
    router: str | None = None
    state: str | None = None
    parallel: str | None = None
    parts: tuple[Part, ...] = ()
    channels_first: bool = False
    reads_mask: bool = True
    max_length: Literal["positions", "offset positions", "any"] = "positions"
    settings: dict[str, object] = field(default_factory=dict)


def _accept_architecture(name: str, given: object) -> Architecture:
    if not isinstance(given, Architecture):
        raise InvalidInput(f"The architecture {name!r} is {given!r}: give an Architecture.")
    return given


_BERT = Architecture(
    "encoder",
    "encoder.layer",
    attention="attention.output.dense",
    mlp="output.dense",
    heads="attention.output.dense",
    neurons="output.dense",
)
_ROBERTA = replace(_BERT, max_length="offset positions")
_LLAMA = Architecture(
    "decoder",
    "layers",
    final_norm="norm",
    attention="self_attn",
    mlp="mlp",
    heads="self_attn.o_proj",
    neurons="mlp.down_proj",
)
_EXPERTS = replace(_LLAMA, router="mlp.gate")
_POST_NORMED = replace(_LLAMA, attention="post_attention_layernorm", mlp="post_feedforward_layernorm")
_MAMBA = Architecture(
    "state space", "layers", final_norm="norm_f", mixer="mixer", state="mixer", max_length="any"
)
_T5 = Architecture(
    "encoder-decoder",
    "block",
    final_norm="final_layer_norm",
    attention="layer.0.SelfAttention",
    mlp="layer.-1.DenseReluDense",
    heads="layer.0.SelfAttention.o",
    neurons="layer.-1.DenseReluDense.wo",
    parts=HALVES,
    max_length="any",
)
_BART = Architecture(
    "encoder-decoder",
    "layers",
    attention="self_attn",
    mlp="fc2",
    heads="self_attn.out_proj",
    neurons="fc2",
    parts=HALVES,
)
_VIT = Architecture(
    "vision",
    "layers",
    final_norm="layernorm",
    attention="attention",
    mlp="mlp",
    heads="attention.o_proj",
    neurons="mlp.fc2",
)
_CLIP = Architecture(
    "two towers",
    "encoder.layers",
    final_norm="final_layer_norm",
    attention="self_attn",
    mlp="mlp",
    heads="self_attn.out_proj",
    neurons="mlp.fc2",
)
_WAV2VEC2 = Architecture(
    "speech",
    "encoder.layers",
    final_norm="encoder.layer_norm",
    attention="attention",
    mlp="feed_forward",
    heads="attention.out_proj",
    neurons="feed_forward.output_dense",
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
        "distilbert": Architecture(
            "encoder",
            "transformer.layer",
            attention="attention",
            mlp="ffn",
            heads="attention.out_lin",
            neurons="ffn.lin2",
        ),
        "albert": Architecture(
            "encoder",
            "encoder.albert_layer_groups",
            attention="albert_layers.-1.attention.dense",
            mlp="albert_layers.-1.ffn_output",
            heads="albert_layers.-1.attention.dense",
            neurons="albert_layers.-1.ffn_output",
        ),
        "modernbert": Architecture(
            "encoder",
            "layers",
            final_norm="final_norm",
            attention="attn",
            mlp="mlp",
            heads="attn.Wo",
            neurons="mlp.Wo",
        ),
        "gpt2": Architecture(
            "decoder",
            "h",
            final_norm="ln_f",
            attention="attn",
            mlp="mlp",
            heads="attn.c_proj",
            neurons="mlp.c_proj",
        ),
        "gpt_neox": Architecture(
            "decoder",
            "layers",
            final_norm="final_layer_norm",
            attention="attention",
            mlp="mlp",
            heads="attention.dense",
            neurons="mlp.dense_4h_to_h",
            parallel="use_parallel_residual",
        ),
        "opt": Architecture(
            "decoder",
            "decoder.layers",
            final_norm="decoder.final_layer_norm",
            attention="self_attn",
            mlp="fc2",
            heads="self_attn.out_proj",
            neurons="fc2",
        ),
        "llama": _LLAMA,
        "mistral": _LLAMA,
        "qwen2": _LLAMA,
        "qwen3": _LLAMA,
        "phi3": _LLAMA,
        "olmo": _LLAMA,
        "gemma": _LLAMA,
        "olmo2": _POST_NORMED,
        "olmo3": _POST_NORMED,
        "gemma2": _POST_NORMED,
        "gemma3_text": _POST_NORMED,
        "gemma3": replace(_POST_NORMED, blocks="language_model.layers", final_norm="language_model.norm"),
        "mixtral": replace(_EXPERTS, neurons=None),
        "qwen2_moe": _EXPERTS,
        "qwen3_moe": _EXPERTS,
        "olmoe": replace(_EXPERTS, neurons=None),
        "deepseek_v2": _EXPERTS,
        "deepseek_v3": _EXPERTS,
        "gpt_oss": replace(_LLAMA, neurons=None, router="mlp.router"),
        "thinkalike_nano_decoder": replace(
            _LLAMA, attention="attention", heads="attention.out", neurons="mlp.down"
        ),
        "mamba": _MAMBA,
        "mamba2": _MAMBA,
        # What its attention and its state add is scaled outside their modules: only the MLP's is read whole.
        "falcon_h1": replace(
            _LLAMA,
            final_norm="final_layernorm",
            attention=None,
            mlp="feed_forward",
            neurons="feed_forward.down_proj",
            state="mamba",
        ),
        "jamba": replace(
            _LLAMA,
            final_norm="final_layernorm",
            mlp="feed_forward",
            neurons="feed_forward.down_proj",
            router="feed_forward.router",
            state="mamba",
        ),
        "rwkv": Architecture(
            "state space",
            "blocks",
            final_norm="ln_out",
            attention="attention",
            mlp="feed_forward",
            state="attention",
            reads_mask=False,
            max_length="any",
            # In evaluation transformers halves the stream every six blocks; without, it is the stream itself.
            settings={"rescale_every": 0},
        ),
        "t5": _T5,
        "mt5": _T5,
        "bart": _BART,
        "vit": _VIT,
        "dinov2": replace(_VIT, blocks="encoder.layer", attention="layer_scale1", mlp="layer_scale2"),
        "convnext": Architecture("vision", "encoder.stages", channels_first=True),
        "clip": replace(_CLIP, parts=("text", "vision")),
        "clip_text_model": _CLIP,
        "clip_vision_model": replace(_CLIP, final_norm=None),
        "wav2vec2": _WAV2VEC2,
        "hubert": _WAV2VEC2,
        "whisper": replace(_BART, kind="speech", final_norm="layer_norm"),
    },
    accept=_accept_architecture,
)
"""By the model_type of the config"""
