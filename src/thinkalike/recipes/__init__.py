"""Recipes: every experiment of the two papers as one command, with a page that says what we find.

>>> from thinkalike.recipes import RECIPES
>>> "salle2024" in RECIPES
True

`reproduce` runs one and writes its page.
"""

from __future__ import annotations

from thinkalike.recipes.findings import Figure, Findings, Statement, Table, Verdict
from thinkalike.recipes.recipe_registry import RECIPES, SCALES, Recipe, get_recipe
from thinkalike.recipes.reproducing import Reproduction, reproduce

__all__ = [
    "RECIPES",
    "SCALES",
    "Figure",
    "Findings",
    "Recipe",
    "Reproduction",
    "Statement",
    "Table",
    "Verdict",
    "get_recipe",
    "reproduce",
]
