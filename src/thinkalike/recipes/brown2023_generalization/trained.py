"""A population of our own: classifiers from one model, which differ in the seed only, and taught ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thinkalike.progress import progress
from thinkalike.recipes.brown2023_generalization.choice import choose_ends, plant
from thinkalike.recipes.brown2023_generalization.classifiers import Questions, ask
from thinkalike.recipes.brown2023_generalization.data import (
    NANO_CLASSES,
    Pairs,
    dealt,
    overlap_pairs,
    training_pairs,
)
from thinkalike.recipes.brown2023_generalization.finetuning import fine_tuned, kept_model, pair_reader
from thinkalike.recipes.brown2023_generalization.population import (
    PLANTED,
    SEEDS,
    Asked,
    Population,
    all_answers,
    share_right,
)
from thinkalike.recipes.brown2023_generalization.scales import GeneralizationSettings
from thinkalike.recipes.places import locate
from thinkalike.recipes.steps import Steps
from thinkalike.recipes.weights import weights_digest
from thinkalike.systems.system import LoadOptions, open_system
from thinkalike.types import Tokenizer

if TYPE_CHECKING:
    from torch import nn

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

    def asked(self) -> Asked:
        """Questions out of distribution are drawn together, no two alike, so both parts share none."""
        s = self.settings
        shifted = overlap_pairs(s.n_choosing + s.n_outside, **self._shape(OUTSIDE))
        choosing, judging = dealt(shifted, s.n_choosing, seed=s.seed)
        return Asked(
            inside=self._ask(self.pairs(s.n_inside, INSIDE, s.counterexamples)),
            choosing=self._ask(choosing),
            outside=self._ask(judging),
        )

    def _shape(self, part: int) -> dict[str, Any]:
        own = self.settings.only("cases", "longest")
        return {**own, "tokenizer": self.tokenizer, "seed": 4 * self.settings.seed + part}

    def _ask(self, pairs: Pairs) -> Questions:
        longest = self.settings.longest
        return ask(pairs, classes=NANO_CLASSES, tokenizer=self.tokenizer, longest=longest)


def fine_tuned_population(settings: GeneralizationSettings, steps: Steps) -> Population:
    """Train `n_models` that differ in the seed, and beside them the control: some that were taught."""
    options = LoadOptions(device="cpu")
    reads = settings.reader_steps > 0
    place = locate(settings.base, settings.models_folder)
    system = open_system(place, options, head="masked" if reads else None)
    course = Course(settings, system.tokenizer)
    base = system.model
    if reads:
        base = open_system(_reader(base, course, steps), options, head="masked").model
    about = {**course.common, **_training(settings), "reader": weights_digest(base)}

    def train(names: Mapping[str, int], counterexamples: float) -> dict[str, str]:
        lessons, own = course.training(counterexamples), {**about, "counterexamples": counterexamples}
        return {name: str(folder) for name, folder in _classifiers(names, base, lessons, own, course, steps)}

    n, asked = settings.n_chosen, course.asked()
    seeds = train({f"seed {k}": k for k in range(settings.n_models)}, settings.counterexamples)
    taught = train({f"taught {k}": TAUGHT + k for k in range(n)}, settings.taught_counterexamples)
    places = seeds | taught
    right = all_answers(
        places, asked, key=about, tokenizer=course.tokenizer, device=settings.device, steps=steps
    )
    by_chance, by_lesson = (
        share_right({name: right[name] for name in part}, "choosing") for part in (seeds, taught)
    )
    choices = {SEEDS: choose_ends(by_chance, n), PLANTED: plant(by_chance, by_lesson, n)}
    key = {**about, "counterexamples": settings.counterexamples, "data": asked.digest()}
    key |= {"chosen": [choice.names for choice in choices.values()]}
    return Population(places, course.tokenizer, asked, right, choices, key)


def _training(settings: GeneralizationSettings, prefix: str = "") -> dict[str, Any]:
    return {name: getattr(settings, prefix + name) for name in ("steps", "batch", "rate")}


def _reader(model: nn.Module, course: Course, steps: Steps) -> Path:
    """The folder of the model once it has learnt to read pairs."""
    settings = course.settings
    how, n = _training(settings, "reader_"), settings.reader_pairs
    # All of full overlap, half of them entailments: what overlap means is left open.
    return kept_model(
        steps.model_path("pair-reader", {**course.common, **how, "base": weights_digest(model), "n": n}),
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
    base: nn.Module,
    lessons: Questions,
    about: Mapping[str, object],
    course: Course,
    steps: Steps,
) -> Iterable[tuple[str, Path]]:
    """Name and folder of each classifier, trained where it is not yet there."""
    how = _training(course.settings)
    with progress("fine-tuning", len(names)) as bar:
        for name, number in names.items():

            def make(seed: int = number) -> nn.Module:
                return fine_tuned(base, lessons, seed=seed, **how)

            folder = steps.model_path(f"classifier-{name}", {**about, "number": number})
            yield name, kept_model(folder, make, course.tokenizer)
            bar.advance()
