"""Tiny random models that share one tokenizer, and a few documents for them to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers as tf

WIDTH = 16


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """Every byte is a token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<pad>", "<eos>", "<mask>", "<cls>"]
    core = Tokenizer(models.BPE(vocab={t: k for k, t in enumerate([*special, *alphabet])}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    return tf.PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="<eos>", mask_token="<mask>", cls_token="<cls>"
    )


@pytest.fixture(scope="session")
def make(tokenizer: Any) -> Callable[..., Any]:
    """kind ("gpt2", "bert", "classifier", "mamba", "nano"), seed, width and depth → a model with its head."""

    def build(kind: str, seed: int = 0, *, width: int = WIDTH, layers: int = 2) -> Any:
        tokens: dict[str, Any] = {"vocab_size": len(tokenizer), "pad_token_id": 0, "eos_token_id": 1}
        if kind == "gpt2":
            config: Any = tf.GPT2Config(
                n_embd=width, n_layer=layers, n_head=2, n_positions=64, bos_token_id=1, **tokens
            )
            head: Any = tf.AutoModelForCausalLM
        elif kind == "mamba":
            config = tf.MambaConfig(hidden_size=width, num_hidden_layers=layers, state_size=4, **tokens)
            head = tf.AutoModelForCausalLM
        elif kind == "nano":
            from thinkalike.systems.bundled.solu import NanoDecoderConfig

            sizes: dict[str, Any] = {
                "hidden_size": width,
                "intermediate_size": 32,
                "num_hidden_layers": layers,
            }
            config = NanoDecoderConfig(**sizes, activation="solu", max_position_embeddings=64, **tokens)
            head = tf.AutoModelForCausalLM
        else:
            config = tf.BertConfig(
                hidden_size=width,
                num_hidden_layers=layers,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=64,
                num_labels=3,
                **tokens,
            )
            heads = {"bert": tf.AutoModelForMaskedLM, "classifier": tf.AutoModelForSequenceClassification}
            head = heads[kind]
        torch.manual_seed(seed)
        model = head.from_config(config).eval()
        with torch.no_grad():  # weights as small as at the start of training hide what a block does
            for parameter in model.parameters():
                if parameter.ndim > 1:
                    parameter.mul_(5.0)
        return model

    return build


@pytest.fixture(scope="session")
def documents() -> list[str]:
    return [
        f"Paragraph {k} says that the old woman sings of {k * 7} princes, {k % 5} of them mad."
        for k in range(60)
    ]


@pytest.fixture
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
