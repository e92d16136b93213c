"""The experiment from models to findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from thinkalike.activations import extract
from thinkalike.comparison.profiling import profile
from thinkalike.errors import InvalidInput
from thinkalike.progress import progress
from thinkalike.recipes.effect_chart import effect_figure
from thinkalike.recipes.effects import Effect, effects_over
from thinkalike.recipes.findings import Findings, Statement, Table, decided
from thinkalike.recipes.places import identity, locate, require
from thinkalike.recipes.salle2024_causal.changed_states import Asked, Change, ask_sentences, ask_text
from thinkalike.recipes.salle2024_causal.figures import causal_figures
from thinkalike.recipes.salle2024_causal.removal import Directions
from thinkalike.recipes.salle2024_causal.rules import RULES
from thinkalike.recipes.salle2024_causal.scales import CausalSettings
from thinkalike.recipes.steps import Steps, content_digest
from thinkalike.stimuli.minimal_pairs import minimal_pairs
from thinkalike.stimuli.table import Stimuli
from thinkalike.stimuli.text import PackedText, pack
from thinkalike.systems import bundled
from thinkalike.systems.calling import frozen
from thinkalike.systems.stack import layers_of
from thinkalike.systems.system import open_system
from thinkalike.types import Facts, Json, Tokenizer

if TYPE_CHECKING:
    import torch
    from torch import nn

NAME = "salle2024-causal"
OF = "sets of sentences"
GRAMMAR = "salle2024"


@dataclass(frozen=True, eq=False)
class Reader:
    """A model that is shown one set after the other."""

    name: str
    model: nn.Module = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    masked: bool
    """Whether it predicts hidden tokens; else the next one"""
    settings: CausalSettings

    @property
    def layers(self) -> list[int]:
        depth = layers_of(self.model).n_blocks
        return sorted({max(1, round(share * depth)) for share in self.settings.depths})

    @cached_property
    def text(self) -> PackedText:
        """All passages, of which every set has its own."""
        s = self.settings
        path = text_of(s)
        packed = pack(path, self.tokenizer, length=s.length, split="paragraphs")
        if len(packed) <= (s.sets - 1) * s.passages:
            raise InvalidInput(
                f"{path.name} has {len(packed)} passages of {s.length} tokens, too few for {s.sets} sets of "
                f"{s.passages}: give more text, or fewer or shorter passages."
            )
        return packed

    def passages(self, number: int) -> np.ndarray:
        """The part of the text that belongs to a set: (n, length) token ids."""
        n = self.settings.passages
        order = np.random.default_rng(self.settings.seed).permutation(len(self.text))
        return self.text.ids[np.sort(order[number * n : (number + 1) * n])]

    def observe(self, number: int) -> list[Json]:
        """All rows of one set: see `measure`."""
        s = self.settings
        seed = 1000 * s.seed + number
        stimuli = Stimuli.from_grammar(s.sentences, seed, grammar=GRAMMAR)
        shown = extract(self.model, stimuli, processor=self.tokenizer, system=self.name, cache=False)
        states = {layer: np.asarray(shown[layer]) for layer in self.layers}
        importance = profile(states, stimuli, seed=s.seed).table()
        text = ask_text(self.passages(number), self.tokenizer, masked=self.masked, seed=seed)
        pairs = minimal_pairs(s.pairs, seed, "agreement")
        sentences = ask_sentences([one for pair in pairs for one in pair], self.tokenizer, masked=self.masked)
        rng = np.random.default_rng(seed)
        rows = []
        for layer, X in states.items():
            made = {name: Directions.of(X, stimuli.features[name]) for name in s.features}
            found = self._outcomes(layer, made, text, sentences, rng)
            for name, one in made.items():
                own = {
                    "importance": float(importance.loc[[layer], name].to_numpy(np.float64)[0]),
                    "directions": one.basis.shape[1],
                }
                rows.append({"set": number, "layer": layer, "feature": name, **own, **found[name]})
        return rows

    def _outcomes(
        self,
        layer: int,
        made: Mapping[str, Directions],
        text: Asked,
        sentences: Asked,
        rng: np.random.Generator,
    ) -> dict[str, dict[str, float]]:
        """Feature → loss and preference with nothing changed, without the feature, without random ones."""
        changes: list[Change] = [_unchanged]
        for one in made.values():
            changes += [one.removed, partial(one.removed, instead=one.random(rng))]
        stack = layers_of(self.model)
        with frozen(self.model):
            scored = [
                asked.log_probabilities(self.model, stack, layer, changes) for asked in (text, sentences)
            ]
        loss = -scored[0].sum(axis=1) / text.where.sum()
        margins = scored[1][:, ::2] - scored[1][:, 1::2]  # right less wrong, (n_changes, n_pairs)
        kinds = ("without", "random")
        found = {}
        for k, name in enumerate(made):
            own = dict(zip(("own", *kinds), (0, 2 * k + 1, 2 * k + 2), strict=True))
            found[name] = {
                **{f"loss {kind}": float(loss[row]) for kind, row in own.items()},
                **{f"preference {kind}": float(margins[row].mean()) for kind, row in own.items()},
                **{f"right {kind}": float((margins[row] > 0).mean()) for kind, row in own.items()},
            }
        return found


def text_of(settings: CausalSettings) -> Path:
    return Path(settings.text or bundled.sample_text())


def _unchanged(states: torch.Tensor) -> torch.Tensor:
    return states


def run(settings: CausalSettings, out: Path) -> Findings:
    """See `thinkalike.recipes.salle2024_causal.run`."""
    require(settings.models, recipe=NAME, folder=settings.models_folder)
    return judge(measure(settings, Steps(out)), settings)


def measure(settings: CausalSettings, steps: Steps) -> pd.DataFrame:
    """A row for every model, set, layer and feature.

    Columns: `model`, `set`, `layer`, `feature`, `importance`, `directions` (how many), and `loss`,
    `preference` and `right` each with ` own`, ` without` and ` random`.
    """
    rows: list[Facts] = []
    common = settings.only("features", "depths", "sentences", "length", "passages", "pairs", "seed")
    common |= {"text": content_digest(text_of(settings))}
    with progress("Sets", settings.sets * len(settings.models)) as bar:
        for name in settings.models:
            reader: list[Reader] = []
            about = {**common, "model": identity(name, settings.models_folder)}
            for number in range(settings.sets):

                def compute(number: int = number, name: str = name, reader: list[Reader] = reader) -> object:
                    if not reader:
                        reader.append(_open(name, settings))
                    return reader[0].observe(number)

                found = steps.json(f"causal-{name}", {**about, "set": number}, compute)
                rows += [{"model": name, **row} for row in found]
                bar.advance()
    return pd.DataFrame(rows)


def _open(name: str, settings: CausalSettings) -> Reader:
    system = open_system(locate(name, settings.models_folder), head="own")
    return Reader(name, system.model, system.tokenizer, system.task == "masked", settings)


def judge(rows: pd.DataFrame, settings: CausalSettings) -> Findings:
    """Statements and figures from the table alone."""
    rows = beside_control(rows)
    statements = tuple(statements_on(rows))
    means = rows.drop(columns=["set"]).groupby(["model", "layer", "feature"], sort=False).mean().reset_index()
    return Findings(
        recipe=NAME,
        scale=settings.scale,
        statements=statements,
        figures=(*causal_figures(rows), effect_figure(statements)),
        tables=(Table("means", "Means over sets", means),),
        settings=settings.plain(),
        notes=(
            "Directions are those of the means of a feature's levels, at the words of the grammar's "
            "sentences; they are taken out at every token. The control takes as much out of every state, "
            "along as many random directions. Neither the text nor the minimal pairs gave the directions.",
        ),
    )


def beside_control(rows: pd.DataFrame) -> pd.DataFrame:
    """With `rise` of the loss and `fall` of the preference, each beside random directions."""
    return rows.assign(
        rise=rows["loss without"] - rows["loss random"],
        fall=rows["preference random"] - rows["preference without"],
    )


def statements_on(rows: pd.DataFrame) -> list[Statement]:
    """By the rules, from the rows of `measure` beside their control."""
    features = [name for name in RULES if name in set(rows["feature"])]
    found = [
        decided(RULES[name], _over_sets(rows[rows["feature"] == name], "rise"), numbers=_numbers(rows, name))
        for name in features
    ]
    ranks = [
        {
            str(model): float(spearmanr(own["importance"], own["rise"]).statistic)
            for model, own in one.groupby("model", sort=False)
            if np.ptp(own["importance"]) > 0 and np.ptp(own["rise"]) > 0
        }
        for _, one in rows.groupby("set")
    ]
    found.append(_decided("order", effects_over(ranks, OF), "Importances or losses do not differ."))
    number, tense = (rows[rows["feature"] == name] for name in ("number", "tense"))
    right = {
        f"{model}, right {kind}": float(own[f"right {kind}"].mean())
        for model, own in number.groupby("model", sort=False)
        for kind in ("own", "without", "random")
    }
    found.append(_decided("agreement", _over_sets(number, "fall"), "It takes number.", right))
    keys = ["model", "set", "layer"]
    both = number.merge(tense, on=keys, suffixes=("", " tense"))
    both["less"] = both["preference without tense"] - both["preference without"]
    found.append(_decided("number alone", _over_sets(both, "less"), "It takes number and tense."))
    return found


def _decided(
    name: str, effects: Sequence[Effect], untested: str, numbers: Mapping[str, float] | None = None
) -> Statement:
    return decided(RULES[name], effects, comment="" if effects else untested, numbers=numbers)


def _over_sets(rows: pd.DataFrame, column: str) -> list[Effect]:
    """For each model the mean over layers, with its range over sets."""
    return [
        Effect.over_draws(own.groupby("set")[column].mean().to_numpy(), OF, str(model))
        for model, own in rows.groupby("model", sort=False)
    ]


def _numbers(rows: pd.DataFrame, feature: str) -> dict[str, float]:
    own = rows[rows["feature"] == feature]
    return {
        f"{model}, {column}": float(one[column].mean())
        for model, one in own.groupby("model", sort=False)
        for column in ("loss own", "loss without", "loss random")
    }


__all__ = ["judge", "measure", "run"]
