"""`salle2024` from models to findings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from thinkalike.recipes.effect_chart import effect_figure
from thinkalike.recipes.effects import effects_over
from thinkalike.recipes.findings import Findings, Statement, Table, decided
from thinkalike.recipes.places import require
from thinkalike.recipes.salle2024.analyses import tried
from thinkalike.recipes.salle2024.measures import MEASURES
from thinkalike.recipes.salle2024.observing import Observation
from thinkalike.recipes.salle2024.rules import BEYOND_RULES, PAPER_RULES
from thinkalike.recipes.salle2024.scales import SalleSettings
from thinkalike.recipes.salle2024.sets import NATURAL, NOT_FIRST, PAPER, UNTANGLED
from thinkalike.recipes.salle2024.work import OF, Work
from thinkalike.recipes.steps import Steps

NOBODY = "No state-space model is here, so nothing is said of Mamba."
NO_GRID = " The grid of other analyses was not tried here, so no verdict says how many of them share it."


def run(settings: SalleSettings, out: Path) -> Findings:
    """Test each statement of the paper on several sets of sentences, and look beyond it."""
    from thinkalike.recipes.salle2024.beyond import look_beyond
    from thinkalike.recipes.salle2024.figures import draw

    work = Work(settings, Steps(out))
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
        tables=(by_kind(work, seen),),
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


def by_kind(work: Work, seen: Mapping[str, list[Observation]]) -> Table:
    """The verdict on every claim of the paper by the kind of sentences."""
    rows = [
        {"claim": rule.claim, **{kind: judged(name, work, sets).verdict for kind, sets in seen.items()}}
        for name, rule in PAPER_RULES.items()
    ]
    return Table(
        name="kinds",
        title="The same rules on other sentences",
        frame=pd.DataFrame(rows),
        caption="The untangled grammar separates part of speech from the position at either end. Natural "
        "text has the paper's eight features. Verdicts here are by ranges alone, without other analyses.",
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
