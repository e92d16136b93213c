"""The settings of `salle2026`, and their values at each scale."""

from __future__ import annotations

from dataclasses import dataclass, replace

from thinkalike.recipes.recipe_settings import File, RecipeSettings
from thinkalike.recipes.salle2026.cohort import COHORT
from thinkalike.systems import bundled


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

    models: tuple[str, ...] = bundled.names(revisions=True)
    leave_out: tuple[str, ...] = ()
    metadata: File | None = None
    sets: int = 6
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
