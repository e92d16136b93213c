"""Seed, position encoding and architecture told apart: models that differ from another one in that alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from thinkalike.recipes.effects import effects_over
from thinkalike.recipes.findings import Statement, decided
from thinkalike.recipes.places import lacking
from thinkalike.recipes.salle2024.measures import POSITION, Effects, blocks_of
from thinkalike.recipes.salle2024.observing import taus_of
from thinkalike.recipes.salle2024.rules import BEYOND_RULES
from thinkalike.recipes.salle2024.scales import SalleSettings
from thinkalike.recipes.salle2024.work import OF, Work
from thinkalike.stimuli.table import Stimuli
from thinkalike.wording import listed

Tables = Mapping[str, pd.DataFrame]


def second_seeds(work: Work) -> Statement:
    """Each model with its second seed, against the nearest of another architecture."""
    of = {seed: first_seed(seed) for seed in work.settings.second_seeds}

    def nearer(there: Sequence[str], tables: Tables) -> Effects:
        return {
            of[seed]: alike(tables[of[seed]], tables[seed]) - nearest_other(of[seed], work, tables)
            for seed in there
        }

    return _asked(work, "second seeds", [seed for seed in of if of[seed] in work.cast.models], nearer)


def positions_or_architecture(work: Work) -> Statement:
    """A model with the same of no or other positions, against the nearest of another architecture."""
    name, controls = told(work.settings)

    def nearer(there: Sequence[str], tables: Tables) -> Effects:
        other = nearest_other(name, work, tables)
        return {one: alike(tables[name], tables[one]) - other for one in there}

    return _asked(work, "positions or architecture", controls if name in work.cast.models else [], nearer)


def positions_or_seed(work: Work) -> Statement:
    """A model with its second seed, against the same with no or other positions."""
    name, controls = told(work.settings)
    seeds = [seed for seed in work.settings.second_seeds if first_seed(seed) == name]

    def further(there: Sequence[str], tables: Tables) -> Effects:
        seed = alike(tables[name], tables[seeds[0]])
        return {one: seed - alike(tables[name], tables[one]) for one in there}

    return _asked(work, "positions or seed", controls if seeds else [], further, beside=seeds[:1])


def nearer_without(work: Work) -> Statement:
    """Whether a Transformer that is told nothing of positions is nearer to a model that never was."""
    name, controls = told(work.settings)
    state_space = work.settings.state_space

    def nearer(there: Sequence[str], tables: Tables) -> Effects:
        beside = tables[str(state_space)]
        return {one: alike(tables[one], beside) - alike(tables[name], beside) for one in there}

    return _asked(work, "nearer without positions", controls[:1] if state_space else [], nearer)


def trained_without(work: Work) -> Statement:
    """How much less of word position a model has that was trained without positions."""
    return _asked(work, "trained without positions", told(work.settings)[1][:1], _less_position(work))


def other_positions(work: Work) -> Statement:
    """How much less of word position a model has that is told of positions in another way."""
    return _asked(work, "other positions", told(work.settings)[1][1:], _less_position(work))


def _less_position(work: Work) -> Callable[[Sequence[str], Tables], Effects]:
    name, _ = told(work.settings)
    return lambda there, tables: {one: position_of(tables[name]) - position_of(tables[one]) for one in there}


def _asked(
    work: Work,
    rule: str,
    wanted: Sequence[str],
    measure: Callable[[Sequence[str], Tables], Effects],
    *,
    beside: Sequence[str] = (),
) -> Statement:
    """One statement on those of the wanted models that are here; without all of `beside` there is none."""
    missing = lacking([*wanted, *beside], work.settings.models_folder)
    there = [one for one in wanted if one not in missing]
    if not there or any(one in missing for one in beside):
        reason = f"No such model is here{f': {listed(missing)} would be' if missing else ''}."
        return decided(BEYOND_RULES[rule], (), comment=reason)
    name, _ = told(work.settings)
    models = dict.fromkeys(model for model in (*work.cast.models, name, *there, *beside) if model)

    def on_set(k: int, stimuli: Stimuli) -> Effects:
        return measure(there, {model: work.table(model, stimuli) for model in models})

    said = f"Not here: {listed(missing)}." if missing else ""
    return decided(BEYOND_RULES[rule], effects_over(work.draws(rule, on_set), OF), comment=said)


def told(settings: SalleSettings) -> tuple[str, list[str]]:
    """The model whose positions are changed, and those in which they are: without any first."""
    name, *controls = settings.position_controls or ("",)
    return name, controls


def first_seed(name: str) -> str:
    """The model that `NAME-seedN` is another seed of."""
    return name.rpartition("-")[0]


def nearest_other(name: str, work: Work, tables: Tables) -> float:
    """How alike a model is to the most alike one of another architecture."""
    return max(alike(tables[name], tables[other]) for other in work.cast.models if other != name)


def alike(a: pd.DataFrame, b: pd.DataFrame) -> float:
    """Mean τ_w of the blocks of two models at equal depth; 1 for a model with itself.

    The mean over all pairs of blocks is no measure here: blocks of one model differ, so that a model may be
    less like itself by it than like another whose blocks are all of one kind.
    """
    first, second = blocks_of(a), blocks_of(b)
    taus = taus_of({"a": first, "b": second})[: len(first), len(first) :]
    steps = np.arange(max(taus.shape))
    return float(np.nanmean(taus[steps * taus.shape[0] // len(steps), steps * taus.shape[1] // len(steps)]))


def position_of(table: pd.DataFrame) -> float:
    """The mean importance of word position over blocks."""
    return float(blocks_of(table)[POSITION].mean())
