"""What the page asks: which layers, features and items, by which distance. Text in, checked values out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.types import Json, Value

FIELDS = ("layers", "features", "distance", "where", "quick")


@dataclass(frozen=True)
class Question:
    """One view of a run."""

    layers: tuple[tuple[str, tuple[str, ...]], ...]
    """Systems, and the layers of each by their labels"""
    features: tuple[str, ...]
    distance: str
    where: tuple[str, str] | None = None
    """A feature and a level: only items that have it; None for all"""
    quick: bool = False
    """Whether a sample of the items will do"""


@dataclass(frozen=True)
class Choices:
    """What may be asked."""

    layers: Mapping[str, Sequence[str]]
    features: Sequence[str]
    distances: Sequence[str]
    levels: Mapping[str, Sequence[str]]
    """Feature → the levels that items can be chosen by"""
    distance: str
    """Of the run itself"""

    def to_json(self) -> Json:
        return {
            "layers": {name: list(layers) for name, layers in self.layers.items()},
            "features": list(self.features),
            "distances": list(self.distances),
            "levels": {name: list(levels) for name, levels in self.levels.items()},
            "distance": self.distance,
        }


def read_question(text: str, choices: Choices) -> Question:
    """A question from the JSON of an address; an error says what was wrong in it."""
    try:
        asked = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("The question is no JSON: ask from the page.") from None
    if not isinstance(asked, dict) or not set(asked) <= set(FIELDS):
        raise InvalidInput(f"A question has {', '.join(FIELDS)}, and nothing else.")
    return Question(
        layers=_layers(asked.get("layers"), choices),
        features=_known("feature", asked.get("features"), choices.features),
        distance=_one("distance", asked.get("distance", choices.distance), choices.distances),
        where=_where(asked.get("where"), choices),
        quick=asked.get("quick") is True,
    )


def _layers(asked: Value, choices: Choices) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(asked, dict):
        raise InvalidInput("A question names the layers of each system.")
    names = _known("system", list(asked), choices.layers)
    found = [(name, _known("layer", asked[name], choices.layers[name])) for name in names]
    kept = tuple((name, layers) for name, layers in found if layers)
    if len(kept) < 2:
        raise InvalidInput("Choose two systems or more, with a layer of each.")
    return kept


def _where(asked: Value, choices: Choices) -> tuple[str, str] | None:
    if asked is None:
        return None
    if not (isinstance(asked, list) and len(asked) == 2):
        raise InvalidInput("Items are chosen by a feature and a level of it.")
    feature = _one("feature with levels", asked[0], choices.levels)
    return feature, _one(f"level of {feature}", asked[1], choices.levels[feature])


def _known(what: str, names: Value, known: Sequence[str] | Mapping[str, object]) -> tuple[str, ...]:
    """Names in the order of those that are known, each once."""
    if not isinstance(names, list):
        raise InvalidInput(f"A question names each {what} that it is about.")
    asked = {_one(what, name, known) for name in names}
    return tuple(name for name in known if name in asked)


def _one(what: str, name: Value, known: Sequence[str] | Mapping[str, object]) -> str:
    if not isinstance(name, str) or name not in known:
        raise UnknownName.among(what, name, known)
    return name
