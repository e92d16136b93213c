"""`salle2024` from models to findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from thinkalike.errors import InvalidInput
from thinkalike.recipes.effect_chart import effect_figure
from thinkalike.recipes.effects import effects_over
from thinkalike.recipes.findings import Findings, Statement, Table, decided
from thinkalike.recipes.places import lacking, require
from thinkalike.recipes.salle2024.measures import MEASURES
from thinkalike.recipes.salle2024.observing import Observation
from thinkalike.recipes.salle2024.other_analyses import tried
from thinkalike.recipes.salle2024.rules import BEYOND_RULES, PAPER_RULES
from thinkalike.recipes.salle2024.scales import SalleSettings
from thinkalike.recipes.salle2024.sets import NATURAL, NOT_FIRST, PAPER, UNTANGLED
from thinkalike.recipes.salle2024.told_apart import first_seed
from thinkalike.recipes.salle2024.work import OF, Work
from thinkalike.recipes.steps import Steps

NOBODY = "No state-space model is here, so nothing is said of Mamba."
NO_GRID = " The grid of other analyses was not tried here, so no verdict says how many of them share it."


def run(settings: SalleSettings, out: Path) -> Findings:
    """Test each statement of the paper on several sets of sentences, and look beyond it."""
    from thinkalike.recipes.salle2024.beyond import look_beyond
    from thinkalike.recipes.salle2024.figures import draw

    work = Work(settings, Steps(out))
    if len(work.cast.models) < 2:
        raise InvalidInput("salle2024 compares models: name two or more as transformers and state_space.")
    require(work.cast.models, recipe="salle2024", folder=settings.models_folder)
    kinds = [PAPER, NOT_FIRST, UNTANGLED, *([NATURAL] if settings.treebank else [])]
    seen = {kind: work.observations(kind) for kind in kinds}
    grid = tried(work)
    paper = [judged(name, work, seen[PAPER], grid) for name in PAPER_RULES]
    beyond = [judged("architecture", work, seen[PAPER], grid), *look_beyond(work)]
    statements = (*paper, *beyond)
    return Findings(
        recipe="salle2024",
        scale=settings.scale,
        statements=statements,
        figures=(*draw(work, seen), effect_figure(statements)),
        tables=(by_kind(work, seen, second_cast(work)),),
        settings=settings.plain(),
        notes=(reading(work, seen),),
    )


def judged(
    name: str, work: Work, seen: list[Observation], grid: Mapping[str, Observation] | None = None
) -> Statement:
    """One claim on several sets of sentences, and under other analyses."""
    rule, measure = {**PAPER_RULES, **BEYOND_RULES}[name], MEASURES[name]
    draws = [measure(one, work.cast) for one in seen]
    tested = any(draws)
    return decided(
        rule,
        effects_over(draws, OF) if tested else (),
        comment="" if tested else NOBODY,
        analyses={key: measure(one, work.cast) for key, one in (grid or {}).items()},
    )


def second_cast(work: Work) -> Work | None:
    """The same work with the second seed of every model; None unless all of them are here."""
    s = work.settings
    seeds = {first_seed(name): name for name in s.second_seeds}
    if not seeds or set(work.cast.models) - set(seeds) or lacking(seeds.values(), s.models_folder):
        return None
    transformers = tuple(seeds[name] for name in s.transformers)
    state_space = None if s.state_space is None else seeds[s.state_space]
    return replace(work, settings=replace(s, transformers=transformers, state_space=state_space))


def by_kind(work: Work, seen: Mapping[str, list[Observation]], second: Work | None = None) -> Table:
    """The verdict on every claim of the paper by the kind of sentences, and of second seeds of the models."""
    columns = {kind: (work, sets) for kind, sets in seen.items()}
    caption = (
        "The untangled grammar separates part of speech from the position at either end. Natural "
        "text has the paper's eight features. Verdicts here are by ranges alone, without other analyses."
    )
    if second is not None:
        columns["second seeds of all models"] = (second, second.observations(PAPER))
        caption += " The last column has the sentences of the first, and models trained from another seed."
    rows = [
        {"claim": rule.claim, **{column: judged(name, *of).verdict for column, of in columns.items()}}
        for name, rule in PAPER_RULES.items()
    ]
    return Table(
        name="kinds",
        title=f"The same rules on other sentences{' and other seeds' if second else ''}",
        frame=pd.DataFrame(rows),
        caption=caption,
    )


def reading(work: Work, seen: Mapping[str, list[Observation]]) -> str:
    s = work.settings
    text = (
        f"{s.sets} sets of {s.sentences} sentences of the probing grammar, shown to "
        f"{', '.join(work.cast.models)}. Layer k is what leaves block k, and layer 0 what enters the first; "
        "transformers' own numbers for Mamba may be shifted by one against these."
    )
    if NATURAL in seen:
        words = work.sets(NATURAL)
        n = len({name for one in words for name in one.items["sentence"]})
        text += (
            f" Natural text: {n:,} sentences of {Path(str(s.treebank)).name}, {sum(map(len, words)):,} words "
            f"in {s.sets} sets."
        )
    if not s.analyses:
        text += NO_GRID
    return text
