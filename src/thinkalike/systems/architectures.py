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
        Whether attention and MLP are added together, in parallel, or the flag of the config that says so.
    parts
        The stacks of a model that has several, which are as many systems; unasked, the first is taken.
    channels_first
        States are (batch, units, height, width) rather than (batch, position, units).
    time_first
        Within the model states are (position, batch, units); whoever reads them has the batch first.
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
    parallel: str | bool = False
    parts: tuple[Part, ...] = ()
    channels_first: bool = False
    time_first: bool = False
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
_PARALLEL = replace(_LLAMA, parallel=True)
_POST_NORMED = replace(_LLAMA, attention="post_attention_layernorm", mlp="post_feedforward_layernorm")
_GPT2 = Architecture(
    "decoder",
    "h",
    final_norm="ln_f",
    attention="attn",
    mlp="mlp",
    heads="attn.c_proj",
    neurons="mlp.c_proj",
)
_GPTJ = replace(_GPT2, heads="attn.out_proj", neurons="mlp.fc_out", parallel=True)
_MODERNBERT = Architecture(
    "encoder",
    "layers",
    final_norm="final_norm",
    attention="attn",
    mlp="mlp",
    heads="attn.Wo",
    neurons="mlp.Wo",
)
# Most blocks keep a state instead of looking back: attention and heads are those of the others.
_GATED_DELTA = replace(_LLAMA, state="linear_attn")
# Beside attention in some blocks, a state-space model in the others.
_JAMBA = replace(
    _LLAMA,
    final_norm="final_layernorm",
    mlp="feed_forward",
    neurons="feed_forward.down_proj",
    state="mamba",
)
# A short convolution stands in for attention in most blocks.
_LFM2 = replace(
    _LLAMA,
    final_norm="embedding_norm",
    heads="self_attn.out_proj",
    mlp="feed_forward",
    neurons="feed_forward.w2",
)
# What attention and MLP add is scaled outside their modules.
_SCALED = replace(_LLAMA, attention=None, mlp=None)
_SCALED_EXPERTS = replace(_SCALED, neurons=None, router="block_sparse_moe.router")
_XGLM = Architecture(
    "decoder",
    "layers",
    final_norm="layer_norm",
    attention="self_attn",
    mlp="fc2",
    heads="self_attn.out_proj",
    neurons="fc2",
)
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
_PRE_NORMED_BART = replace(_BART, final_norm="layer_norm")
_VIT = Architecture(
    "vision",
    "layers",
    final_norm="layernorm",
    attention="attention",
    mlp="mlp",
    heads="attention.o_proj",
    neurons="mlp.fc2",
)
_DINOV2 = replace(_VIT, blocks="encoder.layer", attention="layer_scale1", mlp="layer_scale2")
_STAGES = Architecture("vision", "encoder.stages", channels_first=True)
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
        "xlm-roberta-xl": replace(_ROBERTA, final_norm="encoder.LayerNorm"),
        "roberta-prelayernorm": replace(_ROBERTA, final_norm="LayerNorm"),
        "data2vec-text": _ROBERTA,
        "electra": _BERT,
        "ernie": _BERT,
        "megatron-bert": replace(_BERT, final_norm="encoder.ln"),
        "deberta": _BERT,
        "deberta-v2": _BERT,
        "mpnet": replace(_ROBERTA, attention="attention.attn.o", heads="attention.attn.o"),
        "nomic_bert": replace(_LLAMA, kind="encoder", final_norm=None),
        "eurobert": replace(_LLAMA, kind="encoder"),
        "gte": replace(_LLAMA, kind="encoder", final_norm=None),
        "jina_embeddings_v3": replace(_LLAMA, kind="encoder", final_norm=None, neurons="mlp.fc2"),
        "roformer": _BERT,
        "rembert": _BERT,
        "esm": replace(_BERT, final_norm="encoder.emb_layer_norm_after"),
        # Attention mixes its heads and adds the stream without calling a module that does either alone.
        "xlnet": Architecture(
            "encoder", "layer", mlp="ff.layer_2", neurons="ff.layer_2", time_first=True, max_length="any"
        ),
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
        "modernbert": _MODERNBERT,
        "modernbert-decoder": replace(_MODERNBERT, kind="decoder"),
        "openai-gpt": replace(_GPT2, final_norm=None),
        "gpt2": _GPT2,
        "gpt_bigcode": _GPT2,
        "gpt_neo": replace(_GPT2, heads="attn.attention.out_proj"),
        "gptj": _GPTJ,
        "codegen": _GPTJ,
        # Its attention and MLP add the stream themselves: what they add is what their last projections give.
        "bloom": replace(
            _GPT2,
            attention="self_attention.dense",
            mlp="mlp.dense_4h_to_h",
            heads="self_attention.dense",
            neurons="mlp.dense_4h_to_h",
        ),
        "mpt": Architecture(
            "decoder",
            "blocks",
            final_norm="norm_f",
            attention="attn",
            mlp="ffn.down_proj",
            heads="attn.out_proj",
            neurons="ffn.down_proj",
        ),
        "falcon": replace(
            _GPT2,
            attention="self_attention",
            heads="self_attention.dense",
            neurons="mlp.dense_4h_to_h",
            parallel="parallel_attn",
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
        "xglm": _XGLM,
        "biogpt": _XGLM,
        "llama": _LLAMA,
        "mistral": _LLAMA,
        "ministral": _LLAMA,
        "ministral3": _LLAMA,
        "smollm3": _LLAMA,
        "glm": _LLAMA,
        "ernie4_5": _LLAMA,
        "seed_oss": _LLAMA,
        "apertus": _LLAMA,
        "arcee": _LLAMA,
        "helium": _LLAMA,
        "nemotron": _LLAMA,
        "hunyuan_v1_dense": _LLAMA,
        "starcoder2": replace(_LLAMA, neurons="mlp.c_proj"),
        "nanochat": replace(_LLAMA, neurons="mlp.fc2"),
        "bitnet": _LLAMA,
        "vaultgemma": _LLAMA,
        "granite": _SCALED,
        "gemma4_text": _SCALED,
        "granitemoe": _SCALED_EXPERTS,
        "stablelm": replace(_LLAMA, parallel="use_parallel_residual"),
        "cohere": _PARALLEL,
        "cohere2": _PARALLEL,
        "phi": replace(_PARALLEL, final_norm="final_layernorm", heads="self_attn.dense", neurons="mlp.fc2"),
        "qwen3_vl_text": _LLAMA,
        "qwen3_vl": replace(_LLAMA, blocks="language_model.layers", final_norm="language_model.norm"),
        "qwen2": _LLAMA,
        "qwen3": _LLAMA,
        "phi3": _LLAMA,
        "olmo": _LLAMA,
        "gemma": _LLAMA,
        "olmo2": _POST_NORMED,
        "olmo3": _POST_NORMED,
        "exaone4": _POST_NORMED,
        "glm4": replace(_LLAMA, attention="post_self_attn_layernorm", mlp="post_mlp_layernorm"),
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
        "glm4_moe": _EXPERTS,
        "ernie4_5_moe": _EXPERTS,
        "dots1": _EXPERTS,
        "minimax_m2": replace(_EXPERTS, neurons=None),
        "phimoe": replace(_LLAMA, neurons=None, router="mlp.router"),
        "exaone_moe": _EXPERTS,
        "cohere2_moe": replace(_EXPERTS, parallel=True, neurons=None),
        # Its router answers in a form of its own.
        "llama4_text": replace(_LLAMA, mlp="feed_forward", neurons="feed_forward.down_proj"),
        "thinkalike_nano_decoder": replace(
            _LLAMA, attention="attention", heads="attention.out", neurons="mlp.down"
        ),
        "mamba": _MAMBA,
        "mamba2": _MAMBA,
        "falcon_mamba": _MAMBA,
        "qwen3_next": replace(_GATED_DELTA, neurons=None, router="mlp.gate"),
        "qwen3_5_text": _GATED_DELTA,
        "qwen3_5_moe_text": replace(_GATED_DELTA, neurons=None, router="mlp.gate"),
        "lfm2": _LFM2,
        "lfm2_moe": replace(_LFM2, router="feed_forward.gate"),
        # What its attention and its state add is scaled outside their modules: only the MLP's is read whole.
        "falcon_h1": replace(
            _LLAMA,
            final_norm="final_layernorm",
            attention=None,
            mlp="feed_forward",
            neurons="feed_forward.down_proj",
            state="mamba",
        ),
        "jamba": replace(_JAMBA, router="feed_forward.router"),
        "bamba": _JAMBA,
        "granitemoehybrid": replace(_SCALED_EXPERTS, state="mamba"),
        # A block is one thing: a state-space model, attention, an MLP or a mixture of experts.
        "nemotron_h": Architecture(
            "decoder",
            "layers",
            final_norm="norm_f",
            mixer="mixer",
            attention="mixer.o_proj",
            heads="mixer.o_proj",
            neurons="mixer.down_proj",
            router="mixer.gate",
            state="mixer.conv1d",
        ),
        # A linear recurrence stands in for attention in most of its blocks, and keeps its state to itself.
        "recurrent_gemma": Architecture(
            "decoder",
            "layers",
            final_norm="final_norm",
            attention="temporal_block.o_proj",
            mlp="mlp_block",
            heads="temporal_block.o_proj",
            neurons="mlp_block.down_proj",
            max_length="any",
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
        "umt5": _T5,
        "bart": _BART,
        "marian": _BART,
        "mbart": _PRE_NORMED_BART,
        "blenderbot": _PRE_NORMED_BART,
        "m2m_100": _PRE_NORMED_BART,
        "pegasus": _PRE_NORMED_BART,
        "vit": _VIT,
        "deit": _VIT,
        "ijepa": _VIT,
        "dinov2": _DINOV2,
        "dinov2_with_registers": _DINOV2,
        "dinov3_vit": replace(_DINOV2, blocks="model.layer", final_norm="norm", neurons="mlp.down_proj"),
        "swin": Architecture("vision", "encoder.layers", final_norm="layernorm"),
        "convnext": _STAGES,
        "convnextv2": _STAGES,
        "resnet": _STAGES,
        "clip": replace(_CLIP, parts=("text", "vision")),
        "clip_text_model": _CLIP,
        "clip_vision_model": replace(_CLIP, final_norm=None),
        "siglip": replace(_CLIP, parts=("text", "vision")),
        "siglip_vision_model": replace(_CLIP, final_norm="post_layernorm"),
        "wav2vec2": _WAV2VEC2,
        "hubert": _WAV2VEC2,
        "unispeech-sat": _WAV2VEC2,
        "data2vec-audio": _WAV2VEC2,
        # It mixes its heads without calling the projection, so that they cannot be read before.
        "wavlm": replace(_WAV2VEC2, heads=None),
        "whisper": replace(_PRE_NORMED_BART, kind="speech"),
    },
    accept=_accept_architecture,
)
"""By the model_type of the config"""
