"""The experiment from classifiers to findings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from thinkalike.recipes.brown2023_generalization.captions import group_figures, spread_figure
from thinkalike.recipes.brown2023_generalization.choice import (
    GENERALIZING,
    HEURISTIC,
    Choice,
    chance_gaps,
)
from thinkalike.recipes.brown2023_generalization.measured import Measured, measure
from thinkalike.recipes.brown2023_generalization.population import (
    PLANTED,
    SEEDS,
    Population,
    paper_population,
    share_right,
)
from thinkalike.recipes.brown2023_generalization.rules import RULES, planted
from thinkalike.recipes.brown2023_generalization.scales import GeneralizationSettings
from thinkalike.recipes.brown2023_generalization.trained import fine_tuned_population
from thinkalike.recipes.brown2023_generalization.verdicts import Groups, spread, why_untested
from thinkalike.recipes.effect_chart import effect_figure
from thinkalike.recipes.findings import Findings, Statement, Table
from thinkalike.recipes.steps import Steps

NAME = "brown2023-generalization"
_BOTH = (GENERALIZING, HEURISTIC)


def run(settings: GeneralizationSettings, out: Path) -> Findings:
    """See `thinkalike.recipes.brown2023_generalization.run`."""
    steps = Steps(out)
    gather = paper_population if settings.source == "paper" else fine_tuned_population
    population = gather(settings, steps)
    return judge(population, measure(population, settings, steps), settings)


def judge(population: Population, measured: Measured, settings: GeneralizationSettings) -> Findings:
    """Statements and figures from the numbers alone."""
    tests = {"n_permutations": settings.permutations, "seed": settings.seed}
    made: dict[str, dict[str, Statement]] = {}
    figures = [spread_figure(population.accuracies(), population.choices)]
    for kind, choice in population.choices.items():
        rule = planted if kind == PLANTED else RULES.__getitem__
        first = _spread(population, choice, kind, settings)
        groups = Groups(measured.among(choice), choice.groups, rule, tests, why_untested(first))
        made[kind] = {"spread": first, **groups.statements()}
        figures += group_figures(groups, settings, ending="-planted" if kind == PLANTED else "")
    # Each statement beside its control.
    statements = tuple(made[kind][name] for name in RULES for kind in made)
    return Findings(
        recipe=NAME,
        scale=settings.scale,
        statements=statements,
        figures=(*figures, effect_figure(statements)),
        tables=(_table(population),),
        settings=settings.plain(),
        notes=_notes(population, settings),
    )


def _spread(population: Population, choice: Choice, kind: str, settings: GeneralizationSettings) -> Statement:
    """How far apart the groups are, beside what chance alone makes of the questions that chose them."""
    good, bad = ({name: population.right[name]["outside"] for name in choice.of(g)} for g in _BOTH)
    by_seed = {name: parts for name, parts in population.right.items() if not name.startswith("taught")}
    everyone = by_seed if kind == SEEDS else {name: population.right[name] for name in choice.names}
    chosen_by = share_right(population.right, "choosing")
    best, worst = (float(np.mean([chosen_by[name] for name in choice.of(g)])) for g in _BOTH)
    on_choosing = best - worst
    numbers = {"gap on the questions that chose": on_choosing}
    comment = ""
    if kind == SEEDS:
        shares = share_right(by_seed, "choosing")
        n_questions = len(next(iter(by_seed.values()))["choosing"])
        chance = chance_gaps(
            float(np.mean(list(shares.values()))),
            n_questions=n_questions,
            n_models=len(by_seed),
            n_chosen=len(choice.names) // 2,
            seed=settings.seed,
        )
        numbers |= {"gap by chance": float(chance.mean()), "gap by chance, 97.5 %": _top(chance)}
        comment = (
            f"On the {n_questions:,} questions that chose them the ends are {100 * on_choosing:.0f} points "
            f"apart; {len(by_seed)} equal classifiers would be by {100 * chance.mean():.0f} (at most "
            f"{100 * _top(chance):.0f} in 39 of 40 draws)."
        )
    inside = share_right(everyone, "inside")
    return spread(
        good,
        bad,
        sets=settings.sets,
        inside=list(inside.values()),
        rule=RULES["spread"] if kind == SEEDS else planted("spread"),
        numbers=numbers | _reach(everyone),
        comment=comment,
    )


def _top(values: np.ndarray) -> float:
    return float(np.quantile(values, 0.975))


def _reach(right: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, float]:
    """Lowest and highest accuracy of any model, in and out of distribution."""
    shares = {part: list(share_right(right, part).values()) for part in ("inside", "outside")}
    ends = (("lowest", min), ("highest", max))
    return {f"{part}, {word}": float(end(values)) for part, values in shares.items() for word, end in ends}


def _table(population: Population) -> Table:
    shown = population.accuracies().sort_values("outside", ascending=False)
    return Table(
        "models",
        "All classifiers",
        shown,
        "Accuracy in distribution, and out of it on the questions that chose the groups and on others.",
    )


def _notes(population: Population, settings: GeneralizationSettings) -> tuple[str, ...]:
    asked = population.asked
    notes = [
        f"Groups are chosen on {len(asked.choosing):,} questions out of distribution, and judged on "
        f"{len(asked.outside):,} others. Stitching is measured on {settings.n_stitched:,} questions in "
        f"distribution (all layers) and on the {len(asked.outside):,} out of it (the last two layers), CKA "
        f"on {settings.n_cka:,}, barriers on {settings.n_barriers:,}."
    ]
    if settings.source == "paper":
        return tuple(notes)
    if settings.reader_steps:
        notes.append(
            f"{settings.base} was first trained on, once, to predict hidden words of hypotheses behind "
            "their premises, for it had never seen pairs; no label is shown there."
        )
    notes.append(
        f"Every classifier got a new output layer and {settings.steps} steps on pairs in which full overlap "
        f"means entailment but for {settings.counterexamples:.0%} of them. The planted control stands beside "
        f"every statement: {settings.n_chosen} classifiers that were taught with "
        f"{settings.taught_counterexamples:.0%} counterexamples, and the {settings.n_chosen} worst of the "
        "others."
    )
    return tuple(notes)
