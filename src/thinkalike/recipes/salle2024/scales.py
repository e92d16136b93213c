"""The settings of `salle2024`, and their values at each scale."""

from __future__ import annotations

from dataclasses import dataclass, replace

from thinkalike.recipes.recipe_settings import File, RecipeSettings


@dataclass(frozen=True, kw_only=True)
class SalleSettings(RecipeSettings):
    """What `salle2024` runs with.

    Attributes
    ----------
    transformers, state_space
        The models to compare.
    sentences
        Of the paper's probing grammar.
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

    transformers: tuple[str, ...] = ("nano-bert", "nano-gpt2")
    state_space: str = "nano-mamba"
    sentences: int = 500
    preset: str = "default"
    preset_sentences: int = 120
    interaction_layers: int = 0
    treebank: File | None = None
    treebank_sentences: int = 300
    checkpoints: tuple[str, ...] = ("nano-pythia-64@step250", "nano-pythia-64@step1000", "nano-pythia-64")
    without_positions: tuple[str, ...] = ("nano-bert", "nano-gpt2")


NANO = SalleSettings(scale="nano")
SCALES = {
    "smoke": replace(
        NANO,
        scale="smoke",
        sentences=40,
        preset_sentences=0,
        interaction_layers=2,
        without_positions=("nano-gpt2",),
    ),
    "nano": NANO,
    "paper": replace(
        NANO,
        scale="paper",
        transformers=("bert-base-uncased", "gpt2"),
        state_space="state-spaces/mamba-130m-hf",
        checkpoints=(
            "EleutherAI/pythia-160m-deduped@step512",
            "EleutherAI/pythia-160m-deduped@step8000",
            "EleutherAI/pythia-160m-deduped",
        ),
        without_positions=("bert-base-uncased", "gpt2"),
    ),
}
