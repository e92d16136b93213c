"""What is trained: the shape, the seed and the schedule of each bundled model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from thinkalike.errors import UnknownName
from training.tokens import CONTEXT, VOCABULARY

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

PAD, CLS, SEP, EOS = 0, 1, 2, 4  # ids in the shared vocabulary
_CAUSAL_IDS: dict[str, Any] = {"bos_token_id": None, "eos_token_id": EOS, "pad_token_id": PAD}


@dataclass(frozen=True)
class Plan:
    """One model: how to build it, what it predicts, and how it is trained."""

    build: Callable[..., PreTrainedModel]
    shape: dict[str, Any]
    steps: int
    task: Literal["causal", "masked"] = "causal"
    seed: int = 0
    matrix_rate: float = 0.02  # Muon, for the matrices inside the blocks
    rate: float = 0.003  # AdamW, for all else
    warm_up: int = 100
    decay: float = 0.25  # the last share of the steps, linear to zero
    short_steps: int = 0  # steps at the start whose rows are cut into pieces of 32 tokens
    masked_share: tuple[float, float] = (0.4, 0.15)  # of the tokens, at the level rate and at the very end
    revisions: tuple[int, ...] = field(default=())  # steps whose weights are kept as well


def _bert(**shape: Any) -> PreTrainedModel:
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    rotary = {"rope_type": "default", "rope_theta": 10000.0}
    config = ModernBertConfig(
        vocab_size=VOCABULARY,
        max_position_embeddings=CONTEXT,
        layer_types=["full_attention"] * shape["num_hidden_layers"],
        local_attention=2 * CONTEXT,  # for transformers 5.0, which knows no layer_types
        rope_parameters={"full_attention": rotary, "sliding_attention": rotary},
        pad_token_id=PAD,
        cls_token_id=CLS,
        sep_token_id=SEP,
        bos_token_id=None,
        eos_token_id=None,
        **shape,
    )
    return ModernBertForMaskedLM(config)


def _fix_sinusoids(weight: torch.Tensor, *, scale: float = 0.1) -> None:
    """Set the position embeddings to the code of Vaswani et al. (2017), which training does not change.

    A model goes beyond bigrams when its heads find the neighbours. Among random positions it must learn that
    for each of 256 places, which takes long; here a neighbour is one rotation away.
    """
    import torch

    n_positions, width = weight.shape
    rates = torch.exp(-math.log(n_positions) * torch.arange(0, width, 2) / width)
    angles = torch.arange(n_positions)[:, None] * rates
    with torch.no_grad():
        weight.copy_(scale * math.sqrt(2) * torch.cat([angles.sin(), angles.cos()], dim=1))
    weight.requires_grad_(False)


def _gpt2(*, positions: Literal["sinusoids", "none"] = "sinusoids", **shape: Any) -> PreTrainedModel:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=CONTEXT,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        activation_function="gelu_pytorch_tanh",  # the same function as gelu_new, in one kernel
        **_CAUSAL_IDS,
        **shape,
    )
    model = GPT2LMHeadModel(config)
    if positions == "sinusoids":
        _fix_sinusoids(model.transformer.wpe.weight)
    else:  # where a word stands is then known only from what the causal mask hides
        torch.nn.init.zeros_(model.transformer.wpe.weight).requires_grad_(False)
    return model


def _rotary_gpt2(*, n_embd: int, n_layer: int, n_head: int) -> PreTrainedModel:
    """GPT-2's blocks with rotary positions: GPT-NeoX with its two branches one after the other."""
    import torch

    model = _neox(
        hidden_size=n_embd,
        intermediate_size=4 * n_embd,
        num_hidden_layers=n_layer,
        num_attention_heads=n_head,
        use_parallel_residual=False,
        hidden_act="gelu_pytorch_tanh",
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
    )
    for name, weight in model.named_parameters():
        if name.endswith(("dense.weight", "dense_4h_to_h.weight")):  # GPT-2 starts these smaller
            torch.nn.init.normal_(weight, std=0.02 / math.sqrt(2 * n_layer))
    return model


