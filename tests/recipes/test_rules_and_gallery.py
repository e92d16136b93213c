"""The rules of all recipes as they are written, and the finished runs of the gallery held to them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from thinkalike.recipes import RECIPES, Effect, Rule, Sensitivity
from thinkalike.recipes.brown2023_activations import rules as activations
from thinkalike.recipes.brown2023_generalization import rules as generalization
from thinkalike.recipes.brown2023_scaling import rules as scaling
from thinkalike.recipes.rules import VERDICTS, steadied
from thinkalike.recipes.salle2024 import rules as salle2024
from thinkalike.recipes.salle2024_causal import rules as causal
from thinkalike.recipes.salle2026 import rules as salle2026

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
RULES: dict[str, dict[str, Rule]] = {
    "salle2024": {**salle2024.PAPER_RULES, **salle2024.BEYOND_RULES},
    "salle2024-causal": causal.RULES,
    "salle2026": {**salle2026.PAPER_RULES, **salle2026.BEYOND_RULES},
    "brown2023-activations": activations.RULES,
    "brown2023-generalization": generalization.RULES,
    "brown2023-scaling": scaling.RULES,
}
EVERY = [
    pytest.param(rule, id=f"{recipe}: {name}") for recipe, own in RULES.items() for name, rule in own.items()
]
RUNS = sorted(path.parent.name for path in GALLERY.glob("*/findings.json"))
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def findings(run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GALLERY / run / "findings.json").read_text(encoding="utf-8"))
    return found


def number(value: float | None) -> float:
    """What is not known is kept as nothing."""
    return math.nan if value is None else float(value)


def judged(run: str) -> Iterator[tuple[dict[str, Any], Rule]]:
    """Each statement of a run with the rule that is written for it today."""
    found = findings(run)
    own = RULES[found["recipe"]]
    if found["recipe"] == "brown2023-generalization":
        own = {**own, **{f"{name}, planted": generalization.planted(name) for name in own}}
    by_claim = {rule.claim: rule for rule in own.values()}
    for statement in found["statements"]:
        yield statement, by_claim[statement["paper"]]


def test_every_recipe_has_rules() -> None:
    assert set(RULES) == {name for name, recipe in RECIPES.items() if recipe.module.startswith("thinkalike.")}
    for own in RULES.values():
        assert len({rule.claim for rule in own.values()}) == len(own)  # a statement is known by its claim


@pytest.mark.parametrize("rule", EVERY)
def test_a_rule_can_be_met_and_failed_and_is_dated(rule: Rule) -> None:
    assert rule.at_least <= rule.at_most
    ends = [end for end in (rule.at_least, rule.at_most) if math.isfinite(end)]
    assert ends  # without an end whatever comes out would agree
    verdicts = {rule.decide([Effect.fact(end + step)]) for end in ends for step in (-10.0, 0.0, 10.0)}
    assert verdicts == {"agrees", "differs"}
    across = Effect("", ends[0], ends[0] - 10, ends[0] + 10)
    assert rule.decide([across]) == "undecided"
    assert date.fromisoformat(rule.written) >= date(2026, 11, 17)
    assert rule.claim[0].isupper()
    assert rule.effect


@pytest.mark.parametrize("rule", EVERY)
def test_a_rule_that_was_changed_says_what_it_was_before_and_when(rule: Rule) -> None:
    for earlier in rule.earlier:
        assert earlier.endswith(".")
        days = DAY.findall(earlier)
        assert days or "never run" in earlier, earlier
        assert all(date.fromisoformat(day) <= date.fromisoformat(rule.written) for day in days)


def test_the_control_has_the_rule_of_what_it_controls() -> None:
    for name, rule in generalization.RULES.items():
        control = generalization.planted(name)
        assert (control.at_least, control.at_most, control.effect) == (
            rule.at_least,
            rule.at_most,
            rule.effect,
        )
        assert control.claim == f"Planted control: {rule.claim}"
        assert control.beyond
        shown = rule.figure if name == "spread" else f"{rule.figure}-planted"
        assert control.figure == shown


@pytest.mark.parametrize("run", RUNS)
class TestGallery:
    """What is shown was made with the rules of today: no threshold moved after the run without a new one."""

    def test_rules_are_those_of_today(self, run: str) -> None:
        for statement, rule in judged(run):
            shown = statement["rule"]
            if statement["effects"]:  # a rule that judged nothing may have been written anew since
                assert (shown["in_words"], shown["written"]) == (rule.in_words, rule.written), rule.claim
            assert shown["written"] <= rule.written
            assert statement["beyond"] == rule.beyond

    def test_every_rule_has_its_statement(self, run: str) -> None:
        found = findings(run)
        claims = [statement["paper"] for statement in found["statements"]]
        assert len(set(claims)) == len(claims)
        missing = [rule for rule in RULES[found["recipe"]].values() if rule.claim not in claims]
        # A run at another scale may be older than open questions that it could not answer anyway.
        assert all(rule.beyond and found["scale"] != "nano" for rule in missing), missing

    def test_verdicts_follow_from_the_effects_that_are_shown(self, run: str) -> None:
        for statement, rule in judged(run):
            effects = [
                Effect(
                    one["about"], number(one["value"]), number(one["low"]), number(one["high"]), one["over"]
                )
                for one in statement["effects"]
            ]
            other = statement["sensitivity"]
            grid = (
                None if other is None else Sensitivity(other["agree"], other["n"], tuple(other["otherwise"]))
            )
            assert steadied(rule.decide(effects), grid) == statement["verdict"], statement["paper"]
            if grid is not None:
                assert grid.n - grid.agree == len(grid.otherwise)

    def test_counts_and_figures_are_whole(self, run: str) -> None:
        found = findings(run)
        verdicts = [statement["verdict"] for statement in found["statements"]]
        assert found["verdicts"] == {verdict: verdicts.count(verdict) for verdict in VERDICTS}
        figures = {figure["name"] for figure in found["figures"]}
        assert {path.stem for path in (GALLERY / run / "figures").iterdir()} == figures
        for statement in found["statements"]:
            if statement["figure"] and statement["effects"]:
                assert statement["figure"] in figures, statement["paper"]

    def test_what_cannot_be_tested_says_why(self, run: str) -> None:
        for statement in findings(run)["statements"]:
            assert (statement["verdict"] == "cannot be tested") == (not statement["effects"])
            assert statement["found"].endswith(".")

    def test_other_seeds_judged_the_same_statements(self, run: str) -> None:
        claims = {statement["paper"] for statement in findings(run)["statements"]}
        for path in (GALLERY / run).glob("verdicts-seed*.json"):
            other = json.loads(path.read_text(encoding="utf-8"))
            assert path.stem == f"verdicts-seed{other['seed']}"
            assert set(other["verdicts"]) == claims
            assert set(other["verdicts"].values()) <= set(VERDICTS)


def test_a_rule_with_another_threshold_would_be_noticed() -> None:
    """The comparison above is of all that a reader sees of a rule."""
    rule = scaling.RULES["fades"]
    assert replace(rule, at_least=0.04).in_words != rule.in_words
    assert replace(rule, at_most=0.9).in_words == "agrees from 0.05 to 0.9"
    assert replace(rule, at_least=-math.inf, at_most=-0.5).in_words == "agrees up to −0.5"
