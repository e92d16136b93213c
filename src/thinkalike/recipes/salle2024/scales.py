"""The settings of `salle2024` at each scale.

transformers, state_space
    The models to compare.
sentences, seed
    Of the probing grammar.
preset
    Of the encoding models; `salle2024` follows the authors' code, and takes ten times as long.
preset_sentences
    How many sentences the two presets are compared on; 0 leaves it out.
interaction_layers
    In how many layers of each model interactions are looked at; 0 for all.
treebank, treebank_sentences
    A CoNLL-U file of natural text, and how many of its sentences to show.
checkpoints
    One model at several steps of its training, the last one finished.
without_positions
    Models whose position embeddings or rotations are set to 0.
"""

from __future__ import annotations

from typing import Any

NANO: dict[str, Any] = {
    "transformers": ["nano-bert", "nano-gpt2"],
    "state_space": "nano-mamba",
    "sentences": 500,
    "seed": 0,
    "preset": "default",
    "preset_sentences": 120,
    "interaction_layers": 0,
    "treebank": None,
    "treebank_sentences": 300,
    "checkpoints": ["nano-pythia-64@step250", "nano-pythia-64@step1000", "nano-pythia-64"],
    "without_positions": ["nano-bert", "nano-gpt2"],
}
PAPER: dict[str, Any] = {
    **NANO,
    "transformers": ["bert-base-uncased", "gpt2"],
    "state_space": "state-spaces/mamba-130m-hf",
    "checkpoints": [
        "EleutherAI/pythia-160m-deduped@step512",
        "EleutherAI/pythia-160m-deduped@step8000",
        "EleutherAI/pythia-160m-deduped",
    ],
    "without_positions": ["bert-base-uncased", "gpt2"],
}
SMOKE: dict[str, Any] = {
    **NANO,
    "sentences": 40,
    "preset_sentences": 0,
    "interaction_layers": 2,
    "without_positions": ["nano-gpt2"],
}
SCALES: dict[str, dict[str, Any]] = {"smoke": SMOKE, "nano": NANO, "paper": PAPER}
