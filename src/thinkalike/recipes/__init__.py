"""Recipes: every experiment of the two papers as one command, with a page that says what we find.

>>> from thinkalike.recipes import RECIPES
>>> "salle2024" in RECIPES
True

`reproduce` runs one and writes its page.
"""

from __future__ import annotations

from thinkalike.recipes.effects import Effect
from thinkalike.recipes.findings import Figure, Findings, Statement, Table
from thinkalike.recipes.recipe_registry import RECIPES, SCALES, Recipe, get_recipe
from thinkalike.recipes.reproducing import Reproduction, reproduce
from thinkalike.recipes.rules import Rule, Sensitivity, Verdict

__all__ = [
    "RECIPES",
    "SCALES",
    "Effect",
    "Figure",
    "Findings",
    "Recipe",
    "Reproduction",
    "Rule",
    "Sensitivity",
    "Statement",
    "Table",
    "Verdict",
    "get_recipe",
    "reproduce",
]
