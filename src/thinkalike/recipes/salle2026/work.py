"""The work of `salle2026`: every model shown every set of sentences, read at the last token; kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from thinkalike.activations.store import Activations
from thinkalike.comparison.profiling import ProfilingPlan, plan_profiles, profile
from thinkalike.errors import InvalidInput
from thinkalike.labels import Floats
from thinkalike.pairs.distances import make_target
from thinkalike.pairs.pairset import Pairs
from thinkalike.pairs.ranks import centred_ranks, sort_distances
from thinkalike.populations.model_facts import model_facts
from thinkalike.progress import progress
from thinkalike.recipes.places import identity, locate, of_every
from thinkalike.recipes.salle2026.cohort import COHORT
from thinkalike.recipes.salle2026.scales import PopulationSettings
from thinkalike.recipes.steps import Arrays, Steps
from thinkalike.stimuli.table import Stimuli
from thinkalike.types import Json

if TYPE_CHECKING:
    from thinkalike.populations.atlas import Atlas

RELATIVE, CLAUSES = "relative", "clauses"
PAIRS = 50_000
"""Pairs of sentences that the geometry of whole models is judged on"""
KINDS = {"modernbert": "transformer", "mamba": "state-space"}
GROUPS = {
    "size": ("parameters", "depth", "width"),
    "design": ("positions", "activation", "norm"),
    "training": ("tokens", "objective"),
}
"""Facts that are asked about as one; class, family and date are each by themselves"""
FACTS = ("family", "class", "date", *(fact for own in GROUPS.values() for fact in own))


@dataclass(frozen=True, eq=False)
class Observation:
    """All models on one set of sentences.

    Attributes
    ----------
    importance
        Of each model (n_blocks, n_folds, n_features): raw, held-out, full W.
    geometry : (n_models, n_pairs)
        Ranks of the distances between sentences in all blocks side by side.
    """

    models: tuple[str, ...]
    features: tuple[str, ...]
    importance: tuple[Floats, ...]
    geometry: Floats


@cache
def drawn(kind: str, n: int, seed: int) -> tuple[Stimuli, ProfilingPlan]:
    """A set of whole sentences with a full stop, and the side of its features."""
    stimuli = Stimuli.from_grammar(n, seed, grammar=kind, full_stop=True)
    if "n_words" in stimuli.features:  # so that all features are nominal, as they are in the paper
        stimuli = stimuli.choose(drop=["n_words"])
    return stimuli, plan_profiles(stimuli, interactions=True, n_folds=5)


@cache
def described() -> Atlas:
    """The bundled models with their cards."""
    from thinkalike.populations.atlas import Atlas

    return Atlas()


@dataclass(frozen=True)
class Work:
    """The settings of a run, and where its steps are kept."""

    settings: PopulationSettings
    steps: Steps

    @property
    def models(self) -> tuple[str, ...]:
        return self.settings.compared

    def observations(self, kind: str) -> list[Observation]:
        """All models on every set of one kind; one model is in memory at a time."""
        seeds = [1000 * self.settings.seed + k for k in range(self.settings.sets)]
        with progress(f"Models on {kind} sentences", len(self.models)) as bar:

            def look(model: str) -> list[Arrays]:
                bar.advance()
                return [self._looked(model, kind, seed) for seed in seeds]

            found = of_every(self.models, look)
        by_set = zip(*found, strict=True)
        return [self._observation(kind, seed, looked) for seed, looked in zip(seeds, by_set, strict=True)]

    def _observation(self, kind: str, seed: int, looked: Sequence[Arrays]) -> Observation:
        stimuli, _ = drawn(kind, self.settings.sentences, seed)
        importance = [one["importance"] for one in looked]
        known = np.isfinite(np.concatenate([one.mean(axis=(0, 1))[None] for one in importance])).all(axis=0)
        return Observation(
            self.models,
            tuple(str(name) for name, is_known in zip(stimuli.features, known, strict=True) if is_known),
            tuple(one[:, :, known] for one in importance),
            np.stack([one["geometry"] for one in looked]),
        )

    def _looked(self, model: str, kind: str, seed: int) -> Arrays:
        stimuli, plan = drawn(kind, self.settings.sentences, seed)
        place = self.settings.models_folder
        about = {
            "model": identity(model, place), "stimuli": stimuli.digest, "dtype": self.settings.dtype,
            "encoding": plan.settings,
        }  # fmt: skip

        def compute() -> Arrays:
            from thinkalike.activations import extract

            answers = extract(
                locate(model, place),
                stimuli,
                system=model,
                pooling="last",
                dtype=self.settings.dtype,
                cache=False,
            )
            blocks = without_embeddings(answers)
            made = profile(blocks, stimuli, plan=plan)
            return {"importance": made.importance, "geometry": ranks_of(blocks)}

        return self.steps.arrays("looked", about, compute)

    @cached_property
    def facts(self) -> pd.DataFrame:
        """What is known of every model, one row each: of the bundled from their cards, of others as told."""
        rows = dict(zip(self.models, of_every(self.models, self._facts_of), strict=True))
        table = pd.DataFrame(rows).T.reindex(columns=list(FACTS))
        if self.settings.metadata is not None:
            own = pd.read_csv(self.settings.metadata, index_col=0)
            table = own.reindex(table.index).combine_first(table)
        for name in ("parameters", "depth", "width", "tokens", "date"):
            table[name] = pd.to_numeric(table[name])
        return table.dropna(axis=1, how="any")

    def _facts_of(self, model: str) -> Json:
        about = {"model": identity(model, self.settings.models_folder)}
        return self.steps.json("facts", about, lambda: self._known(model))

    def _known(self, model: str) -> Json:
        from thinkalike.systems.system import LoadOptions, open_system

        if model in COHORT:
            config = open_system(locate(model, self.settings.models_folder), LoadOptions()).config
            return {
                **(model_facts(config) if config is not None else {}),
                "objective": "causal",
                **COHORT[model],
            }
        bundled = described()
        if model not in bundled.names:
            raise InvalidInput(f"Nothing is known of {model}: give a table, --set metadata=FILE.")
        facts = dict(bundled[model].facts)
        return {**facts, "class": KINDS.get(str(facts["architecture"]), "transformer")}


def without_embeddings(found: Activations) -> Activations:
    """The blocks alone: what enters the first is the same full stop in every sentence."""
    if found.layers[0] != 0:
        return found
    return replace(
        found, layers=found.layers[1:], n_units=found.n_units[1:], _read=lambda k: found[found.layers[k + 1]]
    )


def ranks_of(found: Activations) -> Floats:
    """Centred ranks of the distances between sentences, all blocks side by side."""
    pairs = Pairs.of(len(found[found.layers[0]]), max_pairs=PAIRS, seed=0)
    total, slack = np.zeros(len(pairs)), np.zeros(pairs.n_items)
    for layer in found.layers:
        y, rounding = make_target(found[layer], "euclidean").between(pairs.i, pairs.j)
        total += y
        slack += rounding
    ranks, _ = centred_ranks(*sort_distances(total, pairs.i, pairs.j, slack))
    kept: Floats = ranks.astype(np.float32)
    return kept
