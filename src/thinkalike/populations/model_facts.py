"""What a model is, from its configuration: the facts that may explain why models are alike."""

from __future__ import annotations

from collections.abc import Sequence

from thinkalike.systems.loading import loading
from thinkalike.types import Config, Json, Value

_SIZES = {
    "depth": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "width": ("hidden_size", "n_embd", "d_model", "dim"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    "vocabulary": ("vocab_size",),
    "context": ("max_position_embeddings", "n_positions", "n_ctx"),
}
"""Fact → what configurations call it"""
_ACTIVATIONS = ("hidden_act", "activation_function", "hidden_activation", "activation", "ffn_act_fn")
_RECURRENT = ("mamba", "mamba2", "rwkv", "falcon_mamba", "recurrent_gemma", "xlstm")
FACTS = ("architecture", *_SIZES, "positions", "activation", "norm", "parameters")


def model_facts(config: Config) -> Json:
    """Architecture, sizes, positions, activation, norm and number of parameters; None where not known."""
    facts: Json = {"architecture": getattr(config, "model_type", None)}
    for fact, names in _SIZES.items():
        facts[fact] = _first(config, names)
    facts["positions"] = positions_of(config)
    facts["activation"] = _first(config, _ACTIVATIONS)
    return {**facts, **_built(config)}


def positions_of(config: Config) -> str | None:
    """How a model knows where a token stands: rotary, alibi, relative, learned, or none."""
    if getattr(config, "model_type", "") in _RECURRENT:
        return "none"
    if any(getattr(config, name, None) for name in ("rope_parameters", "rope_theta", "rope_scaling")):
        return "rotary"
    if getattr(config, "alibi", False) or getattr(config, "model_type", "") in ("bloom", "mpt"):
        return "alibi"
    if getattr(config, "relative_attention_num_buckets", None):
        return "relative"
    kind = getattr(config, "position_embedding_type", None)
    if isinstance(kind, str) and kind != "absolute":
        return kind
    return "learned" if _first(config, _SIZES["context"]) else None


def _first(config: Config, names: Sequence[str]) -> Value:
    found = (getattr(config, name, None) for name in names)
    return next((value for value in found if isinstance(value, (int, str))), None)


def _built(config: Config) -> Json:
    """The number of parameters and the kind of norm, of a model without weights."""
    import torch
    from transformers import AutoModel

    try:
        with loading(), torch.device("meta"):
            model = AutoModel.from_config(config)
    except Exception:  # code that is not ours, of any architecture there is: the facts are then not known
        return {"norm": None, "parameters": None}
    kinds = {type(module).__name__.lower() for module in model.modules()}
    norm = "rms" if any("rmsnorm" in kind for kind in kinds) else None
    norm = norm or ("layer" if any("layernorm" in kind for kind in kinds) else None)
    return {"norm": norm, "parameters": sum(p.numel() for p in model.parameters())}
