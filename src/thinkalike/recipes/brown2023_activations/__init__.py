"""Figures 1, 4, 5 and 6 of Brown et al. 2023: GeLU against SoLU by stitching."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from thinkalike.recipes.findings import Findings

NAME = "brown2023-activations"
_NANO: dict[str, Any] = {
    # Size → the GeLU and the SoLU model.
    "sizes": {"3 layers": ["nano-gelu-3l", "nano-solu-3l"], "4 layers": ["nano-gelu-4l", "nano-solu-4l"]},
    "second_seeds": ["nano-gelu-3l-seed1", "nano-solu-3l-seed1"],
    "narrow_and_wide": ["nano-pythia-64", "nano-pythia-160"],
    "format": "transformers",
    "text": None,  # the bundled sample
    "max_tokens": 100_000,
    "length": 128,
    # φ as in the paper: LayerNorm and affine, by task loss.
    "kind": "layernorm-affine",
    "steps": 100,
    "warmup": 10,
    "batch_tokens": 512,
    "every": 20,
    "validation_tokens": 2048,
    "cka_batches": 40,
    "n_resamples": 2000,
    "device": "cpu",
    "seed": 0,
}
SCALES: dict[str, dict[str, Any]] = {
    "smoke": {
        **_NANO,
        "sizes": {"3 layers": ["nano-gelu-3l", "nano-solu-3l"]},
        "second_seeds": None,
        "narrow_and_wide": None,
        "max_tokens": 2_000,
        "length": 32,
        "steps": 3,
        "warmup": 1,
        "batch_tokens": 64,
        "every": 1,
        "validation_tokens": 128,
        "cka_batches": 8,
        "n_resamples": 200,
    },
    "nano": _NANO,
    "paper": {
        **_NANO,
        "sizes": {
            "3 layers": ["NeelNanda/GELU_3L512W_C4_Code", "NeelNanda/SoLU_3L512W_C4_Code"],
            "4 layers": ["NeelNanda/GELU_4L512W_C4_Code", "NeelNanda/SoLU_4L512W_C4_Code"],
        },
        "second_seeds": None,  # there are none of these models
        "narrow_and_wide": None,
        "format": "TransformerLens",
        "tokenizer": "NeelNanda/gpt-neox-tokenizer-digits",
        "max_tokens": 20_000_000,
        "length": 1024,
        "steps": 2000,
        "warmup": 200,
        "batch_tokens": 2**18,
        "every": 100,
        "validation_tokens": 65_536,
        "cka_batches": 1000,
    },
}


def run(settings: Mapping[str, Any], out: Path) -> Findings:
    """Stitch the models both ways and judge the paper's statements."""
    from thinkalike.recipes.brown2023_activations.experiment import run_experiment

    return run_experiment(settings, out)
