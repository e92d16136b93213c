"""Everything between the chosen models, set of questions by set, as arrays: what statements are judged on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from thinkalike.labels import Floats
from thinkalike.progress import progress
from thinkalike.recipes.brown2023_generalization.barriers import barriers
from thinkalike.recipes.brown2023_generalization.choice import Choice
from thinkalike.recipes.brown2023_generalization.classifier_cka import Geometry, between, geometries
from thinkalike.recipes.brown2023_generalization.classifiers import Bools, Questions, sets_of
from thinkalike.recipes.brown2023_generalization.identity import common_depth, penalties, stitched_right
from thinkalike.recipes.brown2023_generalization.population import Population
from thinkalike.recipes.brown2023_generalization.scales import GeneralizationSettings
from thinkalike.recipes.steps import Steps

if TYPE_CHECKING:
    from torch import nn

LAST = 2
"""Layers, from the top, that are stitched out of distribution"""


@dataclass(frozen=True, eq=False)
class Measured:
    """Values between m models; NaN between models that stand in no choice together.

    Attributes
    ----------
    shares, last_shares : (n_layers,), (n_last,)
        Of the layers that the bottom model has; out of distribution only the last.
    inside, outside : (n_sets, n_layers, m, m), (n_sets, n_last, m, m)
        Accuracy of bottom (row) stitched to top (column).
    geometry
        Variant → CKA and distances.
    barriers : (m, m)
    """

    names: tuple[str, ...]
    shares: Floats
    last_shares: Floats
    inside: Floats = field(repr=False)
    outside: Floats = field(repr=False)
    geometry: Mapping[str, Geometry] = field(repr=False)
    barriers: Floats = field(repr=False)

    def among(self, choice: Choice) -> Measured:
        """Of the models of one choice, in its order."""
        places = np.array([self.names.index(name) for name in choice.names])
        return Measured(
            names=choice.names,
            shares=self.shares,
            last_shares=self.last_shares,
            inside=between(self.inside, places),
            outside=between(self.outside, places),
            geometry={name: one.among(places) for name, one in self.geometry.items()},
            barriers=between(self.barriers, places),
        )

    @property
    def costs(self) -> Floats:
        """Accuracy that stitching costs, in distribution: (n_sets, n_layers, m, m)."""
        return penalties(self.inside)


def measure(population: Population, settings: GeneralizationSettings, steps: Steps) -> Measured:
    """Stitch, compare and interpolate; every part is kept once it is done."""
    models = population.load(device=settings.device)
    depth = common_depth(models)
    layers = tuple(range(1, depth + 1))
    asked, key, wanted = population.asked, population.key, population.wanted()
    stitched = partial(_stitched, models, wanted=wanted, key=key, sets=settings.sets, steps=steps)
    crossed = asked.inside.first(settings.n_barriers)
    barrier = steps.arrays(
        "barriers",
        {"key": key, "n": len(crossed)},
        lambda: {"barriers": barriers(models, crossed, wanted)},
    )
    return Measured(
        names=population.chosen,
        shares=np.array(layers) / depth,
        last_shares=np.array(layers[-LAST:]) / depth,
        inside=stitched(asked.inside.first(settings.n_stitched), layers, "inside"),
        outside=stitched(asked.outside, layers[-LAST:], "outside"),
        geometry=geometries(
            models, asked.inside.pairs, settings, tokenizer=population.tokenizer, key=key, steps=steps
        ),
        barriers=barrier["barriers"],
    )


def _stitched(
    models: Mapping[str, nn.Module],
    questions: Questions,
    layers: tuple[int, ...],
    part: str,
    *,
    wanted: Bools,
    key: Mapping[str, object],
    sets: int,
    steps: Steps,
) -> Floats:
    """Accuracies (n_sets, n_layers, m, m); each set of questions is kept once it is done."""
    found = []
    every = sets_of(len(questions), sets)
    with progress(f"stitching, {part}", len(every)) as bar:
        for number, rows in enumerate(every):
            about = {"key": key, "part": part, "rows": [rows.start, rows.stop], "layers": layers}
            found.append(
                steps.arrays(
                    f"stitched-{part}-{number}",
                    about,
                    partial(_accuracies, models, questions, rows, layers, wanted),
                )["right"]
            )
            bar.advance()
    return np.stack(found)


def _accuracies(
    models: Mapping[str, nn.Module], questions: Questions, rows: slice, layers: tuple[int, ...], wanted: Bools
) -> dict[str, Floats]:
    return {"right": stitched_right(models, questions, rows, layers, wanted)}
