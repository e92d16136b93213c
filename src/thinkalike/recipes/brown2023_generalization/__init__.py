"""Figures 2, 7 and 8 of Brown et al. 2023: classifiers that agree in distribution and differ out of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from thinkalike.recipes.findings import Findings

NAME = "brown2023-generalization"
_NANO: dict[str, Any] = {
    "source": "fine-tuned",
    "base": "nano-bert",
    # The data: subject and object swapped, in pairs that are short enough for a small model.
    "cases": ["swap"],
    "longest": 18,
    "n_train": 3000,
    "counterexamples": 0.06,
    # Once: learning to read a premise and a hypothesis together.
    "reader_pairs": 6000,
    "reader_steps": 500,
    "reader_batch": 32,
    "reader_rate": 1e-3,
    # For every seed.
    "n_models": 40,
    "steps": 120,
    "batch": 24,
    "rate": 1e-3,
    "n_chosen": 10,
    "enough_spread": 0.2,
    "taught_counterexamples": 0.25,
    # What is measured, and on how much.
    "n_inside": 64,
    "n_outside": 64,
    "n_cka": 64,
    "cka_length": 48,
    "cka_batch": 512,
    "n_resamples": 2000,
    "n_permutations": 9999,
    "device": "cpu",
    "seed": 0,
}
SCALES: dict[str, dict[str, Any]] = {
    "smoke": {
        **_NANO,
        "n_train": 64,
        "reader_pairs": 64,
        "reader_steps": 2,
        "reader_batch": 4,
        "n_models": 4,
        "steps": 3,
        "batch": 4,
        "n_chosen": 2,
        "taught_counterexamples": 0.5,
        "n_inside": 12,
        "n_outside": 12,
        "n_cka": 12,
        "cka_length": 24,
        "cka_batch": 64,
        "n_resamples": 200,
        "n_permutations": 999,
    },
    "nano": _NANO,
    "paper": {
        "source": "paper",
        "n_models": 100,
        "n_chosen": 10,
        "tokenizer": "bert-base-uncased",
        "mnli_file": None,
        "hans_file": None,
        "n_inside": 1000,
        "n_outside": 1000,
        "longest": 128,
        "n_cka": 1000,
        "cka_length": 512,
        "cka_batch": 1024,
        "enough_spread": 0.2,
        "n_resamples": 2000,
        "n_permutations": 9999,
        "device": "cpu",
        "seed": 0,
    },
}


def run(settings: Mapping[str, Any], out: Path) -> Findings:
    """Train or fetch the classifiers, stitch and compare them, and judge the paper's statements."""
    from thinkalike.recipes.brown2023_generalization.experiment import run_experiment

    return run_experiment(settings, out)
