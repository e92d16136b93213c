"""The settings of `brown2023-scaling`, and their values at each scale."""

from __future__ import annotations

from dataclasses import dataclass, replace

from thinkalike.recipes.recipe_settings import File, RecipeSettings


@dataclass(frozen=True, kw_only=True)
class ScalingSettings(RecipeSettings):
    """What `brown2023-scaling` runs with.

    Attributes
    ----------
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
    parts
        The text is dealt into so many parts that share no paragraph, for ranges.
    length, max_batches
        Tokens of a passage, which is a batch as in the paper; how many passages to read in all parts.
    flattened_length, flattened_passages
        Where a passage is one item: its tokens, and how many of each part.
    with_heads
        Further members of which only the configuration is looked at, for Table 1.
    at_once
        Whether all members are in memory together; otherwise two at a time.
    controls
        Whether to look at untrained copies, and at passages without their first token.
    loss_tokens
        How much of the text the loss is measured on.
    dtype
        Of the weights.
    """

    family: tuple[str, ...] = ("nano-pythia-64", "nano-pythia-96", "nano-pythia-128", "nano-pythia-160")
    odd: str = "nano-pythia-128"
    checkpoints: tuple[str, ...] = ("nano-pythia-64@step250", "nano-pythia-64@step1000", "nano-pythia-64")
    state_space: str = "nano-mamba"
    beside: str = "nano-gpt2"
    text: File | None = None
    parts: int = 10
    length: int = 256
    max_batches: int = 300
    flattened_length: int = 32
    flattened_passages: int = 24
    with_heads: tuple[str, ...] = ()
    at_once: bool = True
    controls: bool = True
    loss_tokens: int = 20_000
    dtype: str = "float32"


_SIZES = ("70m", "160m", "410m", "1b", "1.4b", "2.8b", "6.9b")
NANO = ScalingSettings(scale="nano")
SCALES = {
    "smoke": replace(
        NANO, scale="smoke", parts=2, length=64, max_batches=12, controls=False, loss_tokens=600
    ),
    "nano": NANO,
    "paper": replace(
        NANO,
        scale="paper",
        family=tuple(f"EleutherAI/pythia-{size}-deduped" for size in _SIZES),
        odd="EleutherAI/pythia-2.8b-deduped",
        with_heads=("EleutherAI/pythia-12b-deduped",),
        checkpoints=(
            "EleutherAI/pythia-410m-deduped@step512",
            "EleutherAI/pythia-410m-deduped@step4000",
            "EleutherAI/pythia-410m-deduped@step32000",
            "EleutherAI/pythia-410m-deduped",
        ),
        state_space="state-spaces/mamba-1.4b-hf",
        beside="EleutherAI/pythia-1.4b-deduped",
        length=1024,
        max_batches=1000,
        at_once=False,
    ),
}
