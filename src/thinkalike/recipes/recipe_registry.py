"""The table of recipes. A recipe's module is imported when it is asked for its scales or run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from thinkalike.errors import InvalidInput
from thinkalike.registry import Registry

if TYPE_CHECKING:
    from thinkalike.recipes.findings import Findings
    from thinkalike.recipes.recipe_settings import RecipeSettings

SCALES = ("smoke", "nano", "real", "paper")
"""Under a minute; the bundled models; pretrained ones that packages carry; the models of the paper"""
SALLE = "Salle, Jalouzot, Lan, Chemla and Lakretz 2024, What Makes Two Language Models Think Alike?"
SALLE_3 = "Jalouzot, Pallier, Chemla and Lakretz 2026, What Makes Two Language Models Think Alike?, version 3"
BROWN = (
    "Brown, Godfrey, Konz, Tu and Kvinge 2023, Understanding the Inner Workings of Language Models "
    "Through Representation Dissimilarity"
)


@dataclass(frozen=True)
class Recipe:
    """One experiment.

    Attributes
    ----------
    name : that it is run by
    title, citation : of the paper
    module : has `SCALES`, scale → its settings (a `RecipeSettings`), and `run(settings, out)` → `Findings`

    Examples
    --------
    >>> from thinkalike.recipes import RECIPES
    >>> RECIPES["salle2024"].shows
    'Figures 2, 3, 4 and S5'
    """

    name: str
    title: str
    citation: str
    shows: str
    """Which figures and tables of the paper"""
    module: str
    taken: Mapping[str, float] = field(default_factory=dict)
    """Scale → processor seconds of the whole run that the gallery shows, where it was one"""

    @property
    def scales(self) -> Mapping[str, RecipeSettings]:
        """`smoke`, `nano`, `paper` and in some `real`, each with its settings."""
        found: Mapping[str, RecipeSettings] = import_module(self.module).SCALES
        return found

    def run(self, settings: RecipeSettings, out: Path) -> Findings:
        """Do it, keeping expensive steps in `out`, and say what came out."""
        found: Findings = import_module(self.module).run(settings, out)
        return found


_TABLE = (
    Recipe(
        name="salle2024",
        title="What makes two language models think alike?",
        citation=SALLE,
        shows="Figures 2, 3, 4 and S5",
        module="thinkalike.recipes.salle2024",
        taken={"nano": 299.9, "real": 295.2},
    ),
    Recipe(
        name="salle2024-causal",
        title="Does what is important matter to the model?",
        citation=SALLE,
        shows="Beyond the figures",
        module="thinkalike.recipes.salle2024_causal",
        taken={"nano": 93.9},
    ),
    Recipe(
        name="salle2026",
        title="What makes the models of a population alike?",
        citation=SALLE_3,
        shows="Distances between models, their map, and facts that explain them",
        module="thinkalike.recipes.salle2026",
    ),
    Recipe(
        name="brown2023-activations",
        title="GeLU against SoLU by stitching",
        citation=BROWN,
        shows="Figures 1, 4, 5 and 6",
        module="thinkalike.recipes.brown2023_activations",
    ),
    Recipe(
        name="brown2023-generalization",
        title="Classifiers that agree in distribution and differ out of it",
        citation=BROWN,
        shows="Figures 2, 7 and 8",
        module="thinkalike.recipes.brown2023_generalization",
    ),
    Recipe(
        name="brown2023-scaling",
        title="Features of a family of models as it grows",
        citation=BROWN,
        shows="Figures 3, 9 and 10, and Table 1",
        module="thinkalike.recipes.brown2023_scaling",
        taken={"nano": 92.4},
    ),
)


def _accept(name: str, given: object) -> Recipe:
    if not isinstance(given, Recipe) or given.name != name:
        raise InvalidInput(f"The recipe {name!r} is {given!r}: give a Recipe of that name.")
    return given


RECIPES: Registry[Recipe] = Registry(
    "recipe", "thinkalike.recipes", {recipe.name: recipe for recipe in _TABLE}, accept=_accept
)
"""Name → recipe; others add to it"""


def get_recipe(name: str) -> Recipe:
    """The recipe called `name`, or an error that suggests the nearest one.

    Parameters
    ----------
    name : a key of `RECIPES`

    Returns
    -------
    Recipe

    Examples
    --------
    >>> from thinkalike.recipes import get_recipe
    >>> get_recipe("brown2023-scaling").title
    'Features of a family of models as it grows'
    """
    return RECIPES[name]