def _mamba(**shape: Any) -> PreTrainedModel:
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(
        vocab_size=VOCABULARY, tie_word_embeddings=True, initializer_range=0.02, **_CAUSAL_IDS, **shape
    )
    return MambaForCausalLM(config)


def _neox(**shape: Any) -> PreTrainedModel:
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    usual: dict[str, Any] = {
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25},
        "hidden_act": "gelu",
    }
    config = GPTNeoXConfig(
        vocab_size=VOCABULARY,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        **_CAUSAL_IDS,
        **(usual | shape),
    )
    return GPTNeoXForCausalLM(config)


def _decoder(**shape: Any) -> PreTrainedModel:
    from thinkalike.systems.bundled.solu import NanoDecoderConfig, NanoDecoderForCausalLM

    model = NanoDecoderForCausalLM(NanoDecoderConfig(vocab_size=VOCABULARY, **shape))
    _fix_sinusoids(model.model.embed_positions.weight)
    return model


def _nanda(activation: str, layers: int, seed: int = 0) -> Plan:
    return Plan(
        _decoder,
        {"activation": activation, "num_hidden_layers": layers},
        steps=2500,
        seed=seed,
        short_steps=400,
    )


def _pythia(width: int, layers: int, heads: int, **changes: Any) -> Plan:
    shape = {
        "hidden_size": width,
        "intermediate_size": 3 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
    }
    return Plan(_neox, shape, steps=5500, short_steps=400, **changes)


_TRANSFORMER = {"hidden_size": 128, "num_hidden_layers": 6, "num_attention_heads": 4}
_BERT = Plan(_bert, {**_TRANSFORMER, "intermediate_size": 320}, steps=7000, task="masked", short_steps=400)
_GPT2 = Plan(_gpt2, {"n_embd": 128, "n_layer": 6, "n_head": 4}, steps=5500, short_steps=400)
_MAMBA = Plan(
    _mamba, {"hidden_size": 128, "num_hidden_layers": 12, "state_size": 16, "expand": 2}, steps=1500
)

PLANS: dict[str, Plan] = {
    "nano-bert": _BERT,
    "nano-gpt2": _GPT2,
    "nano-mamba": _MAMBA,
    # What comes from positions, and what from the seed: each differs from its model above in that alone.
    "nano-gpt2-nopos": replace(_GPT2, shape={**_GPT2.shape, "positions": "none"}),
    "nano-gpt2-rotary": replace(_GPT2, build=_rotary_gpt2),
    "nano-gpt2-seed1": replace(_GPT2, seed=1),
    "nano-mamba-seed1": replace(_MAMBA, seed=1),
    "nano-bert-seed1": replace(_BERT, seed=1),
    "nano-gelu-3l": _nanda("gelu", 3),
    "nano-solu-3l": _nanda("solu", 3),
    "nano-gelu-3l-seed1": _nanda("gelu", 3, seed=1),
    "nano-solu-3l-seed1": _nanda("solu", 3, seed=1),
    "nano-gelu-4l": _nanda("gelu", 4),
    "nano-solu-4l": _nanda("solu", 4),
    # Heads of 32 units, but 16 in the third: the one off the trend, as pythia-2.8b is.
    # The smallest learns at higher rates, as in Pythia: at those of the others it did not learn to invert.
    "nano-pythia-64": _pythia(64, 2, 2, rate=0.01, matrix_rate=0.05, revisions=(250, 1000)),
    "nano-pythia-96": _pythia(96, 3, 3),
    "nano-pythia-128": _pythia(128, 4, 8),
    "nano-pythia-160": _pythia(160, 5, 5),
}


def plan(name: str) -> Plan:
    """The plan of a model by its name."""
    if name not in PLANS:
        raise UnknownName.among("plan for a model", name, PLANS)
    return PLANS[name]
