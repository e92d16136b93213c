"""What tests of several packages need."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from thinkalike.machine import kernels_directory

# The same examples each time, and none that fails because the machine is busy.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")

# Processes that tests start with a cache of their own need not compile everything anew.
os.environ.setdefault("NUMBA_CACHE_DIR", kernels_directory())

pytest_plugins = ["tests.tiny", "tests.planted", "tests.object_store", "tests.engines"]


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of tiny random models: an encoder, a decoder, a state-space model."""
    import torch
    import transformers as tf

    tokenizer = _byte_tokenizer()
    tokens: dict[str, Any] = {"vocab_size": len(tokenizer), "pad_token_id": 0, "eos_token_id": 1}
    small: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, **tokens}
    configs = {
        "tiny-bert": tf.BertConfig(num_attention_heads=2, intermediate_size=32, **small),
        "tiny-gpt2": tf.GPT2Config(n_embd=16, n_layer=2, n_head=2, bos_token_id=1, **tokens),
        "tiny-mamba": tf.MambaConfig(state_size=4, bos_token_id=1, **small),
    }
    classes: dict[str, Any] = {
        "tiny-bert": tf.AutoModelForMaskedLM,
        "tiny-gpt2": tf.AutoModelForCausalLM,
        "tiny-mamba": tf.AutoModelForCausalLM,
    }
    root = tmp_path_factory.mktemp("models")
    for seed, (name, config) in enumerate(configs.items()):
        torch.manual_seed(seed)
        classes[name].from_config(config).save_pretrained(root / name)
        tokenizer.save_pretrained(root / name)
    return {name: root / name for name in configs}


def _byte_tokenizer() -> Any:
    """Every byte is a token: no training, no download."""
    import transformers as tf
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: k for k, token in enumerate(["<pad>", "<eos>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
