"""Tiny random models of every architecture in the table, and tiny tokenizers of the three common kinds."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as tf
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from thinkalike.stimuli import Stimuli
from thinkalike.systems.stack import Stack, layers_of

WIDTH, N_TOKENS = 32, 320
TEXTS = [
    "The old woman sings.",
    "Do you see the three princes who vanished yesterday?",
    "Mary fell.",
    "Which men sneezed loudly in the quiet library last night, and why did nobody hear them?",
    "No prince plays.",
    "I can't believe that she doesn't know the king's daughters.",
]
SIZES: dict[str, Any] = {
    "hidden_size": WIDTH,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": N_TOKENS,
    "max_position_embeddings": 64,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "pad_token_id": 0,
}
SHARED: dict[str, Any] = {**SIZES, "num_key_value_heads": 2}
GROUPED: dict[str, Any] = {**SHARED, "head_dim": 8}
EXPERTS: dict[str, Any] = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
LATENT_ATTENTION: dict[str, Any] = {
    **SIZES,
    "num_key_value_heads": 4,
    "first_k_dense_replace": 1,  # the first block has no experts
    "kv_lora_rank": 8,
    "q_lora_rank": 8,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 8,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "moe_intermediate_size": 16,
}
DEEP_EXPERTS: dict[str, Any] = {
    **GROUPED,
    "first_k_dense_replace": 1,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "moe_intermediate_size": 16,
    "n_group": 1,
    "topk_group": 1,
}
GATED_DELTA: dict[str, Any] = {
    **GROUPED,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
MAMBA2: dict[str, Any] = {
    "mamba_n_heads": 4,
    "mamba_d_head": 16,
    "mamba_n_groups": 1,
    "mamba_d_state": 4,
    "mamba_chunk_size": 8,
}
GPT: dict[str, Any] = {
    "n_embd": WIDTH,
    "n_layer": 3,
    "n_head": 4,
    "vocab_size": N_TOKENS,
    "n_positions": 64,
    "bos_token_id": 2,
    "eos_token_id": 3,
}
SECTIONS: dict[str, Any] = {
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
}
TOWER: dict[str, Any] = {
    name: SIZES[name]
    for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
}
SPEECH: dict[str, Any] = {
    **{name: SIZES[name] for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")},
    "intermediate_size": 48,
    "conv_dim": (8, 8),
    "conv_kernel": (10, 3),
    "conv_stride": (5, 2),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
}
TWO_STACKS: dict[str, Any] = {
    "d_model": WIDTH,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "vocab_size": N_TOKENS,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "decoder_start_token_id": 3,
}


@dataclass(frozen=True)
class Tiny:
    """How to build a tiny model, and what is known of it from elsewhere.

    `hidden_states` says what transformers puts into its list of that name, found by reading its code:
    "all" (embeddings and every block), "normed" (the same, the last after the final norm), or "shifted"
    (block 1 comes first, the final norm last). With `norm_hidden`, a final norm is applied but not listed.
    `norms` are the norms of a block that normalises after adding, `update` the sites that make up all that
    one adds which normalises before.
    """

    config: Callable[[], Any]
    kind: str = "wordpiece"
    part: Any = None
    hidden_states: str = "all"
    norm_hidden: bool = False
    norms: tuple[str, str] | None = None
    update: tuple[str, ...] = ()


BERT_NORMS = ("attention.output.LayerNorm", "output.LayerNorm")
ADDED = ("attention", "mlp")

TINY: dict[str, Tiny] = {
    "bert": Tiny(lambda: tf.BertConfig(**SIZES), norms=BERT_NORMS),
    "roberta": Tiny(lambda: tf.RobertaConfig(**{**SIZES, "pad_token_id": 1}), norms=BERT_NORMS),
    "xlm-roberta": Tiny(lambda: tf.XLMRobertaConfig(**{**SIZES, "pad_token_id": 1}), norms=BERT_NORMS),
    "camembert": Tiny(lambda: tf.CamembertConfig(**{**SIZES, "pad_token_id": 1}), norms=BERT_NORMS),
    "ernie": Tiny(lambda: tf.ErnieConfig(**SIZES), norms=BERT_NORMS),
    "data2vec-text": Tiny(lambda: tf.Data2VecTextConfig(**{**SIZES, "pad_token_id": 1}), norms=BERT_NORMS),
    "mpnet": Tiny(
        lambda: tf.MPNetConfig(**{**SIZES, "pad_token_id": 1}),
        norms=("attention.LayerNorm", "output.LayerNorm"),
    ),
    "nomic_bert": Tiny(
        lambda: tf.NomicBertConfig(**SIZES), norms=("post_attention_layernorm", "post_mlp_layernorm")
    ),
    **{
        name: Tiny(config, norms=("post_attention_layernorm", "post_mlp_layernorm"))
        for name, config in {
            "gte": lambda: tf.GteConfig(**SIZES),
            "jina_embeddings_v3": lambda: tf.JinaEmbeddingsV3Config(**SIZES),
        }.items()
    },
    "roformer": Tiny(lambda: tf.RoFormerConfig(**SIZES), norms=BERT_NORMS),
    "rembert": Tiny(
        lambda: tf.RemBertConfig(**SIZES, input_embedding_size=16, output_embedding_size=16), norms=BERT_NORMS
    ),
    "xlnet": Tiny(
        lambda: tf.XLNetConfig(
            d_model=WIDTH, n_layer=3, n_head=4, d_inner=48, vocab_size=N_TOKENS, pad_token_id=0
        )
    ),
    **{
        name: Tiny(config, hidden_states="normed", update=ADDED)
        for name, config in {
            "esm": lambda: tf.EsmConfig(
                **SIZES, position_embedding_type="rotary", mask_token_id=4, token_dropout=False
            ),
            "roberta-prelayernorm": lambda: tf.RobertaPreLayerNormConfig(**{**SIZES, "pad_token_id": 1}),
            "xlm-roberta-xl": lambda: tf.XLMRobertaXLConfig(**{**SIZES, "pad_token_id": 1}),
            "megatron-bert": lambda: tf.MegatronBertConfig(**SIZES),
            "eurobert": lambda: tf.EuroBertConfig(**SIZES),
        }.items()
    },
    "distilbert": Tiny(
        lambda: tf.DistilBertConfig(
            dim=WIDTH, n_layers=3, n_heads=4, hidden_dim=48, vocab_size=N_TOKENS, max_position_embeddings=64
        ),
        norms=("sa_layer_norm", "output_layer_norm"),
    ),
    "albert": Tiny(
        lambda: tf.AlbertConfig(**SIZES, embedding_size=16),
        norms=("albert_layers.0.attention.LayerNorm", "albert_layers.0.full_layer_layer_norm"),
    ),
    "albert, two groups": Tiny(
        lambda: tf.AlbertConfig(**{**SIZES, "num_hidden_layers": 4}, embedding_size=16, num_hidden_groups=2)
    ),
    "electra": Tiny(lambda: tf.ElectraConfig(**SIZES, embedding_size=16), norms=BERT_NORMS),
    "modernbert": Tiny(
        lambda: tf.ModernBertConfig(**SIZES, cls_token_id=2, sep_token_id=3, local_attention=8),
        hidden_states="normed",
        update=ADDED,
    ),
    "deberta": Tiny(
        lambda: tf.DebertaConfig(**SIZES, relative_attention=True, pos_att_type=["c2p", "p2c"]),
        norms=BERT_NORMS,
    ),
    "deberta-v2": Tiny(
        lambda: tf.DebertaV2Config(
            **SIZES,
            relative_attention=True,
            pos_att_type=["c2p", "p2c"],
            position_buckets=8,
            share_att_key=True,
            norm_rel_ebd="layer_norm",
        ),
        norms=BERT_NORMS,
    ),
    "deberta-v2, convolution": Tiny(
        lambda: tf.DebertaV2Config(**SIZES, relative_attention=True, conv_kernel_size=3, conv_act="gelu")
    ),
    "gpt2": Tiny(
        lambda: tf.GPT2Config(**GPT),
        kind="bytes",
        hidden_states="normed",
        update=ADDED,
    ),
    "openai-gpt": Tiny(lambda: tf.OpenAIGPTConfig(**GPT), kind="bytes", norms=("ln_1", "ln_2")),
    "gpt_neox": Tiny(
        lambda: tf.GPTNeoXConfig(**SIZES), kind="bytes", hidden_states="normed", update=("block",)
    ),
    "gpt_neox, sequential": Tiny(
        lambda: tf.GPTNeoXConfig(**SIZES, use_parallel_residual=False),
        kind="bytes",
        hidden_states="normed",
        update=ADDED,
    ),
    "opt": Tiny(
        lambda: tf.OPTConfig(**SIZES, ffn_dim=48, word_embed_proj_dim=WIDTH),
        kind="bytes",
        hidden_states="normed",
        update=ADDED,
    ),
    "opt, post-norm": Tiny(
        lambda: tf.OPTConfig(**SIZES, ffn_dim=48, word_embed_proj_dim=WIDTH, do_layer_norm_before=False),
        kind="bytes",
        norms=("self_attn_layer_norm", "final_layer_norm"),
    ),
    "llama": Tiny(lambda: tf.LlamaConfig(**GROUPED), kind="spaces", hidden_states="normed", update=ADDED),
    "mistral": Tiny(
        lambda: tf.MistralConfig(**GROUPED, sliding_window=4),
        kind="spaces",
        hidden_states="normed",
        update=ADDED,
    ),
    "qwen2": Tiny(
        lambda: tf.Qwen2Config(**SHARED),
        kind="bytes",
        hidden_states="normed",
        update=ADDED,
    ),
    "qwen3": Tiny(lambda: tf.Qwen3Config(**GROUPED), kind="bytes", hidden_states="normed", update=ADDED),
    "phi3": Tiny(
        lambda: tf.Phi3Config(**SHARED),
        kind="spaces",
        hidden_states="normed",
        update=ADDED,
    ),
    "mixtral": Tiny(
        lambda: tf.MixtralConfig(**GROUPED, num_local_experts=2),
        kind="spaces",
        hidden_states="normed",
        update=ADDED,
    ),
    **{
        name: Tiny(config, kind="bytes", hidden_states="normed", update=ADDED)
        for name, config in {
            "gpt_bigcode": lambda: tf.GPTBigCodeConfig(**GPT),
            "gpt_neo": lambda: tf.GPTNeoConfig(
                hidden_size=WIDTH,
                num_layers=3,
                num_heads=4,
                intermediate_size=48,
                vocab_size=N_TOKENS,
                max_position_embeddings=64,
                attention_types=[[["global", "local"], 1], [["global"], 1]],
                window_size=4,
            ),
            "bloom": lambda: tf.BloomConfig(hidden_size=WIDTH, n_layer=3, n_head=4, vocab_size=N_TOKENS),
            "mpt": lambda: tf.MptConfig(
                d_model=WIDTH, n_layers=3, n_heads=4, vocab_size=N_TOKENS, max_seq_len=64
            ),
            "xglm": lambda: tf.XGLMConfig(
                d_model=WIDTH,
                num_layers=3,
                attention_heads=4,
                ffn_dim=48,
                vocab_size=N_TOKENS,
                max_position_embeddings=64,
                pad_token_id=0,
            ),
            "biogpt": lambda: tf.BioGptConfig(**SIZES),
            "falcon, sequential": lambda: tf.FalconConfig(**SIZES, parallel_attn=False),
            "stablelm": lambda: tf.StableLmConfig(**SHARED),
            "modernbert-decoder": lambda: tf.ModernBertDecoderConfig(
                **SIZES, cls_token_id=2, sep_token_id=3, local_attention=8
            ),
            "ministral": lambda: tf.MinistralConfig(**GROUPED, sliding_window=4),
            "ministral3": lambda: tf.Ministral3Config(**GROUPED),
            "smollm3": lambda: tf.SmolLM3Config(**SHARED),
            "glm": lambda: tf.GlmConfig(**GROUPED),
            "glm4": lambda: tf.Glm4Config(**GROUPED),
            "ernie4_5": lambda: tf.Ernie4_5Config(**GROUPED),
            "seed_oss": lambda: tf.SeedOssConfig(**GROUPED),
            "apertus": lambda: tf.ApertusConfig(**SHARED),
            "arcee": lambda: tf.ArceeConfig(**SHARED),
            "helium": lambda: tf.HeliumConfig(**GROUPED),
            "nemotron": lambda: tf.NemotronConfig(**SHARED),
            "hunyuan_v1_dense": lambda: tf.HunYuanDenseV1Config(**GROUPED),
            "starcoder2": lambda: tf.Starcoder2Config(**SHARED),
            "nanochat": lambda: tf.NanoChatConfig(**SHARED),
            "exaone4": lambda: tf.Exaone4Config(**SHARED, sliding_window=4),
            "qwen3_vl_text": lambda: tf.Qwen3VLTextConfig(**GROUPED, **SECTIONS),
            "qwen3_vl": lambda: tf.Qwen3VLConfig(
                text_config={**GROUPED, **SECTIONS},
                vision_config={
                    "depth": 1,
                    "hidden_size": 16,
                    "intermediate_size": 16,
                    "num_heads": 2,
                    "out_hidden_size": WIDTH,
                    "num_position_embeddings": 16,
                    "deepstack_visual_indexes": [0],
                },
            ),
            "glm4_moe": lambda: tf.Glm4MoeConfig(**DEEP_EXPERTS),
            "dots1": lambda: tf.Dots1Config(**DEEP_EXPERTS),
            "ernie4_5_moe": lambda: tf.Ernie4_5_MoeConfig(
                **SHARED, moe_num_experts=4, moe_k=2, moe_intermediate_size=16, moe_num_shared_experts=1
            ),
            "minimax_m2": lambda: tf.MiniMaxM2Config(**GROUPED, num_local_experts=4, num_experts_per_tok=2),
            "phimoe": lambda: tf.PhimoeConfig(**SHARED, num_local_experts=4),
            "exaone_moe": lambda: tf.ExaoneMoeConfig(
                **GROUPED,
                **EXPERTS,
                num_shared_experts=1,
                n_group=1,
                topk_group=1,
                mlp_layer_types=["dense", "sparse", "sparse"],
            ),
            "llama4_text": lambda: tf.Llama4TextConfig(
                **GROUPED,
                num_local_experts=4,
                num_experts_per_tok=1,
                intermediate_size_mlp=48,
                interleave_moe_layer_step=2,
            ),
            "bitnet": lambda: tf.BitNetConfig(**SHARED),
            "vaultgemma": lambda: tf.VaultGemmaConfig(**GROUPED, sliding_window=4),
            "olmo": lambda: tf.OlmoConfig(**SHARED),
            "olmo2": lambda: tf.Olmo2Config(**SHARED),
            "olmo3": lambda: tf.Olmo3Config(**SHARED),
            "qwen2_moe": lambda: tf.Qwen2MoeConfig(
                **SHARED, **EXPERTS, mlp_only_layers=[0], shared_expert_intermediate_size=16
            ),
            "qwen3_moe": lambda: tf.Qwen3MoeConfig(**GROUPED, **EXPERTS, mlp_only_layers=[0]),
            "olmoe": lambda: tf.OlmoeConfig(**SHARED, num_experts=4, num_experts_per_tok=2),
            "deepseek_v2": lambda: tf.DeepseekV2Config(**LATENT_ATTENTION, n_group=1, topk_group=1),
            "deepseek_v3": lambda: tf.DeepseekV3Config(**LATENT_ATTENTION, n_group=2, topk_group=1),
            "gpt_oss": lambda: tf.GptOssConfig(
                **GROUPED,
                num_local_experts=4,
                num_experts_per_tok=2,
                sliding_window=4,
                rope_parameters={"rope_type": "default", "rope_theta": 150000.0},
            ),
        }.items()
    },
    **{
        name: Tiny(config, kind="bytes", hidden_states="normed", update=("block",))
        for name, config in {
            "gptj": lambda: tf.GPTJConfig(**GPT, rotary_dim=4),
            "codegen": lambda: tf.CodeGenConfig(**GPT, rotary_dim=4),
            "falcon": lambda: tf.FalconConfig(**SIZES),
            "stablelm, parallel": lambda: tf.StableLmConfig(**SHARED, use_parallel_residual=True),
            "cohere": lambda: tf.CohereConfig(**SHARED),
            "cohere2": lambda: tf.Cohere2Config(**GROUPED, sliding_window=4),
            "cohere2_moe": lambda: tf.Cohere2MoeConfig(
                **GROUPED, num_experts=4, num_experts_per_tok=2, sliding_window=4
            ),
            "phi": lambda: tf.PhiConfig(**SHARED),
        }.items()
    },
    **{
        name: Tiny(config, kind="bytes", hidden_states="normed")
        for name, config in {
            "granite": lambda: tf.GraniteConfig(**SHARED, residual_multiplier=0.5),
            "granitemoe": lambda: tf.GraniteMoeConfig(
                **SHARED, residual_multiplier=0.5, num_local_experts=4, num_experts_per_tok=2
            ),
            "granitemoehybrid": lambda: tf.GraniteMoeHybridConfig(
                **SHARED,
                **MAMBA2,
                residual_multiplier=0.5,
                layer_types=["mamba", "attention", "mamba"],
                num_local_experts=4,
                num_experts_per_tok=2,
                shared_intermediate_size=16,
            ),
            "gemma4_text": lambda: tf.Gemma4TextConfig(
                **GROUPED,
                global_head_dim=8,
                sliding_window=4,
                layer_types=["sliding_attention", "full_attention", "full_attention"],
                hidden_size_per_layer_input=0,  # where a model has them, they come from beside the stream
            ),
        }.items()
    },
    "bamba": Tiny(
        lambda: tf.BambaConfig(**SHARED, **MAMBA2, attn_layer_indices=[1]),
        kind="bytes",
        hidden_states="normed",
        update=("attention", ".mamba", "mlp"),
    ),
    "nemotron_h": Tiny(
        lambda: tf.NemotronHConfig(
            **{name: value for name, value in GROUPED.items() if name != "num_hidden_layers"},
            layers_block_type=["mamba", "attention", "mlp", "moe"],
            mamba_num_heads=4,
            mamba_head_dim=8,
            n_groups=1,
            ssm_state_size=4,
            chunk_size=8,
            n_routed_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=16,
            moe_shared_expert_intermediate_size=16,
            n_group=1,
            topk_group=1,
        ),
        kind="bytes",
        hidden_states="normed",
        update=("block",),
    ),
    "recurrent_gemma": Tiny(
        lambda: tf.RecurrentGemmaConfig(
            **GROUPED, lru_width=WIDTH, attention_window_size=16, block_types=["recurrent", "attention"]
        ),
        kind="spaces",
        hidden_states="normed",
        update=("attention", ".temporal_block.linear_out", "mlp"),
    ),
    **{
        name: Tiny(config, kind="bytes", hidden_states="normed", update=("attention", ".linear_attn", "mlp"))
        for name, config in {
            "qwen3_next": lambda: tf.Qwen3NextConfig(
                **GATED_DELTA, **EXPERTS, shared_expert_intermediate_size=16
            ),
            "qwen3_5_text": lambda: tf.Qwen3_5TextConfig(**GATED_DELTA),
            "qwen3_5_moe_text": lambda: tf.Qwen3_5MoeTextConfig(
                **GATED_DELTA, **EXPERTS, shared_expert_intermediate_size=16
            ),
        }.items()
    },
    "lfm2": Tiny(
        lambda: tf.Lfm2Config(
            **SHARED, layer_types=["conv", "full_attention", "conv"], block_auto_adjust_ff_dim=False
        ),
        kind="bytes",
        hidden_states="normed",
        update=("attention", ".conv", "mlp"),
    ),
    "lfm2_moe": Tiny(
        lambda: tf.Lfm2MoeConfig(
            **SHARED, **EXPERTS, layer_types=["conv", "full_attention", "conv"], num_dense_layers=1
        ),
        kind="bytes",
        hidden_states="normed",
        update=("attention", ".conv", "mlp"),
    ),
    "falcon_h1": Tiny(
        lambda: tf.FalconH1Config(
            **SHARED,
            mamba_d_ssm=32,
            mamba_n_heads=4,
            mamba_d_head=8,
            mamba_n_groups=1,
            mamba_d_state=4,
            mamba_chunk_size=8,
            attention_out_multiplier=0.5,
            ssm_out_multiplier=2.0,
        ),
        kind="spaces",
        hidden_states="normed",
    ),
    "jamba": Tiny(
        lambda: tf.JambaConfig(
            **SHARED | {"num_hidden_layers": 4},
            attn_layer_period=2,
            attn_layer_offset=1,
            expert_layer_period=2,
            expert_layer_offset=1,
            num_experts=4,
            mamba_d_state=4,
            mamba_dt_rank=4,
        ),
        kind="spaces",
        hidden_states="normed",
        update=("attention", ".mamba", "mlp"),
    ),
    "gemma": Tiny(lambda: tf.GemmaConfig(**GROUPED), kind="spaces", hidden_states="normed", update=ADDED),
    "gemma2": Tiny(
        lambda: tf.Gemma2Config(**GROUPED, sliding_window=4),
        kind="spaces",
        hidden_states="normed",
        update=ADDED,
    ),
    "gemma3_text": Tiny(
        lambda: tf.Gemma3TextConfig(
            **GROUPED,
            sliding_window=4,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        ),
        kind="spaces",
        hidden_states="normed",
        update=ADDED,
    ),
    "gemma3": Tiny(
        lambda: tf.Gemma3Config(
            text_config=tf.Gemma3TextConfig(**GROUPED, sliding_window=4),
            vision_config={
                "hidden_size": 16,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "image_size": 28,
            }
            | {"patch_size": 14, "intermediate_size": 16},
            mm_tokens_per_image=4,
        ),
        kind="spaces",
        hidden_states="normed",
        update=ADDED,
    ),
    "thinkalike_nano_decoder": Tiny(lambda: _nano(), kind="bytes", hidden_states="normed", update=ADDED),
    "mamba": Tiny(
        lambda: tf.MambaConfig(hidden_size=WIDTH, num_hidden_layers=3, vocab_size=N_TOKENS, state_size=4),
        kind="bytes",
        hidden_states="shifted",
        update=("block",),
    ),
    "falcon_mamba": Tiny(
        lambda: tf.FalconMambaConfig(
            hidden_size=WIDTH, num_hidden_layers=3, vocab_size=N_TOKENS, state_size=4
        ),
        kind="bytes",
        hidden_states="shifted",
        update=("block",),
    ),
    "mamba2": Tiny(
        lambda: tf.Mamba2Config(
            hidden_size=WIDTH,
            num_hidden_layers=3,
            vocab_size=N_TOKENS,
            state_size=4,
            head_dim=8,
            num_heads=8,
            n_groups=2,
            chunk_size=8,
        ),
        kind="bytes",
        hidden_states="shifted",
        update=("block",),
    ),
    "rwkv": Tiny(
        lambda: tf.RwkvConfig(
            hidden_size=WIDTH,
            num_hidden_layers=3,
            vocab_size=N_TOKENS,
            attention_hidden_size=WIDTH,
            context_length=64,
            rescale_every=0,
        ),
        kind="bytes",
        hidden_states="shifted",
        update=ADDED,
    ),
    "t5, encoder": Tiny(lambda: _t5(), kind="spaces", part="encoder", hidden_states="normed", update=ADDED),
    "t5, decoder": Tiny(lambda: _t5(), kind="spaces", part="decoder", hidden_states="normed"),
    "mt5, encoder": Tiny(
        lambda: tf.MT5Config(**_t5().to_diff_dict() | {"model_type": "mt5"}),
        kind="spaces",
        part="encoder",
        hidden_states="normed",
        update=ADDED,
    ),
    "umt5, encoder": Tiny(
        lambda: tf.UMT5Config(**_t5().to_diff_dict() | {"model_type": "umt5"}),
        kind="spaces",
        part="encoder",
        hidden_states="normed",
        update=ADDED,
    ),
    **{
        f"{name}, encoder": Tiny(config, kind="bytes", part="encoder", hidden_states="normed", update=ADDED)
        for name, config in {
            "mbart": lambda: tf.MBartConfig(**TWO_STACKS, max_position_embeddings=64),
            "blenderbot": lambda: tf.BlenderbotConfig(**TWO_STACKS, max_position_embeddings=64),
            "m2m_100": lambda: tf.M2M100Config(**TWO_STACKS, max_position_embeddings=64),
            "pegasus": lambda: tf.PegasusConfig(**TWO_STACKS, max_position_embeddings=64),
        }.items()
    },
    "mbart, decoder": Tiny(
        lambda: tf.MBartConfig(**TWO_STACKS, max_position_embeddings=64),
        kind="bytes",
        part="decoder",
        hidden_states="normed",
    ),
    "marian, encoder": Tiny(
        lambda: tf.MarianConfig(**TWO_STACKS, max_position_embeddings=64),
        kind="bytes",
        part="encoder",
        norms=("self_attn_layer_norm", "final_layer_norm"),
    ),
    "bart, encoder": Tiny(
        lambda: tf.BartConfig(**TWO_STACKS, max_position_embeddings=64),
        kind="bytes",
        part="encoder",
        norms=("self_attn_layer_norm", "final_layer_norm"),
    ),
    "bart, decoder": Tiny(
        lambda: tf.BartConfig(**TWO_STACKS, max_position_embeddings=64), kind="bytes", part="decoder"
    ),
    "vit": Tiny(
        lambda: tf.ViTConfig(
            hidden_size=WIDTH,
            num_hidden_layers=3,
            num_attention_heads=4,
            intermediate_size=48,
            image_size=32,
            patch_size=8,
        ),
        kind="image",
        norm_hidden=True,
        update=ADDED,
    ),
    **{
        name: Tiny(config, kind="image", norm_hidden=True, update=ADDED)
        for name, config in {
            "deit": lambda: tf.DeiTConfig(**TOWER, image_size=32, patch_size=8),
            "ijepa": lambda: tf.IJepaConfig(**TOWER, image_size=32, patch_size=8),
            "dinov2_with_registers": lambda: tf.Dinov2WithRegistersConfig(
                hidden_size=WIDTH,
                num_hidden_layers=3,
                num_attention_heads=4,
                mlp_ratio=2,
                image_size=32,
                patch_size=8,
                layerscale_value=0.5,
                num_register_tokens=2,
            ),
            "dinov3_vit": lambda: tf.DINOv3ViTConfig(
                **TOWER, image_size=32, patch_size=8, layerscale_value=0.5, num_register_tokens=2
            ),
        }.items()
    },
    "swin": Tiny(
        lambda: tf.SwinConfig(
            image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4
        ),
        kind="image",
        norm_hidden=True,
    ),
    "dinov2": Tiny(
        lambda: tf.Dinov2Config(
            hidden_size=WIDTH,
            num_hidden_layers=3,
            num_attention_heads=4,
            mlp_ratio=2,
            image_size=32,
            patch_size=8,
            layerscale_value=0.5,
        ),
        kind="image",
        norm_hidden=True,
        update=ADDED,
    ),
    "clip, text": Tiny(lambda: _clip(), kind="spaces", part="text", norm_hidden=True, update=ADDED),
    "clip, vision": Tiny(lambda: _clip(), kind="image", part="vision", update=ADDED),
    "clip_text_model": Tiny(
        lambda: tf.CLIPTextConfig(**SIZES), kind="spaces", norm_hidden=True, update=ADDED
    ),
    "clip_vision_model": Tiny(
        lambda: tf.CLIPVisionConfig(**TOWER, image_size=32, patch_size=8), kind="image", update=ADDED
    ),
    "siglip, text": Tiny(lambda: _siglip(), kind="spaces", part="text", norm_hidden=True, update=ADDED),
    "siglip, vision": Tiny(lambda: _siglip(), kind="image", part="vision", norm_hidden=True, update=ADDED),
    "siglip_vision_model": Tiny(
        lambda: tf.SiglipVisionConfig(**TOWER, image_size=32, patch_size=8),
        kind="image",
        norm_hidden=True,
        update=ADDED,
    ),
    "convnextv2": Tiny(
        lambda: tf.ConvNextV2Config(hidden_sizes=[8, 16, 24, WIDTH], depths=[1, 1, 2, 1], patch_size=2),
        kind="image",
    ),
    "resnet": Tiny(
        lambda: tf.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 16, WIDTH], depths=[1, 2, 1], layer_type="basic"
        ),
        kind="image",
    ),
    "convnext": Tiny(
        lambda: tf.ConvNextConfig(
            hidden_sizes=[8, 16, 24, WIDTH], depths=[1, 1, 2, 1], patch_size=2, layer_scale_init_value=1.0
        ),
        kind="image",
    ),
    "wav2vec2": Tiny(
        lambda: tf.Wav2Vec2Config(**SPEECH), kind="audio", norms=("layer_norm", "final_layer_norm")
    ),
    "wav2vec2, pre-norm": Tiny(
        lambda: tf.Wav2Vec2Config(**SPEECH, do_stable_layer_norm=True, feat_extract_norm="layer"),
        kind="audio",
        norm_hidden=True,
        update=ADDED,
    ),
    "hubert": Tiny(lambda: tf.HubertConfig(**SPEECH), kind="audio", norms=("layer_norm", "final_layer_norm")),
    "unispeech-sat": Tiny(
        lambda: tf.UniSpeechSatConfig(**SPEECH), kind="audio", norms=("layer_norm", "final_layer_norm")
    ),
    "data2vec-audio": Tiny(
        lambda: tf.Data2VecAudioConfig(**SPEECH), kind="audio", norms=("layer_norm", "final_layer_norm")
    ),
    "wavlm": Tiny(lambda: tf.WavLMConfig(**SPEECH), kind="audio", norms=("layer_norm", "final_layer_norm")),
    "whisper": Tiny(
        lambda: tf.WhisperConfig(**TWO_STACKS, num_mel_bins=8, max_source_positions=50),
        kind="mel",
        part="encoder",
        hidden_states="normed",
        update=ADDED,
    ),
}
TEXT_KINDS = ("wordpiece", "bytes", "spaces")


def _t5() -> Any:
    return tf.T5Config(
        d_model=WIDTH,
        d_kv=8,
        d_ff=48,
        num_layers=3,
        num_decoder_layers=2,
        num_heads=4,
        vocab_size=N_TOKENS,
        pad_token_id=0,
        eos_token_id=3,
        decoder_start_token_id=0,
    )


def _clip() -> Any:
    vision = {**TOWER, "image_size": 32, "patch_size": 8}
    return tf.CLIPConfig(text_config=dict(SIZES), vision_config=vision, projection_dim=16)


def _siglip() -> Any:
    vision = {**TOWER, "image_size": 32, "patch_size": 8}
    return tf.SiglipConfig(text_config=dict(SIZES), vision_config=vision)


def _nano() -> Any:
    from thinkalike.systems.bundled.solu import NanoDecoderConfig

    return NanoDecoderConfig(
        vocab_size=N_TOKENS, hidden_size=WIDTH, intermediate_size=48, max_position_embeddings=64
    )


@cache
def build(name: str, dtype: torch.dtype = torch.float32) -> Any:
    """The one model of that name and dtype, which all tests share."""
    if dtype != torch.float32:
        return copy.deepcopy(build(name)).to(dtype)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", r"`torch\.jit\.script` is deprecated", DeprecationWarning
        )  # DeBERTa
        model = tf.AutoModel.from_config(TINY[name].config()).eval()
    with torch.no_grad():  # very small initial weights would hide differences between layers
        for parameter in model.parameters():
            if parameter.ndim > 1 and parameter.std() < 0.05:
                parameter.mul_(3.0)
    return model


@cache
def tokenizer(kind: str, *, specials: bool = True) -> Any:
    """A fast tokenizer as BERT's ("wordpiece"), GPT-2's ("bytes") or Llama's and T5's ("spaces")."""
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    if kind == "wordpiece":
        core = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        core.normalizer = normalizers.BertNormalizer(lowercase=True)
        core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer: Any = trainers.WordPieceTrainer(vocab_size=200, special_tokens=names)
    elif kind == "bytes":
        core = Tokenizer(models.BPE())
        core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        core.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=N_TOKENS, special_tokens=names, initial_alphabet=alphabet)
    else:
        core = Tokenizer(models.Unigram())
        core.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=names, unk_token="[UNK]")
    core.train_from_iterator(TEXTS, trainer)
    if specials and kind == "wordpiece":
        core.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    marks = {"cls_token": "[CLS]", "sep_token": "[SEP]"} if kind == "wordpiece" else {}
    if kind != "wordpiece":
        marks = {"bos_token": "[CLS]", "eos_token": "[SEP]"}
    return tf.PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]", pad_token="[PAD]", **marks)


def processor(kind: str) -> Any:
    if kind == "image":
        return tf.ViTImageProcessorPil(size={"height": 32, "width": 32})
    if kind == "audio":
        return tf.Wav2Vec2FeatureExtractor()
    if kind == "mel":
        return tf.WhisperFeatureExtractor(feature_size=8, chunk_length=1)
    return tokenizer(kind)


@dataclass(frozen=True)
class Case:
    """One architecture, ready to run."""

    name: str
    tiny: Tiny
    dtype: torch.dtype = torch.float32

    @property
    def model(self) -> Any:
        return build(self.name, self.dtype)

    @property
    def stack(self) -> Stack:
        return layers_of(self.model, part=self.tiny.part)

    @property
    def processor(self) -> Any:
        return processor(self.tiny.kind)

    @property
    def has_norm(self) -> bool:
        return self.tiny.hidden_states != "all" or self.tiny.norm_hidden

    def inputs(self, seed: int = 0) -> dict[str, torch.Tensor]:
        """What to call `stack.model` with: two random inputs of equal length."""
        rng = torch.Generator().manual_seed(seed)
        if self.tiny.kind == "image":
            return {"pixel_values": torch.randn(2, 3, 32, 32, generator=rng)}
        if self.tiny.kind == "audio":
            return {"input_values": torch.randn(2, 800, generator=rng)}
        if self.tiny.kind == "mel":
            return {"input_features": torch.randn(2, 8, 100, generator=rng)}
        ids = torch.randint(5, N_TOKENS, (2, 11), generator=rng)
        return {"input_ids": ids, **({"decoder_input_ids": ids} if self.tiny.part == "decoder" else {})}


def _cases(wanted: Callable[[Tiny], Any]) -> Any:
    names = [name for name, tiny in TINY.items() if wanted(tiny)]
    return pytest.fixture(params=names)(lambda request: Case(request.param, TINY[request.param]))


case = _cases(lambda tiny: True)
text_case = _cases(lambda tiny: tiny.kind in TEXT_KINDS)
stored_case = _cases(lambda tiny: tiny.kind in TEXT_KINDS and tiny.part != "decoder")
signal_case = _cases(lambda tiny: tiny.kind not in TEXT_KINDS)
pre_norm_case = _cases(lambda tiny: tiny.update)
post_norm_case = _cases(lambda tiny: tiny.norms)


@pytest.fixture
def one_case() -> Callable[[str], Case]:
    """One architecture by name."""
    return lambda name: Case(name, TINY[name])


@pytest.fixture
def tested_model_types() -> set[str]:
    return {tiny.config().model_type for tiny in TINY.values()}


@pytest.fixture
def make_tokenizer() -> Callable[..., Any]:
    return tokenizer


@pytest.fixture(scope="session")
def gpt2_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `save_pretrained` leaves it, with a checkpoint of other weights in it."""
    folder = tmp_path_factory.mktemp("models") / "tiny-gpt2"
    model = build("gpt2")
    model.save_pretrained(folder)
    tokenizer("bytes").save_pretrained(folder)
    torch.manual_seed(1)
    tf.GPT2Model(model.config).save_pretrained(folder / "checkpoint-7")
    tokenizer("bytes").save_pretrained(folder / "checkpoint-7")
    return folder


@pytest.fixture
def words_of() -> Callable[..., Stimuli]:
    """Every word of some texts, split at spaces."""

    def make(texts: list[str], **features: Any) -> Stimuli:
        rows = []
        for number, text in enumerate(texts):
            end = 0
            for word in text.split():
                start = text.index(word, end)
                end = start + len(word)
                rows.append(
                    {"sentence": f"s{number}", "text": text, "word": word, "start": start, "end": end}
                )
        return Stimuli.from_table(pd.DataFrame(rows).assign(**features))

    return make


@pytest.fixture
def mixed_texts() -> list[str]:
    """32 texts of 1 to 12 words, some of them equal."""
    rng = np.random.default_rng(0)
    words = " ".join(TEXTS).split()
    texts = [" ".join(rng.choice(words, size=size)) for size in rng.integers(1, 13, size=30)]
    return [*texts, texts[3], texts[7]]
