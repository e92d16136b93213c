"""Small models with a truth built into them by hand: one head, expert, latent or state that carries number.

Words are all combinations of four features, four words each; what a word is stands in its embedding, number
in a direction of its own, which nothing reads but the part that carries it.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
import transformers as tf
from tokenizers import Tokenizer, models, pre_tokenizers

from thinkalike.stimuli import Stimuli

WIDTH, N_POSITIONS, HEAD = 64, 16, 16
FEATURES = {
    "number": ("singular", "plural"),
    "tense": ("past", "present"),
    "person": ("first", "third"),
    "mood": ("real", "unreal"),
}
NUMBER = WIDTH - 1
"""The direction of the stream in which number lies; the first ones are positions, the rest is of the words"""
WORDS = {
    f"w{''.join(map(str, levels))}{copy}": levels
    for levels in product((0, 1), repeat=len(FEATURES))
    for copy in "abcd"
}


def stimuli(n_sentences: int = 40, seed: int = 0) -> Stimuli:
    """Sentences of five words each."""
    rng = np.random.default_rng(seed)
    rows = []
    for sentence in range(n_sentences):
        chosen = rng.choice(list(WORDS), size=5)
        for place, word in enumerate(chosen):
            start = place * 7
            named = {name: values[WORDS[word][k]] for k, (name, values) in enumerate(FEATURES.items())}
            rows.append(
                {"sentence": f"s{sentence}", "text": " ".join(chosen), "word": word, "start": start}
                | {"end": start + len(word), **named}
            )
    return Stimuli.from_table(pd.DataFrame(rows))


def tokenizer() -> Any:
    """Every word is a token."""
    vocabulary = {"[PAD]": 0, "[UNK]": 1} | {word: k + 2 for k, word in enumerate(WORDS)}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tf.PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]", pad_token="[PAD]")


def embeddings(rng: torch.Generator) -> torch.Tensor:
    """(n_tokens, WIDTH): the other features and the word itself in the middle, number at the end."""
    directions = torch.randn(len(FEATURES), WIDTH, generator=rng)
    table = torch.zeros(len(WORDS) + 2, WIDTH)
    for row, levels in enumerate(WORDS.values(), start=2):
        table[row] = torch.randn(WIDTH, generator=rng) + sum(
            level * directions[k] for k, level in enumerate(levels) if k > 0
        )
        table[row, :N_POSITIONS] = 0
        table[row, NUMBER] = 6 * levels[0] - 3
    return table


@torch.no_grad()
def with_a_head(block: int, head: int, *, seed: int = 0) -> Any:
    """A GPT-2 of 2 × 4 heads: one looks at its own word and takes its number, the others all but that."""
    rng = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model = tf.GPT2Model(
        tf.GPT2Config(
            n_embd=WIDTH,
            n_layer=2,
            n_head=4,
            n_positions=N_POSITIONS,
            vocab_size=len(WORDS) + 2,
            bos_token_id=None,
            eos_token_id=None,
        )
    ).eval()
    model.wte.weight.copy_(embeddings(rng))
    model.wpe.weight.zero_()
    model.wpe.weight[:, :N_POSITIONS] = 6 * torch.eye(N_POSITIONS)
    for one in model.h:
        one.attn.c_attn.weight.normal_(std=0.3, generator=rng)
        one.attn.c_attn.weight[NUMBER] = 0
        one.mlp.c_fc.weight[NUMBER] = 0
        one.attn.c_proj.weight[:, NUMBER] = 0
        one.mlp.c_proj.weight[:, NUMBER] = 0
    weight = model.h[block - 1].attn.c_attn.weight  # (WIDTH, 3 * WIDTH): queries, keys, values
    weight.view(WIDTH, 3, 4, HEAD)[:, :, head] = 0
    weight.view(WIDTH, 3, 4, HEAD)[:N_POSITIONS, :2, head] = 4 * torch.eye(HEAD)[:, None]
    weight.view(WIDTH, 3, 4, HEAD)[NUMBER, 2, head] = torch.randn(HEAD, generator=rng)
    return model


@torch.no_grad()
def with_an_expert(block: int, expert: int, *, seed: int = 0) -> Any:
    """A mixture of two blocks × four experts: one router sends plurals to one, none else sees number."""
    rng = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model = tf.MixtralModel(
        tf.MixtralConfig(
            hidden_size=WIDTH,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            intermediate_size=32,
            num_local_experts=4,
            num_experts_per_tok=2,
            vocab_size=len(WORDS) + 2,
            max_position_embeddings=64,
            pad_token_id=0,
        )
    ).eval()
    model.embed_tokens.weight.copy_(embeddings(rng))
    for one in model.layers:
        one.mlp.gate.weight.normal_(std=0.2, generator=rng)
        one.mlp.gate.weight[:, NUMBER] = 0
        for name in ("q_proj", "k_proj", "v_proj"):
            getattr(one.self_attn, name).weight[:, NUMBER] = 0
        one.self_attn.o_proj.weight[NUMBER] = 0
        one.mlp.experts.down_proj[:, NUMBER] = 0
    model.layers[block - 1].mlp.gate.weight[expert] = 0
    model.layers[block - 1].mlp.gate.weight[expert, NUMBER] = 6
    return model


@torch.no_grad()
def with_a_state(block: int, *, seed: int = 0) -> Any:
    """A Mamba of two blocks, of which one reads number into its state."""
    rng = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model = tf.MambaModel(
        tf.MambaConfig(
            hidden_size=WIDTH, num_hidden_layers=2, vocab_size=len(WORDS) + 2, state_size=4, expand=1
        )
    ).eval()
    model.embeddings.weight.copy_(embeddings(rng))
    for number, one in enumerate(model.layers, start=1):
        one.mixer.in_proj.weight[:, NUMBER] = 0
        one.mixer.out_proj.weight[NUMBER] = 0
        if number == block:
            one.mixer.in_proj.weight[:WIDTH] = 0
            one.mixer.in_proj.weight[: WIDTH // 2, NUMBER] = torch.randn(WIDTH // 2, generator=rng)
            one.mixer.in_proj.weight[WIDTH // 2 : WIDTH].normal_(std=0.05, generator=rng)
            one.mixer.conv1d.weight[: WIDTH // 2] = 0
            one.mixer.conv1d.weight[: WIDTH // 2, 0, -1] = 1.0  # the word itself
            one.mixer.A_log.fill_(4.0)  # forgets at once
            one.mixer.dt_proj.bias.fill_(1.0)
    return model


def with_a_latent(latent: int, n_latents: int = 16384, *, seed: int = 0) -> Any:
    """An autoencoder of the embeddings: random directions without number, and one latent of number alone."""
    from thinkalike.activations import SparseAutoencoder

    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(WIDTH, n_latents)).astype(np.float32) / np.float32(np.sqrt(WIDTH))
    weights[NUMBER] = 0
    weights[:, latent] = 0
    weights[NUMBER, latent] = 1
    return SparseAutoencoder(weights, np.full(n_latents, -2.0, np.float32), np.zeros(WIDTH, np.float32))
