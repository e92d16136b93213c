"""The classifiers of a run: fine-tuned here and kept, or those of the paper; and who of them is chosen."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from thinkalike.progress import progress
from thinkalike.recipes.brown2023_generalization.classifiers import (
    Questions,
    accuracy,
    ask,
    class_names,
    load_classifier,
)
from thinkalike.recipes.brown2023_generalization.data import (
    MNLI_CLASSES,
    NANO_CLASSES,
    Pairs,
    hans,
    mnli,
    overlap_pairs,
    training_pairs,
)
from thinkalike.recipes.brown2023_generalization.groups import Choice, choose_ends, plant
from thinkalike.recipes.places import locate
from thinkalike.recipes.steps import Steps
from thinkalike.recipes.weights import weights_digest

HUB_NAME = "connectivity/feather_berts_{}"
TRAINING, INSIDE, OUTSIDE, READING = range(4)  # the seeds of the parts, so that none repeats another


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
    tokenizer: Any = field(repr=False)
    inside: Questions
    outside: Questions
    right_inside: Mapping[str, float]
    right_outside: Mapping[str, float]
    choice: Choice
    key: Mapping[str, Any]
    natural: float
    """The spread that was found without planting"""

    def load(self, *, device: str) -> dict[str, Any]:
        """The chosen models."""
        return {
            name: load_classifier(self.places[name], tokenizer=self.tokenizer, device=device)
            for name in self.choice.names
        }


def fine_tuned_population(settings: Mapping[str, Any], steps: Steps) -> Population:
    """Train `n_models`; where they do not differ enough out of distribution, add some that were taught."""
    from thinkalike.recipes.brown2023_generalization.finetuning import fine_tuned, kept_model, pair_reader
    from thinkalike.stitching.systems import open_system

    system = open_system(settings["base"], task="masked", device="cpu")
    tokenizer: Any = system.tokenizer
    seed = settings["seed"]
    shape = {"cases": settings["cases"], "longest": settings["longest"], "tokenizer": tokenizer}
    common = {name: settings[name] for name in ("cases", "longest", "seed", "n_train")}

    def pairs(n: int, part: int, counterexamples: float = settings["counterexamples"]) -> Pairs:
        return training_pairs(n, seed=4 * seed + part, counterexamples=counterexamples, **shape)

    def questions(found: Pairs) -> Questions:
        return ask(found, classes=NANO_CLASSES, tokenizer=tokenizer, longest=settings["longest"])

    reading = {name: settings[f"reader_{name}"] for name in ("steps", "batch", "rate")}
    about = {**common, **reading, "base": weights_digest(system.model), "n": settings["reader_pairs"]}
    reader = kept_model(
        steps.path("pair-reader", about),
        lambda: pair_reader(
            system.model,
            # All of full overlap, half of them entailments: what overlap means is left open.
            pairs(settings["reader_pairs"], READING, counterexamples=0.5),
            tokenizer=tokenizer,
            seed=seed,
            **reading,
        ),
        tokenizer,
    )
    base = open_system(reader, task="masked", device="cpu").model
    inside = questions(pairs(settings["n_inside"], INSIDE))
    outside = questions(overlap_pairs(settings["n_outside"], seed=4 * seed + OUTSIDE, **shape))
    training = {name: settings[name] for name in ("steps", "batch", "rate")}
    about = {**common, **training, "reader": weights_digest(base)}

    def train(
        names: Mapping[str, int], counterexamples: float
    ) -> tuple[dict[str, str], dict[str, float], dict[str, float]]:
        own = {**about, "counterexamples": counterexamples}
        lessons = questions(pairs(settings["n_train"], TRAINING, counterexamples))
        places, good_inside, good_outside = {}, {}, {}
        with progress("fine-tuning", len(names)) as bar:
            for name, number in names.items():
                folder = kept_model(
                    steps.path(f"classifier-{name}", {**own, "number": number}),
                    lambda number=number: fine_tuned(base, lessons, seed=number, **training),  # type: ignore[misc]
                    tokenizer,
                )
                model = load_classifier(folder, tokenizer=tokenizer)
                places[name] = str(folder)
                good_inside[name], good_outside[name] = accuracy(model, inside), accuracy(model, outside)
                bar.advance()
        return places, good_inside, good_outside

    names = {f"seed {k}": k for k in range(settings["n_models"])}
    places, good_inside, good_outside = train(names, settings["counterexamples"])
    choice = choose_ends(good_outside, settings["n_chosen"])
    natural = choice.spread
    if natural < settings["enough_spread"]:
        names = {f"taught {k}": 1000 + k for k in range(settings["n_chosen"])}
        more, more_inside, more_outside = train(names, settings["taught_counterexamples"])
        choice = plant(good_outside, more_outside, settings["n_chosen"])
        places, good_inside, good_outside = (
            {**places, **more},
            {**good_inside, **more_inside},
            {**good_outside, **more_outside},
        )
    key = {**about, "counterexamples": settings["counterexamples"], "chosen": choice.names}
    return Population(places, tokenizer, inside, outside, good_inside, good_outside, choice, key, natural)


def paper_population(settings: Mapping[str, Any], steps: Steps) -> Population:
    """The hundred classifiers of McCoy et al. (2020), on MNLI and HANS."""
    from thinkalike.activations.loading import load_config, load_processor
    from thinkalike.activations.names import parse_name

    folder, device = settings["models_folder"], settings["device"]
    places = {str(k): locate(HUB_NAME.format(k), folder) for k in range(settings["n_models"])}
    tokenizer = load_processor(parse_name(locate(settings["tokenizer"], folder)), "text")
    classes = class_names(load_config(parse_name(places["0"])), MNLI_CLASSES)
    seed, files = settings["seed"], {name: settings[name] for name in ("mnli_file", "hans_file")}
    shape = {"classes": classes, "tokenizer": tokenizer, "longest": settings["longest"], "device": device}
    inside = ask(mnli(settings["n_inside"], seed=seed, file=files["mnli_file"]), **shape)
    outside = ask(hans(settings["n_outside"], seed=seed, file=files["hans_file"]), **shape)
    key = {name: settings[name] for name in ("n_inside", "n_outside", "longest", "seed")}
    key |= {"classes": classes, "data": _texts(inside, outside)}
    good: dict[str, dict[str, float]] = {}
    with progress("accuracies", len(places)) as bar:
        for name, place in places.items():

            def both(place: str = place) -> dict[str, float]:
                model = load_classifier(place, tokenizer=tokenizer, device=device)
                return {"inside": accuracy(model, inside), "outside": accuracy(model, outside)}

            good[name] = steps.json(f"accuracy-{name}", {**key, "model": place}, both)
            bar.advance()
    right_inside, right_outside = (
        {n: one[part] for n, one in good.items()} for part in ("inside", "outside")
    )
    choice = choose_ends(right_outside, settings["n_chosen"])
    key |= {"models": [places[name] for name in choice.names]}
    return Population(
        places, tokenizer, inside, outside, right_inside, right_outside, choice, key, choice.spread
    )


def _texts(*parts: Questions) -> str:
    return hashlib.sha256(repr([part.pairs.texts for part in parts]).encode()).hexdigest()
