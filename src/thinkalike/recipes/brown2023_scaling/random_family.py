"""A family of tiny GPT-NeoX models with random weights, to try the recipe where no family is at hand."""

from __future__ import annotations

from pathlib import Path

from thinkalike.progress import without_bars
from thinkalike.systems import bundled

SHAPES = {"random-32": (32, 4, 2), "random-48": (48, 4, 6), "random-64": (64, 5, 4)}
"""Name → width, blocks, heads; the heads of the second are the odd ones"""
ODD = "random-48"


def random_family(folder: Path) -> None:
    """Save the models of `SHAPES` into `folder` unless they are there."""
    import torch
    from transformers import AutoTokenizer, GPTNeoXConfig, GPTNeoXForCausalLM

    place = bundled.resolve("nano-gpt2")
    assert place is not None
    tokenizer = AutoTokenizer.from_pretrained(place, local_files_only=True)
    for seed, (name, (width, layers, heads)) in enumerate(SHAPES.items()):
        if (folder / name / "model.safetensors").exists():
            continue
        config = GPTNeoXConfig(
            vocab_size=len(tokenizer),
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            intermediate_size=2 * width,
            max_position_embeddings=256,
            bos_token_id=tokenizer.eos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
        with torch.random.fork_rng(), without_bars():
            torch.manual_seed(seed)
            GPTNeoXForCausalLM(config).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
