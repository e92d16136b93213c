"""A population of our own: forty classifiers from one small model, which differ in the seed only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from thinkalike.progress import progress
from thinkalike.recipes.brown2023_generalization.choice import choose_ends, plant
from thinkalike.recipes.brown2023_generalization.classifiers import Questions, accuracy, ask, load_classifier
from thinkalike.recipes.brown2023_generalization.data import (
    NANO_CLASSES,
    Pairs,
    overlap_pairs,
    training_pairs,
)
from thinkalike.recipes.brown2023_generalization.finetuning import fine_tuned, kept_model, pair_reader
from thinkalike.recipes.brown2023_generalization.population import Population, questions_digest
from thinkalike.recipes.brown2023_generalization.scales import GeneralizationSettings
from thinkalike.recipes.steps import Steps
from thinkalike.recipes.weights import weights_digest
from thinkalike.systems.system import LoadOptions, open_system
from thinkalike.types import Json, Model, Tokenizer

TRAINING, INSIDE, OUTSIDE, READING = range(4)  # the seeds of the parts, so that none repeats another
TAUGHT = 1000  # the first seed of classifiers that are taught with counterexamples


@dataclass(frozen=True, eq=False)
class Course:
    """The pairs to learn from and to be asked, by the settings of a run."""

    settings: GeneralizationSettings
    tokenizer: Tokenizer

    @property
    def common(self) -> dict[str, object]:
        return self.settings.only("cases", "longest", "seed", "n_train")

    def pairs(self, n: int, part: int, counterexamples: float) -> Pairs:
        return training_pairs(n, counterexamples=counterexamples, **self._shape(part))

    def training(self, counterexamples: float) -> Questions:
        return self._ask(self.pairs(self.settings.n_train, TRAINING, counterexamples))

    def inside(self) -> Questions:
        return self._ask(self.pairs(self.settings.n_inside, INSIDE, self.settings.counterexamples))

    def outside(self) -> Questions:
        return self._ask(overlap_pairs(self.settings.n_outside, **self._shape(OUTSIDE)))

    def _shape(self, part: int) -> Json:
        own = self.settings.only("cases", "longest")
        return {**own, "tokenizer": self.tokenizer, "seed": 4 * self.settings.seed + part}

    def _ask(self, pairs: Pairs) -> Questions:
        longest = self.settings.longest
        return ask(pairs, classes=NANO_CLASSES, tokenizer=self.tokenizer, longest=longest)


@dataclass(frozen=True, eq=False)
class Trained:
    """Classifiers that had the same lessons: where they are, and what they get right."""

    places: dict[str, str] = field(default_factory=dict)
    inside: dict[str, float] = field(default_factory=dict)
    outside: dict[str, float] = field(default_factory=dict)

    def joined(self, other: Trained) -> Trained:
        return Trained(self.places | other.places, self.inside | other.inside, self.outside | other.outside)


def fine_tuned_population(settings: GeneralizationSettings, steps: Steps) -> Population:
    """Train `n_models`; where they do not differ enough out of distribution, add some that were taught."""
    options = LoadOptions(device="cpu")
    system = open_system(settings.base, options, head="masked")
    course = Course(settings, system.tokenizer)
    base: Model = open_system(_reader(system.model, course, steps), options, head="masked").model
    inside, outside = course.inside(), course.outside()
    about = {**course.common, **_training(settings), "reader": weights_digest(base)}

    def train(names: Mapping[str, int], counterexamples: float) -> Trained:
        lessons = course.training(counterexamples)
        own = {**about, "counterexamples": counterexamples}
        found = Trained()
        for name, folder in _classifiers(names, base, lessons, own, course, steps):
            model = load_classifier(folder, tokenizer=course.tokenizer)
            found.places[name] = str(folder)
            found.inside[name], found.outside[name] = accuracy(model, inside), accuracy(model, outside)
        return found

    n = settings.n_chosen
    found = train({f"seed {k}": k for k in range(settings.n_models)}, settings.counterexamples)
    choice = choose_ends(found.outside, n)
    natural = choice.spread
    if natural < settings.enough_spread:
        taught = train({f"taught {k}": TAUGHT + k for k in range(n)}, settings.taught_counterexamples)
        choice = plant(found.outside, taught.outside, n)
        found = found.joined(taught)
    key = {**about, "counterexamples": settings.counterexamples, "chosen": choice.names}
    key |= {"data": questions_digest(inside, outside)}
    return Population(
        found.places, course.tokenizer, inside, outside, found.inside, found.outside, choice, key, natural
    )


def _training(settings: GeneralizationSettings, prefix: str = "") -> Json:
    return {name: getattr(settings, prefix + name) for name in ("steps", "batch", "rate")}


def _reader(model: Model, course: Course, steps: Steps) -> Path:
    """The folder of the model once it has learnt to read pairs."""
    settings = course.settings
    how, n = _training(settings, "reader_"), settings.reader_pairs
    # All of full overlap, half of them entailments: what overlap means is left open.
    return kept_model(
        steps.path("pair-reader", {**course.common, **how, "base": weights_digest(model), "n": n}),
        lambda: pair_reader(
            model,
            course.pairs(n, READING, counterexamples=0.5),
            tokenizer=course.tokenizer,
            seed=settings.seed,
            **how,
        ),
        course.tokenizer,
    )


def _classifiers(
    names: Mapping[str, int],
    base: Model,
    lessons: Questions,
    about: Mapping[str, object],
    course: Course,
    steps: Steps,
) -> Iterable[tuple[str, Path]]:
    """Name and folder of each classifier, trained where it is not yet there."""
    how = _training(course.settings)
    with progress("fine-tuning", len(names)) as bar:
        for name, number in names.items():

            def make(seed: int = number) -> Model:
                return fine_tuned(base, lessons, seed=seed, **how)

            folder = steps.path(f"classifier-{name}", {**about, "number": number})
            yield name, kept_model(folder, make, course.tokenizer)
            bar.advance()
