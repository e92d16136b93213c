"""A tiny corpus with the features of the real one, and plans that train in a moment."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from training.batches import Tokens
from training.plans import PLANS, Plan
from training.prepare import load_tokens, prepare

NOUNS = ("king", "ship", "whale", "river", "child", "captain", "friend", "city", "letter", "garden")
NAMES = ("Mary", "John")
VERBS = ("saw", "loved", "followed", "knew", "heard", "found", "kept", "brought")


def story(seed: int, n_sentences: int) -> str:
    """Sentences that differ from document to document, in two paragraphs."""
    rng = random.Random(seed)

    def sentence(k: int) -> str:
        first, second = rng.choice(NOUNS), rng.choice(NOUNS)
        if k % 3 == 0:
            return f"The {first} {rng.choice(VERBS)} the {second} of {seed}{k}."
        return f"Then {rng.choice(NAMES)} {rng.choice(VERBS)} the {first} and the {second}."

    made = [sentence(k) for k in range(n_sentences)]
    half = n_sentences // 2
    return " ".join(made[:half]) + "\n\n" + "\n".join(made[half:])


@pytest.fixture(scope="session")
def text_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    for source in ("tales", "letters"):
        (folder / source).mkdir()
        for k in range(8):
            n = 6 if k == 0 else 60
            (folder / source / f"{k}.txt").write_text(story(100 * len(source) + k, n), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def corpus_folder(text_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "corpus"
    prepare(text_folder, folder)
    return folder


@pytest.fixture(scope="session")
def tokens(corpus_folder: Path) -> Tokens:
    return load_tokens(corpus_folder)


SHAPES: dict[str, dict[str, Any]] = {
    "nano-bert": {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    },
    "nano-gpt2": {"n_embd": 16, "n_layer": 1, "n_head": 2},
    "nano-mamba": {"hidden_size": 8, "num_hidden_layers": 1, "state_size": 4, "expand": 2},
    "nano-solu-3l": {
        "activation": "solu",
        "num_hidden_layers": 1,
        "hidden_size": 16,
        "num_attention_heads": 2,
    },
    "nano-pythia-64": {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    },
}


@pytest.fixture
def tiny_plan() -> Callable[..., Plan]:
    """The plan of a model with its real parts, at a size that trains in a moment."""

    def make(name: str, **changes: Any) -> Plan:
        return replace(
            PLANS[name], **{"shape": SHAPES[name], "steps": 20, "warm_up": 4, "revisions": (), **changes}
        )

    return make
