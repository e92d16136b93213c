"""The settings of `salle2026`, and their values at each scale."""

from __future__ import annotations

from dataclasses import dataclass, replace

from thinkalike.recipes.recipe_settings import File, RecipeSettings
from thinkalike.recipes.salle2026.cohort import COHORT

BUNDLED = (
    "nano-bert",
    "nano-gpt2",
    "nano-mamba",
    *("nano-gelu-3l", "nano-gelu-3l-seed1", "nano-gelu-4l"),
    *("nano-solu-3l", "nano-solu-3l-seed1", "nano-solu-4l"),
    *("nano-pythia-64", "nano-pythia-64@step250", "nano-pythia-64@step1000"),
    *("nano-pythia-96", "nano-pythia-128", "nano-pythia-160"),
)
"""The population at nano scale. Models that are bundled as controls of another one's seed or positions are
left out, so that no architecture is there more often than when the rules were written"""


@dataclass(frozen=True, kw_only=True)
class PopulationSettings(RecipeSettings):
    """What `salle2026` runs with.

    Attributes
    ----------
    models
        All that are compared; eight or more.
    leave_out
        Those of them that are not.
    metadata
        A .csv table of facts about models, the first column their names: it adds to what is known, and
        replaces it.
    sets, sentences
        How many sets of sentences every effect is measured on, and how large each is.
    permutations
        Of the models, for every p.
    dtype
        Of the weights.
    """

    models: tuple[str, ...] = BUNDLED
    leave_out: tuple[str, ...] = ()
    metadata: File | None = None
    sets: int = 10
    sentences: int = 150
    permutations: int = 499
    dtype: str = "float32"

    @property
    def compared(self) -> tuple[str, ...]:
        return tuple(name for name in self.models if name not in self.leave_out)


NANO = PopulationSettings(scale="nano")
SCALES = {
    "smoke": replace(
        NANO,
        scale="smoke",
        models=(
            "nano-pythia-64@step250",
            "nano-pythia-64@step1000",
            "nano-pythia-64",
            "nano-pythia-96",
            "nano-gelu-3l",
            "nano-gelu-3l-seed1",
            "nano-solu-3l",
            "nano-solu-3l-seed1",
            "nano-gpt2",
        ),
        sets=1,
        sentences=80,  # with fewer, fits of interactions take longer
        permutations=19,
    ),
    "nano": NANO,
    "paper": replace(NANO, scale="paper", models=tuple(COHORT), sentences=500, dtype="bfloat16"),
}
