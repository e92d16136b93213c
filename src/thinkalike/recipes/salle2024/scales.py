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
        The models to compare; None where there is no state-space model.
    sets, sentences
        How many sets of sentences every effect is measured on, and how large each is.
    preset, preset_sentences
        Of the encoding models; `salle2024` follows the authors' code, and takes ten times as long. On how
        many sentences of each set the two are compared; 0 leaves it out.
    interaction_layers
        In how many layers of each model interactions are looked at; 0 leaves it out.
    treebank, treebank_sentences, treebank_longest
        A CoNLL-U file of natural text; sentences of a set, and the words that one has at most.
    other_language
        A CoNLL-U file of another language, for the models that read it.
    reads_other_language
        These models.
    analyses
        Whether to try the grid of other analyses.
    checkpoints
        One model at several steps of its training, the last one finished.
    without_positions
        Models whose position embeddings or rotations are set to 0.
    position_controls
        A model, the same trained without positions, and the same with other ones.
    second_seeds
        Models of the cast with another seed, named `NAME-seedN`.
    """

    transformers: tuple[str, ...] = ("nano-bert", "nano-gpt2")
    state_space: str | None = "nano-mamba"
    sets: int = 10
    sentences: int = 120
    preset: str = "default"
    preset_sentences: int = 30
    interaction_layers: int = 1
    treebank: File | None = None
    treebank_sentences: int = 120
    treebank_longest: int = 15
    other_language: File | None = None
    reads_other_language: tuple[str, ...] = ()
    analyses: bool = True
    checkpoints: tuple[str, ...] = ("nano-pythia-64@step250", "nano-pythia-64@step1000", "nano-pythia-64")
    without_positions: tuple[str, ...] = ("nano-bert", "nano-gpt2")
    position_controls: tuple[str, ...] = ("nano-gpt2", "nano-gpt2-nopos", "nano-gpt2-rotary")
    second_seeds: tuple[str, ...] = ("nano-bert-seed1", "nano-gpt2-seed1", "nano-mamba-seed1")


NANO = SalleSettings(scale="nano")
SCALES = {
    "smoke": replace(
        NANO,
        scale="smoke",
        sets=2,
        sentences=24,
        preset_sentences=0,
        interaction_layers=1,
        analyses=False,
        without_positions=("nano-gpt2",),
        second_seeds=("nano-gpt2-seed1",),
    ),
    "nano": NANO,
    "real": replace(
        NANO,
        scale="real",
        transformers=("MiniLM-L6", "SmolLM2-135M"),
        state_space=None,
        sentences=50,  # with these, minutes on two cores; more take no other path
        treebank_sentences=50,
        interaction_layers=0,
        analyses=False,
        preset_sentences=0,
        checkpoints=(),
        without_positions=(),
        position_controls=(),
        second_seeds=(),
        reads_other_language=("SmolLM2-135M",),
    ),
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
        position_controls=(),
        second_seeds=(),
    ),
}
