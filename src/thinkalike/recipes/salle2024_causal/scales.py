"""The settings of `salle2024-causal`, and their values at each scale."""

from __future__ import annotations

from dataclasses import dataclass, replace

from thinkalike.recipes.recipe_settings import File, RecipeSettings


@dataclass(frozen=True, kw_only=True)
class CausalSettings(RecipeSettings):
    """What `salle2024-causal` runs with.

    Attributes
    ----------
    models, features
        From which models, and which features, are taken out.
    depths
        Where: shares of the depth of a model.
    sets, sentences
        How many sets of sentences give directions and importances, and how large each is; each has a draw of
        random directions, a part of the text and minimal pairs of its own.
    text, length, passages
        A text file (the bundled sample if None), the tokens of a passage, and the passages of a set.
    pairs
        Minimal pairs of agreement in a set.
    """

    models: tuple[str, ...] = ("nano-bert", "nano-gpt2", "nano-mamba")
    features: tuple[str, ...] = ("number", "tense", "part_of_speech")
    depths: tuple[float, ...] = (0.25, 0.5, 0.75)
    sets: int = 10
    sentences: int = 100
    text: File | None = None
    length: int = 64
    passages: int = 16
    pairs: int = 20


NANO = CausalSettings(scale="nano")
SCALES = {
    "smoke": replace(NANO, scale="smoke", depths=(0.5,), sets=2, sentences=20, passages=4, pairs=4),
    "nano": NANO,
    "paper": replace(
        NANO,
        scale="paper",
        models=("bert-base-uncased", "gpt2", "state-spaces/mamba-130m-hf"),
        length=128,
        pairs=50,
    ),
}
