"""`salle2026` from models to findings."""

from __future__ import annotations

from pathlib import Path

from thinkalike.errors import InvalidInput
from thinkalike.populations.why import FEWEST
from thinkalike.populations.why_sensitivity import (
    WhyAnalysis,
    WhySensitivity,
    other_cohorts,
    other_groupings,
    why_sensitivity,
)
from thinkalike.progress import say
from thinkalike.recipes.effect_chart import effect_figure
from thinkalike.recipes.effects import effects_over
from thinkalike.recipes.findings import Findings, Statement, Table, decided
from thinkalike.recipes.places import require
from thinkalike.recipes.salle2026.cohort import COHORT
from thinkalike.recipes.salle2026.measures import MEASURES, Seen
from thinkalike.recipes.salle2026.rules import BEYOND_RULES, PAPER_RULES
from thinkalike.recipes.salle2026.scales import PopulationSettings
from thinkalike.recipes.salle2026.work import CLAUSES, RELATIVE, Work
from thinkalike.recipes.steps import Steps

OF = "sets of sentences"
BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
NOT_KNOWN = {
    "date": "Nothing is known of dates.",
    "development": "Dates are known, so nothing stands for them.",
}


def run(settings: PopulationSettings, out: Path) -> Findings:
    """Ask why models are alike on several sets of sentences, as the third version does, and test it."""
    from thinkalike.recipes.salle2026.figures import draw

    work = Work(settings, Steps(out))
    if len(work.models) < FEWEST:
        raise InvalidInput(f"There are {len(work.models)} models: this takes {FEWEST} or more.")
    require(work.models, recipe="salle2026", folder=settings.models_folder)
    say(needs(settings))
    facts = work.facts
    others = [Seen(one, facts, settings.permutations) for one in work.observations(CLAUSES)]
    seen = [
        Seen(one, facts, settings.permutations, other)
        for one, other in zip(work.observations(RELATIVE), others, strict=True)
    ]
    statements = tuple(judged(name, seen) for name in (*PAPER_RULES, *BEYOND_RULES))
    sensitivity = other_choices(seen[0])
    return Findings(
        recipe="salle2026",
        scale=settings.scale,
        statements=statements,
        figures=(*draw(seen), effect_figure(statements)),
        tables=(reasons(seen), leaders(sensitivity), over_choices(sensitivity)),
        settings=settings.plain(),
        notes=(reading(work),),
    )


def needs(settings: PopulationSettings) -> str:
    """What a run will take, as far as it is known before any model is opened."""
    told = [float(str(COHORT[name]["parameters"])) for name in settings.compared if name in COHORT]
    shown = (
        f"{len(settings.compared)} models, one in memory at a time, are each shown {2 * settings.sets} sets "
        f"of {settings.sentences} sentences."
    )
    if not told:
        return shown
    unit = BYTES.get(settings.dtype, 4) / 1e9
    return (
        f"{shown} {len(told)} come from the hub or from --models: {sum(told) / 1e9:.0f} billion parameters, "
        f"about {unit * sum(told):.0f} GB of weights in {settings.dtype}, the largest "
        f"{unit * max(told):.0f} GB."
    )


def judged(name: str, seen: list[Seen]) -> Statement:
    """One claim on all sets of sentences."""
    rule = {**PAPER_RULES, **BEYOND_RULES}[name]
    draws = [MEASURES[name](one) for one in seen]
    tested = any(draws)
    comment = (
        "" if tested else NOT_KNOWN.get(name, "The facts that it is about do not differ among these models.")
    )
    return decided(rule, effects_over(draws, OF) if tested else (), comment=comment)


def reasons(seen: list[Seen]) -> Table:
    """Facts on the first set: importance, and what the tests say."""
    return Table(
        name="reasons",
        title="Facts about the models, on the first set",
        frame=seen[0].why.to_frame().drop(columns=["low", "high"]),
        caption="importance: how much ρ falls when the facts are shuffled over pairs. conditional: when "
        "they are left out of the fit. share: of what the other facts leave of the distances. q: p of that "
        "by permuting models; none where so few models do not tell a fact from the others. q_alone: as if "
        "there were no others. Both are corrected for the number of facts.",
    )


def other_choices(seen: Seen) -> WhySensitivity:
    """The first set under other stimuli, distances, cohorts and groupings."""
    analyses = [WhyAnalysis("main", "relative clauses, warped", seen.warped, seen.groups)]
    if seen.elsewhere is not None:
        analyses.append(WhyAnalysis("stimuli", "clauses", seen.elsewhere.warped, seen.groups))
    analyses += [
        WhyAnalysis("distance", "1 − mean τ_w", seen.taus, seen.groups),
        WhyAnalysis("distance", "geometry (RSA)", seen.geometry, seen.groups),
        *(other_cohorts(seen.warped, seen.facts, "family", seen.groups) if "family" in seen.facts else ()),
        *other_groupings(seen.warped, seen.facts, seen.groups),
    ]
    return why_sensitivity(analyses, seen.facts, n_permutations=min(199, seen.permutations))


def leaders(found: WhySensitivity) -> Table:
    frame = found.leaders()
    return Table(
        name="leaders",
        title="Which facts lead, if one chose otherwise",
        frame=frame.assign(same=["yes" if same else "no" for same in frame["same"]]),
        caption="On the first set of sentences. same: whether the group that leads has a fact of the one "
        "that "
        "leads the main analysis.",
    )


def over_choices(found: WhySensitivity) -> Table:
    return Table(
        name="choices",
        title="Every fact over all these choices",
        frame=found.to_frame(),
        caption="Importance in the main analysis, and the least and the most over all; in how many the "
        "fact's "
        "group leads; in how many it could be tested given the others, and is found there (q ≤ 0.05).",
    )


def reading(work: Work) -> str:
    settings, facts = work.settings, work.facts
    missing = [name for name in ("family", "class", "date") if name not in facts]
    text = (
        f"{settings.sets} sets of {settings.sentences} sentences with relative clauses, shown to "
        f"{len(work.models)} models and read at the full stop; encoding models with interactions, five "
        f"folds over "
        "sentences; layers before the first block are left out. Models are apart by dynamic time warping "
        "of raw "
        f"importances (symmetric2, normalised). Facts: {', '.join(map(str, facts))}."
    )
    return f"{text} Not known of all: {', '.join(missing)}." if missing else text
