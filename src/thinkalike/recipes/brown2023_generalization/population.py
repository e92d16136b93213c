"""The classifiers of a run, what they get right, and who of them is chosen; and those of the paper."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from thinkalike.progress import progress
from thinkalike.recipes.brown2023_generalization.choice import Choice, choose_ends
from thinkalike.recipes.brown2023_generalization.classifiers import (
    Questions,
    accuracy,
    ask,
    class_names,
    load_classifier,
)
from thinkalike.recipes.brown2023_generalization.data import MNLI_CLASSES, hans, mnli
from thinkalike.recipes.brown2023_generalization.scales import GeneralizationSettings
from thinkalike.recipes.places import locate
from thinkalike.recipes.steps import Steps
from thinkalike.systems.system import open_system
from thinkalike.types import Json, Tokenizer

HUB_NAME = "connectivity/feather_berts_{}"


@dataclass(frozen=True, eq=False)
class Population:
    """Many classifiers, what each gets right, and the chosen ones.

    Attributes
    ----------
    places
        Name → folder, or name on the hub.
    inside, outside
        Questions in distribution and out of it.
    right_inside, right_outside
        Name → accuracy, for all models that were looked at.
    key
        What all of it depends on: part of the key of every later step.
    """

    places: Mapping[str, str]
    tokenizer: Tokenizer = field(repr=False)
    inside: Questions
    outside: Questions
    right_inside: Mapping[str, float]
    right_outside: Mapping[str, float]
    choice: Choice
    key: Mapping[str, object]
    natural: float
    """The spread that was found without planting"""

    def load(self, *, device: str) -> Json:
        """The chosen models."""
        return {
            name: load_classifier(self.places[name], tokenizer=self.tokenizer, device=device)
            for name in self.choice.names
        }


def paper_population(settings: GeneralizationSettings, steps: Steps) -> Population:
    """The hundred classifiers of McCoy et al. (2020), on MNLI and HANS."""
    folder, device, seed = settings.models_folder, settings.device, settings.seed
    places = {str(k): locate(HUB_NAME.format(k), folder) for k in range(settings.n_models)}
    tokenizer = open_system(locate(settings.tokenizer, folder)).tokenizer
    classes = class_names(open_system(places["0"]).config, MNLI_CLASSES)
    shape: Json = {
        "classes": classes,
        "tokenizer": tokenizer,
        "longest": settings.longest,
        "device": device,
    }
    inside = ask(mnli(settings.n_inside, seed=seed, file=settings.mnli_file), **shape)
    outside = ask(hans(settings.n_outside, seed=seed, file=settings.hans_file), **shape)
    key: dict[str, object] = {"classes": classes, "data": questions_digest(inside, outside)}
    right: dict[str, dict[str, float]] = {"inside": {}, "outside": {}}
    with progress("accuracies", len(places)) as bar:
        for name, place in places.items():

            def both(place: str = place) -> dict[str, float]:
                model = load_classifier(place, tokenizer=tokenizer, device=device)
                return {"inside": accuracy(model, inside), "outside": accuracy(model, outside)}

            found = steps.json(f"accuracy-{name}", {**key, "model": place}, both)
            for part, share in found.items():
                right[part][name] = share
            bar.advance()
    choice = choose_ends(right["outside"], settings.n_chosen)
    key |= {"models": [places[name] for name in choice.names]}
    return Population(
        places, tokenizer, inside, outside, right["inside"], right["outside"], choice, key, choice.spread
    )


def questions_digest(*parts: Questions) -> str:
    """Of the texts and labels, and of how they were cut into tokens."""
    content = [(part.pairs.texts, part.pairs.labels, part.tokens.ids.shape) for part in parts]
    return hashlib.sha256(repr(content).encode()).hexdigest()
