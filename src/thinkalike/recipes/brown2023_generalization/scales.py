"""The settings of `brown2023-generalization`, and their values at each scale."""

from __future__ import annotations

from dataclasses import dataclass, replace

from thinkalike.recipes.recipe_settings import File, RecipeSettings


@dataclass(frozen=True, kw_only=True)
class GeneralizationSettings(RecipeSettings):
    """What `brown2023-generalization` runs with.

    Attributes
    ----------
    source
        "fine-tuned": classifiers that are trained here, from `base`. "paper": those of McCoy et al. 2020.
    tokenizer, mnli_file, hans_file
        With source="paper": the classifiers' tokenizer, and files of the two data sets in place of the hub's.
    cases, longest, n_train, counterexamples
        The data: subject and object swapped, in pairs that are short enough for a small model; how many, and
        which share of those with full overlap is no entailment.
    reader_pairs, reader_steps, reader_batch, reader_rate
        Once: learning to read a premise and a hypothesis together; no steps leave it out.
    n_models, steps, batch, rate
        How many classifiers there are, and how each is fine-tuned.
    n_chosen, taught_counterexamples
        How many make each of the two groups; the share of counterexamples that the planted control is taught
        with.
    n_choosing, n_inside, n_outside
        Questions that choose the groups, out of distribution; others in and out of distribution that judge.
    sets
        How many sets of questions every effect is measured on.
    n_stitched, n_barriers, n_cka
        Of the questions in distribution, those that stitching, barriers and CKA are measured on.
    cka_length, cka_batch
        The tokens that a text is padded to for CKA, and the consecutive rows of a batch: two texts.
    permutations
        Of the tests.
    """

    source: str = "fine-tuned"
    base: str = "nano-bert"
    tokenizer: str = "bert-base-uncased"
    mnli_file: File | None = None
    hans_file: File | None = None
    cases: tuple[str, ...] = ("swap",)
    longest: int = 18
    n_train: int = 3000
    counterexamples: float = 0.06
    reader_pairs: int = 6000
    reader_steps: int = 500
    reader_batch: int = 32
    reader_rate: float = 1e-3
    n_models: int = 40
    steps: int = 120
    batch: int = 24
    rate: float = 1e-3
    n_chosen: int = 10
    taught_counterexamples: float = 0.25
    n_choosing: int = 1000
    n_inside: int = 400
    n_outside: int = 1000
    sets: int = 10
    n_stitched: int = 100
    n_barriers: int = 60
    n_cka: int = 100
    cka_length: int = 48
    cka_batch: int = 96
    permutations: int = 9999
    device: str = "cpu"


NANO = GeneralizationSettings(scale="nano")
SCALES = {
    "smoke": replace(
        NANO,
        scale="smoke",
        n_train=64,
        reader_pairs=64,
        reader_steps=2,
        reader_batch=4,
        n_models=4,
        steps=3,
        batch=4,
        n_chosen=2,
        taught_counterexamples=0.5,
        n_choosing=12,
        n_inside=12,
        n_outside=12,
        sets=2,
        n_stitched=12,
        n_barriers=12,
        n_cka=12,
        cka_length=24,
        cka_batch=48,
        permutations=999,
    ),
    "nano": NANO,
    "real": replace(
        NANO,
        scale="real",
        base="MiniLM-L6",
        longest=32,
        reader_steps=0,  # it has seen pairs in its pretraining
        n_models=20,
        steps=100,
        rate=1e-4,
        n_chosen=6,  # of fewer, order statistics give no range
    ),
    "paper": replace(
        NANO,
        scale="paper",
        source="paper",
        n_models=100,
        n_inside=1000,
        longest=128,
        n_stitched=1000,
        n_barriers=1000,
        n_cka=1000,
        cka_length=512,
        cka_batch=1024,
    ),
}
