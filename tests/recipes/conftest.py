"""What tests of several recipes need."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Save = Callable[[str, Any, str], Path]


@pytest.fixture
def save_tiny(tmp_path: Path, tiny_models: dict[str, Path]) -> Save:
    """Save a tiny random model of a config under a name in a folder, with the tokenizer of bytes."""
    import torch
    import transformers as tf

    def save(name: str, config: Any, head: str = "AutoModelForCausalLM", seed: int = 0) -> Path:
        place = tmp_path / "models" / name
        torch.manual_seed(seed)
        getattr(tf, head).from_config(config).save_pretrained(place)
        for path in tiny_models["tiny-gpt2"].glob("*token*"):
            shutil.copy(path, place)
        return place

    return save  # type: ignore[return-value]


def neox(width: int, layers: int, heads: int, *, vocab_size: int = 258) -> Any:
    """The configuration of a tiny Pythia."""
    import transformers as tf

    return tf.GPTNeoXConfig(
        vocab_size=vocab_size,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=2 * width,
        max_position_embeddings=128,
        bos_token_id=1,
        eos_token_id=1,
        pad_token_id=0,
    )


@pytest.fixture
def tiny_neox() -> Callable[..., Any]:
    return neox
