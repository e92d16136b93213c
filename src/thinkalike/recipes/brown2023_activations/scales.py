"""The settings of `brown2023-activations`, and their values at each scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from thinkalike.recipes.recipe_settings import File, RecipeSettings

Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class ActivationsSettings(RecipeSettings):
    """What `brown2023-activations` runs with.

    Attributes
    ----------
    sizes
        Size → the GeLU and the SoLU model.
    second_seeds, narrow_and_wide
        The same two from another seed; a narrower and a wider model of one depth. None where there
        are none.
    format, tokenizer
        Of the weights, "transformers" or "TransformerLens"; the tokenizer where the weights bring none.
    text, max_tokens, length
        What is read (the bundled sample if None), how much of it, and the tokens of a passage.
    kind, steps, warmup, batch_tokens, every, validation_tokens
        φ as in the paper, LayerNorm and affine, and how it is fitted by the loss of the task.
    cka_batches
        Passages that CKA is measured on.
    resamples
        Of the documents, for intervals.
    """

    sizes: Mapping[str, Pair] = field(
        default_factory=lambda: {
            "3 layers": ("nano-gelu-3l", "nano-solu-3l"),
            "4 layers": ("nano-gelu-4l", "nano-solu-4l"),
        }
    )
    second_seeds: Pair | None = ("nano-gelu-3l-seed1", "nano-solu-3l-seed1")
    narrow_and_wide: Pair | None = ("nano-pythia-96", "nano-gelu-3l")
    format: str = "transformers"
    tokenizer: str | None = None
    text: File | None = None
    max_tokens: int = 100_000
    length: int = 128
    kind: str = "layernorm-affine"
    steps: int = 100
    warmup: int = 10
    batch_tokens: int = 512
    every: int = 20
    validation_tokens: int = 2048
    cka_batches: int = 40
    resamples: int = 2000
    device: str = "cpu"


NANO = ActivationsSettings(scale="nano")
SCALES = {
    "smoke": replace(
        NANO,
        scale="smoke",
        sizes={"3 layers": ("nano-gelu-3l", "nano-solu-3l")},
        second_seeds=None,
        narrow_and_wide=None,
        max_tokens=2_000,
        length=32,
        steps=3,
        warmup=1,
        batch_tokens=64,
        every=1,
        validation_tokens=128,
        cka_batches=8,
        resamples=200,
    ),
    "nano": NANO,
    "paper": replace(
        NANO,
        scale="paper",
        sizes={
            "3 layers": ("NeelNanda/GELU_3L512W_C4_Code", "NeelNanda/SoLU_3L512W_C4_Code"),
            "4 layers": ("NeelNanda/GELU_4L512W_C4_Code", "NeelNanda/SoLU_4L512W_C4_Code"),
        },
        second_seeds=None,  # there are none of these models
        narrow_and_wide=None,
        format="TransformerLens",
        tokenizer="NeelNanda/gpt-neox-tokenizer-digits",
        max_tokens=20_000_000,
        length=1024,
        steps=2000,
        warmup=200,
        batch_tokens=2**18,
        every=100,
        validation_tokens=65_536,
        cka_batches=1000,
    ),
}
