"""Models in the format of TransformerLens, such as Nanda's `GELU_3L512W_C4_Code`, as our own decoder.

A folder has `config.json` with the sizes, and the weights under TransformerLens' names in `*final.pth`:
`embed.W_E` (vocabulary, width), `pos_embed.W_pos`, `blocks.K.attn.W_Q` (heads, width, units of a head), …,
`unembed.W_U` (width, vocabulary).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thinkalike.errors import ModelError
from thinkalike.recipes.places import locate

if TYPE_CHECKING:
    import torch
    from torch import nn

    from thinkalike.systems.bundled.solu import NanoDecoderForCausalLM

ACTIVATIONS = {"gelu": "gelu", "solu_ln": "solu"}
FILES = ["config.json", "*final.pth"]


def load_lens(folder: Path) -> nn.Module:
    """The decoder in `folder`, in float32 and ready to run; refused if it has a part that ours has not."""
    import torch

    weights = sorted(folder.glob("*final.pth"))
    if not weights:
        raise ModelError(f"{folder} has no weights of TransformerLens: a file *final.pth was expected there.")
    sizes = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = _empty_decoder(sizes, folder)
    state = torch.load(weights[0], map_location="cpu", weights_only=True)
    ours = convert(state, sizes)
    missing = sorted(set(model.state_dict()) ^ set(ours))
    if missing:
        raise ModelError(f"The weights in {folder} do not fit its config.json: {missing[0]} is in one only.")
    model.load_state_dict(ours)
    return model.eval()


def fetch(name: str, folder: str | Path | None) -> Path:
    """FOLDER/NAME if a folder of models is given, else the files of the hub."""
    if folder is not None:
        return Path(locate(name, folder))
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=FILES))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{name} could not be fetched from the hub ({type(error).__name__}): with a network try again, "
            "or give a folder that holds it with --models."
        ) from error


def _empty_decoder(sizes: Mapping[str, Any], folder: Path) -> NanoDecoderForCausalLM:
    import torch

    from thinkalike.systems.bundled.solu import NanoDecoderConfig, NanoDecoderForCausalLM

    activation = ACTIVATIONS.get(str(sizes["act_fn"]).lower())
    odd = [key for key in ("shortformer_pos", "attn_only", "final_rms", "gated_mlp") if sizes.get(key)]
    if activation is None or odd or sizes["n_heads"] * sizes["d_head"] != sizes["d_model"]:
        what = f"the activation {sizes['act_fn']}" if activation is None else (odd or ["unequal heads"])[0]
        raise ModelError(f"The model in {folder} has {what}, which our decoder has not.")
    config = NanoDecoderConfig(
        vocab_size=sizes["d_vocab"],
        hidden_size=sizes["d_model"],
        intermediate_size=sizes["d_mlp"],
        num_hidden_layers=sizes["n_layers"],
        num_attention_heads=sizes["n_heads"],
        max_position_embeddings=sizes["n_ctx"],
        activation=activation,
        layer_norm_eps=sizes.get("eps", 1e-5),
        tie_word_embeddings=False,
    )
    model = NanoDecoderForCausalLM(config)
    model.lm_head = torch.nn.Linear(config.hidden_size, config.vocab_size)  # ours has no bias, theirs does
    return model


def convert(state: Mapping[str, torch.Tensor], sizes: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Weights under TransformerLens' names → under those of our decoder."""
    import torch

    state = {name: value.float() for name, value in state.items()}
    found = {
        "model.embed_tokens.weight": state["embed.W_E"],
        "model.embed_positions.weight": state["pos_embed.W_pos"],
        "lm_head.weight": state["unembed.W_U"].T,
        "lm_head.bias": state.get("unembed.b_U", torch.zeros(state["unembed.W_U"].shape[1])),
        **_norm(state, "ln_final", "model.norm"),
    }
    for k in range(sizes["n_layers"]):
        theirs, ours = f"blocks.{k}", f"model.layers.{k}"
        found |= _norm(state, f"{theirs}.ln1", f"{ours}.attention_norm")
        found |= _norm(state, f"{theirs}.ln2", f"{ours}.mlp_norm")
        # (heads, width, head) → rows of all heads one after the other, as nn.Linear has them
        parts = [state[f"{theirs}.attn.W_{which}"].transpose(1, 2).flatten(0, 1) for which in "QKV"]
        biases = [state[f"{theirs}.attn.b_{which}"].flatten() for which in "QKV"]
        found |= {
            f"{ours}.attention.qkv.weight": torch.cat(parts),
            f"{ours}.attention.qkv.bias": torch.cat(biases),
            f"{ours}.attention.out.weight": state[f"{theirs}.attn.W_O"].flatten(0, 1).T,
            f"{ours}.attention.out.bias": state[f"{theirs}.attn.b_O"],
            f"{ours}.mlp.up.weight": state[f"{theirs}.mlp.W_in"].T,
            f"{ours}.mlp.up.bias": state[f"{theirs}.mlp.b_in"],
            f"{ours}.mlp.down.weight": state[f"{theirs}.mlp.W_out"].T,
            f"{ours}.mlp.down.bias": state[f"{theirs}.mlp.b_out"],
        }
        if f"{theirs}.mlp.ln.w" in state:
            found |= _norm(state, f"{theirs}.mlp.ln", f"{ours}.mlp.norm")
    return found


def _norm(state: Mapping[str, torch.Tensor], theirs: str, ours: str) -> dict[str, torch.Tensor]:
    return {f"{ours}.weight": state[f"{theirs}.w"], f"{ours}.bias": state[f"{theirs}.b"]}
