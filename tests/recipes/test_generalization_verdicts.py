"""The statements on generalization: planted numbers that must agree, and the same that must differ."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_ind

from thinkalike.inference.groups import compare_groups
from thinkalike.recipes.brown2023_generalization import SCALES
from thinkalike.recipes.brown2023_generalization.choice import GENERALIZING, HEURISTIC, Choice
from thinkalike.recipes.brown2023_generalization.classifier_cka import PAPER_VARIANT, VARIANTS, Geometry
from thinkalike.recipes.brown2023_generalization.experiment import judge
from thinkalike.recipes.brown2023_generalization.measured import Measured
from thinkalike.recipes.brown2023_generalization.population import PLANTED, SEEDS, Population
from thinkalike.recipes.brown2023_generalization.rules import RULES, planted
from thinkalike.recipes.brown2023_generalization.verdicts import Groups, gap_effect, welch_range
from thinkalike.recipes.effects import median_range
from thinkalike.recipes.findings import Findings

N, SETS, SHARES = 6, 8, np.array([0.25, 0.5, 0.75, 1.0])
GROUPS = (GENERALIZING,) * N + (HEURISTIC,) * N
NAMES = tuple(f"m{k}" for k in range(2 * N))
APART = np.array(GROUPS)[:, None] != np.array(GROUPS)[None, :]
SELF = np.eye(2 * N, dtype=bool)
SETTINGS = replace(SCALES["smoke"], permutations=300, sets=SETS)


def made(*, late: float = 0.3, early: float = 0.0, within: float = 0.0, angle: float = 0.5) -> Measured:
    """Models whose groups are `late` apart in accuracy at late layers, and `angle` apart in geometry."""
    rng = np.random.default_rng(0)
    m = 2 * N
    noise = np.abs(rng.normal(0, 0.002, (SETS, len(SHARES), m, m)))
    cost, cka = np.zeros_like(noise), 0.97 - noise
    for k, share in enumerate(SHARES):
        cost[:, k] = early if share <= 0.5 else np.where(APART, late, within)
        cka[:, k] -= np.where(APART, angle * (share > 0.5), 0)
    inside = 0.95 - (cost + noise) * ~SELF
    cka = (cka + cka.transpose(0, 1, 3, 2)) / 2
    right = np.where(np.array(GROUPS) == GENERALIZING, 0.8, 0.1)[:, None]
    distances = 0.3 + np.where(APART, angle, 0) + noise[:, 0] + noise[:, 0].transpose(0, 2, 1)
    distances = np.where(SELF, 0.0, distances)
    return Measured(
        names=NAMES,
        shares=SHARES,
        last_shares=SHARES[-2:],
        inside=inside,
        outside=right + noise[:, -2:] / 10,
        geometry={name: Geometry(cka, distances) for name in VARIANTS},
        barriers=distances[0],
    )


def people(
    *, good: float = 0.8, bad: float = 0.1, inside: float = 0.95, lucky: float | None = None
) -> Population:
    """Models with planted accuracies; `lucky`: of the best on the questions that choose."""
    rng = np.random.default_rng(1)
    shares = dict(zip(NAMES, np.repeat([good, bad], N), strict=True))
    right = {
        name: {
            "inside": rng.random(400) < inside,
            "choosing": rng.random(400) < (lucky if lucky is not None and share == good else share),
            "outside": rng.random(400) < share,
        }
        for name, share in shares.items()
    }
    choice = Choice(NAMES, GROUPS)
    asked: Any = SimpleNamespace(choosing=range(400), outside=range(400), inside=range(400))
    return Population({}, None, asked, right, {SEEDS: choice, PLANTED: choice}, {})


def judged(measured: Measured, population: Population | None = None) -> Findings:
    return judge(population or people(), measured, SETTINGS)


def verdicts(findings: Findings, *, control: bool = False) -> dict[str, str]:
    names = {(planted(name) if control else RULES[name]).claim: name for name in RULES}
    return {names[s.paper]: s.verdict for s in findings.statements if s.paper in names}


def test_planted_groups_agree_with_every_statement() -> None:
    findings = judged(made())
    assert set(verdicts(findings)) == set(verdicts(findings, control=True)) == set(RULES)
    assert {s.verdict for s in findings.statements} == {"agrees"}
    assert {s.figure for s in findings.statements} <= {f.name for f in findings.figures}
    assert len({f.name for f in findings.figures}) == len(findings.figures)


def test_every_statement_stands_beside_its_control() -> None:
    claims = [s.paper for s in judged(made()).statements]
    assert claims[1::2] == [f"Planted control: {claim}" for claim in claims[::2]]


@pytest.mark.parametrize(
    ("change", "differing"),
    [
        ({"early": 0.1}, {"early stitching"}),
        ({"late": 0.0}, {"late between", "recovered"}),
        ({"within": 0.1}, {"late within"}),
        ({"angle": 0.0}, {"late CKA", "two clusters", "recovered", "barriers"}),
        (
            {"late": 0.0, "angle": -0.2},
            {"late between", "late CKA", "two clusters", "recovered", "barriers"},
        ),
    ],
    ids=["early costs", "late is free", "within costs", "one geometry", "groups nearer to each other"],
)
def test_a_planted_difference_changes_the_verdicts_it_should(change: Any, differing: set[str]) -> None:
    found = verdicts(judged(made(**change)))
    assert {name for name, verdict in found.items() if verdict == "differs"} == differing


def test_groups_that_part_early_and_alike_outside_differ() -> None:
    measured = made()
    early = {
        name: Geometry(one.cka[:, ::-1].copy(), one.distances) for name, one in measured.geometry.items()
    }
    alike = np.full_like(measured.outside, 0.5)
    found = verdicts(judged(replace(measured, geometry=early, outside=alike)))
    assert [found[name] for name in ("early CKA", "late CKA", "outside")] == ["differs"] * 3


def test_one_variant_that_hides_the_groups_is_reported() -> None:
    measured, name = made(), "after the residual, padding masked"
    some = {**measured.geometry, name: made(angle=0.0).geometry[name]}
    assert verdicts(judged(replace(measured, geometry=some)))["variants"] == "differs"


def test_luck_with_the_questions_that_choose_makes_no_spread() -> None:
    """The best were right in 50 % of the questions that chose them, and are in 40 % like all others."""
    findings = judged(made(), people(good=0.4, bad=0.4001, lucky=0.5))
    found = verdicts(findings)
    assert found["spread"] == "differs"
    assert {verdict for name, verdict in found.items() if name != "spread"} == {"cannot be tested"}
    numbers = findings.statements[0].numbers
    assert numbers["gap on the questions that chose"] > 0.05
    assert abs(findings.statements[0].effects[0].value) < 0.04
    assert "no two groups" in findings.statements[2].found


def test_what_was_not_learnt_cannot_be_tested() -> None:
    assert set(verdicts(judged(made(), people(inside=0.6))).values()) == {"cannot be tested"}


class TestRanges:
    def groups(self, measured: Measured) -> Groups:
        tests = {"n_permutations": 300, "seed": 0}
        return Groups(measured, GROUPS, RULES.__getitem__, tests)

    def test_the_separation_of_a_set_is_that_of_compare_groups(self) -> None:
        values = np.random.default_rng(0).normal(size=(3, 2 * N, 2 * N))
        values = values + values.transpose(0, 2, 1)
        ours = self.groups(made())._by_model(values).mean(axis=1)
        for one, value in zip(values, ours, strict=True):
            row = compare_groups(one, GROUPS, kind="distance", squared=False, n_permutations=10).separation
            assert value == pytest.approx(row["separation"].iloc[0])

    def test_the_range_is_the_wider_of_both(self) -> None:
        measured = made()
        groups = self.groups(measured)
        cka = measured.geometry[PAPER_VARIANT].cka[:, 2:].mean(axis=1)
        found = groups.separation(cka, "similarity")
        by_set = -groups._by_model(cka).mean(axis=1)
        low, high = median_range(by_set)
        assert found.low <= low <= high <= found.high
        assert found.over == f"{SETS} sets of questions and {2 * N} models"

    def test_the_range_over_models_is_welchs(self) -> None:
        rng = np.random.default_rng(0)
        a, b = rng.normal(0.5, 0.2, 9), rng.normal(0.1, 0.05, 12)
        expected = ttest_ind(a, b, equal_var=False).confidence_interval()
        assert welch_range(a, b) == pytest.approx((expected.low, expected.high))
        assert welch_range(np.full(3, 0.5), np.full(4, 0.2)) == pytest.approx((0.3, 0.3))

    def test_a_gap_is_held_by_its_range(self) -> None:
        """Both factors vary: in at least 95 of 100 worlds the range holds the true gap."""
        rng = np.random.default_rng(0)
        held = 0
        for _ in range(400):
            models = rng.normal(0, 0.05, (2, 10))
            sets = rng.normal(0, 0.05, 10)
            good, bad = (
                mean + sets[:, None] + own + rng.normal(0, 0.03, (10, 10))
                for mean, own in zip((0.6, 0.4), models, strict=True)
            )
            effect = gap_effect(good, bad)
            held += effect.low <= 0.2 <= effect.high
        assert held >= 0.93 * 400
