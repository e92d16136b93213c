"""The classifiers of a run, what they get right, and who of them is chosen; and those of the paper."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from thinkalike.progress import progress
from thinkalike.recipes.brown2023_generalization.choice import Choice, choose_ends
from thinkalike.recipes.brown2023_generalization.classifiers import (
    Bools,
    Questions,
    ask,
    class_names,
    load_classifier,
    right_answers,
)
from thinkalike.recipes.brown2023_generalization.data import MNLI_CLASSES, dealt, hans, mnli
from thinkalike.recipes.brown2023_generalization.scales import GeneralizationSettings
from thinkalike.recipes.places import locate
from thinkalike.recipes.steps import Steps
from thinkalike.systems.system import open_system
from thinkalike.types import Tokenizer

if TYPE_CHECKING:
    from torch import nn

HUB_NAME = "connectivity/feather_berts_{}"
SEEDS, PLANTED = "seeds", "planted"
"""Groups that the seeds made, and groups of which one was taught"""


@dataclass(frozen=True, eq=False)
class Asked:
    """Questions in distribution, and out of it some that choose the groups and others that judge them."""

    inside: Questions
    choosing: Questions
    outside: Questions

    def digest(self) -> str:
        return questions_digest(self.inside, self.choosing, self.outside)


@dataclass(frozen=True, eq=False)
class Population:
    """Many classifiers, what each gets right, and the chosen ones.

    Attributes
    ----------
    places
        Name → folder, or name on the hub.
    right
        Name → part ("inside", "choosing", "outside") → which questions it answers right.
    choices
        `SEEDS`, and where there are models that were taught, `PLANTED` → who is in which group.
    key
        What all of it depends on: part of the key of every later step.
    """

    places: Mapping[str, str]
    tokenizer: Tokenizer = field(repr=False)
    asked: Asked
    right: Mapping[str, Mapping[str, Bools]] = field(repr=False)
    choices: Mapping[str, Choice]
    key: Mapping[str, object]

    @property
    def chosen(self) -> tuple[str, ...]:
        """Every model of any group, once."""
        return tuple(dict.fromkeys(name for choice in self.choices.values() for name in choice.names))

    def wanted(self) -> Bools:
        """Which pairs of chosen models stand in one choice together: (m, m)."""
        members = [np.isin(self.chosen, choice.names) for choice in self.choices.values()]
        return np.any([np.outer(own, own) for own in members], axis=0)

    def load(self, *, device: str) -> dict[str, nn.Module]:
        """The chosen models."""
        return {
            name: load_classifier(self.places[name], tokenizer=self.tokenizer, device=device)
            for name in self.chosen
        }

    def accuracies(self) -> pd.DataFrame:
        """One row per model: `model`, and the share that is right of each part."""
        return pd.DataFrame(
            {"model": name, **{part: float(right.mean()) for part, right in parts.items()}}
            for name, parts in self.right.items()
        )


def all_answers(
    places: Mapping[str, str],
    asked: Asked,
    *,
    key: Mapping[str, object],
    tokenizer: Tokenizer,
    device: str,
    steps: Steps,
) -> dict[str, dict[str, Bools]]:
    """What every classifier gets right, kept once it is known: name → part → (n,).

    Kept models have names of their own in the folder of the run, which may move; others are their place.
    """
    about = {**key, "data": asked.digest()}

    def compute(place: str) -> dict[str, Bools]:
        model = load_classifier(place, tokenizer=tokenizer, device=device)
        return {part: right_answers(model, getattr(asked, part)) for part in vars(asked)}

    found = {}
    with progress("answers", len(places)) as bar:
        for name, place in places.items():
            kept = Path(place).is_relative_to(steps.models)
            own = {**about, "model": Path(place).name if kept else place}
            found[name] = steps.arrays(f"answers-{name}", own, partial(compute, place))
            bar.advance()
    return found


def share_right(right: Mapping[str, Mapping[str, Bools]], part: str) -> dict[str, float]:
    return {name: float(parts[part].mean()) for name, parts in right.items()}


def paper_population(settings: GeneralizationSettings, steps: Steps) -> Population:
    """The hundred classifiers of McCoy et al. (2020), on MNLI and HANS; none of them was taught."""
    folder, device, seed = settings.models_folder, settings.device, settings.seed
    places = {str(k): locate(HUB_NAME.format(k), folder) for k in range(settings.n_models)}
    tokenizer = open_system(locate(settings.tokenizer, folder)).tokenizer
    classes = class_names(open_system(places["0"]).config, MNLI_CLASSES)
    shape: dict[str, Any] = {
        "classes": classes,
        "tokenizer": tokenizer,
        "longest": settings.longest,
        "device": device,
    }
    shifted = hans(settings.n_choosing + settings.n_outside, seed=seed, file=settings.hans_file)
    choosing, judging = dealt(shifted, settings.n_choosing, seed=seed)
    asked = Asked(
        inside=ask(mnli(settings.n_inside, seed=seed, file=settings.mnli_file), **shape),
        choosing=ask(choosing, **shape),
        outside=ask(judging, **shape),
    )
    key: dict[str, object] = {"classes": classes}
    right = all_answers(places, asked, key=key, tokenizer=tokenizer, device=device, steps=steps)
    choice = choose_ends(share_right(right, "choosing"), settings.n_chosen)
    key |= {"models": [places[name] for name in choice.names], "data": asked.digest()}
    return Population(places, tokenizer, asked, right, {SEEDS: choice}, key)


def questions_digest(*parts: Questions) -> str:
    """Of the texts and labels, and of how they were cut into tokens."""
    content = [(part.pairs.texts, part.pairs.labels, part.tokens.ids.shape) for part in parts]
    return hashlib.sha256(repr(content).encode()).hexdigest()
