"""The settings of `brown2023-scaling` at each scale.

family
    The members, the smallest first; all read the same tokens.
odd
    The member that is off the trend of the family's architecture.
checkpoints
    One member at several steps of its training, the last one finished.
state_space, beside
    A state-space model, and a Transformer of similar size to set beside it.
text
    A text file, or a folder of them; the bundled sample if None.
length, max_batches
    Tokens of a passage, which is a batch as in the paper; how many passages to read.
at_once
    Whether all members are in memory together; otherwise two at a time.
controls
    Whether to look at untrained copies, and at passages without their first token.
loss_tokens
    How much of the text the loss is measured on.
dtype
    Of the weights.
"""

from __future__ import annotations

from typing import Any

NANO: dict[str, Any] = {
    "family": ["nano-pythia-64", "nano-pythia-96", "nano-pythia-128", "nano-pythia-160"],
    "odd": "nano-pythia-128",
    "checkpoints": ["nano-pythia-64@step250", "nano-pythia-64@step1000", "nano-pythia-64"],
    "state_space": "nano-mamba",
    "beside": "nano-gpt2",
    "text": None,
    "length": 256,
    "max_batches": 300,
    "at_once": True,
    "controls": True,
    "loss_tokens": 20_000,
    "dtype": "float32",
    "seed": 0,
}
_SIZES = ("70m", "160m", "410m", "1b", "1.4b", "2.8b", "6.9b")
PAPER: dict[str, Any] = {
    **NANO,
    "family": [f"EleutherAI/pythia-{size}-deduped" for size in _SIZES],
    "odd": "EleutherAI/pythia-2.8b-deduped",
    "checkpoints": [
        "EleutherAI/pythia-410m-deduped@step512",
        "EleutherAI/pythia-410m-deduped@step4000",
        "EleutherAI/pythia-410m-deduped@step32000",
        "EleutherAI/pythia-410m-deduped",
    ],
    "state_space": "state-spaces/mamba-1.4b-hf",
    "beside": "EleutherAI/pythia-1.4b-deduped",
    "length": 1024,
    "max_batches": 1000,
    "at_once": False,
}
SMOKE: dict[str, Any] = {**NANO, "length": 64, "max_batches": 12, "controls": False, "loss_tokens": 600}
SCALES: dict[str, dict[str, Any]] = {"smoke": SMOKE, "nano": NANO, "paper": PAPER}
