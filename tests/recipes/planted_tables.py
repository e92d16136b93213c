"""Tables in the place of models, for the open questions of salle2024."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd

from thinkalike.recipes.findings import Statement
from thinkalike.recipes.salle2024 import SCALES
from thinkalike.recipes.salle2024.measures import Cast, Effects
from thinkalike.recipes.salle2024.observing import Observation
from thinkalike.recipes.salle2024.scales import SalleSettings
from thinkalike.recipes.salle2024.sets import PAPER
from thinkalike.recipes.salle2024.work import Work

FEATURES = ("number", "part_of_speech", "tense", "word_length", "word_position")
MODELS = ("bert", "gpt2", "mamba")
NOTHING = replace(
    SCALES["smoke"],
    transformers=("bert", "gpt2"),
    state_space="mamba",
    sets=6,  # the fewest that have a range
    preset_sentences=0,
    interaction_layers=0,
    checkpoints=(),
    without_positions=(),
    position_controls=(),
    second_seeds=(),
)


def ranked(*order: str, layers: int = 4, strongest: float = 0.5) -> pd.DataFrame:
    """Importances of layers 0 … with the features in this order, whatever the embeddings are led by."""
    rest = [name for name in FEATURES if name not in order]
    values = dict(zip((*order, *rest), np.linspace(strongest, 0.0, len(FEATURES)), strict=True))
    table = pd.DataFrame([values] * layers, index=range(layers), columns=list(FEATURES), dtype=float)
    table.loc[0] = table.loc[0].to_numpy()[::-1]
    return table


UP, DOWN = ranked(*FEATURES), ranked(*reversed(FEATURES))


@dataclass
class Planted:
    """Tables in the place of models; each set of sentences shows the same."""

    settings: SalleSettings = NOTHING
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """`MODEL`, or `MODEL, VARIANT` for another way to read it"""
    kinds: Mapping[str, Mapping[str, pd.DataFrame]] = field(default_factory=dict)

    @property
    def cast(self) -> Cast:
        return Cast(self.settings.transformers, self.settings.state_space)

    def sets(self, kind: str, treebank: str | None = None) -> list[Any]:
        shown = SimpleNamespace(digest="d", first=lambda n: shown, with_controls=lambda name: f"with {name}")
        return [shown] * self.settings.sets

    def observation(self, stimuli: object) -> Observation:
        own = {model: self.tables[model] for model in self.cast.models}
        return Observation(own, np.eye(sum(map(len, own.values()))), 0.0, {})

    def observations(self, kind: str) -> list[Observation]:
        own = self.kinds[kind]
        return [Observation(own, np.eye(sum(map(len, own.values()))), 0.0, {})] * self.settings.sets

    def table(self, model: str, stimuli: object, **how: Any) -> pd.DataFrame:
        variant = how.get("variant") or how.get("preset") or (stimuli if isinstance(stimuli, str) else "")
        known = [
            key for key in (f"{model}, {variant}", f"{model}, {variant.split(' ')[0]}") if key in self.tables
        ]
        return self.tables[known[0] if known else model]

    def shown(self, model: str, stimuli: object, **reading: Any) -> None:
        raise AssertionError("nothing is read where tables are planted")

    def draws(self, name: str, measure: Callable[[int, Any], Effects], kind: str = PAPER) -> list[Effects]:
        return [measure(k, stimuli) for k, stimuli in enumerate(self.sets(kind))]


def asked(look: Callable[[Work], Statement], work: Planted) -> Statement:
    return look(cast("Work", work))


def effects(statement: Statement) -> dict[str, float]:
    return {effect.about: effect.value for effect in statement.effects}
