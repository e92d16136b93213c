"""Effects with their ranges, and the rules that judge them: every verdict can come out."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from thinkalike.recipes import Effect, Rule, Sensitivity
from thinkalike.recipes.effect_chart import effect_figure
from thinkalike.recipes.effects import effects_over, median_range
from thinkalike.recipes.findings import decided
from thinkalike.recipes.rules import sensitivity, steadied

UP = Rule(claim="It rises.", effect="after − before", at_least=0.1, written="2026-11-17")
DOWN = Rule(claim="It is small.", effect="share", at_most=0.2, written="2026-11-17")
NONE = Rule(claim="There is none.", effect="difference", at_least=-0.1, at_most=0.1, written="2026-11-17")


def effect(low: float, high: float) -> Effect:
    return Effect("", (low + high) / 2, low, high, "10 sets")


class TestRange:
    @pytest.mark.parametrize("n", [6, 10, 17, 40])
    @pytest.mark.parametrize("draw", ["normal", "exponential", "cauchy"])
    def test_it_holds_the_median_in_at_least_95_of_100_samples(self, n: int, draw: str) -> None:
        rng = np.random.default_rng(n)
        make, truth = {
            "normal": (rng.standard_normal, 0.0),
            "exponential": (rng.standard_exponential, math.log(2)),
            "cauchy": (rng.standard_cauchy, 0.0),
        }[draw]
        ends = np.array([median_range(make(n)) for _ in range(2000)])
        held = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()
        assert held >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 2000)

    def test_it_is_the_narrowest_such_pair_by_brute_force(self) -> None:
        for n in range(6, 30):
            values = np.arange(1, n + 1, dtype=float)
            low, high = median_range(values)
            outside = sum(math.comb(n, k) for k in range(int(low))) / 2**n  # fewer than k below the median
            wider = sum(math.comb(n, k) for k in range(int(low) + 1)) / 2**n
            assert outside <= 0.025 < wider
            assert high == n + 1 - low

    def test_few_values_have_none(self) -> None:
        assert all(math.isnan(end) for end in median_range(np.arange(5.0)))
        few = Effect.over_draws([0.5, 0.6], "sets of sentences")
        assert few.value == pytest.approx(0.55)
        assert UP.judge(few) == "undecided"

    def test_what_is_unknown_does_not_count(self) -> None:
        assert Effect.over_draws([0.1] * 6 + [math.nan], "seeds").over == "6 seeds"

    def test_crossed_factors_give_the_wider_range(self) -> None:
        """Sets hardly matter here and draws do, or the other way round: the range follows the latter."""
        sets, draws = np.linspace(0, 0.01, 10), np.linspace(0, 1, 10)
        for values in (sets[:, None] + draws, draws[:, None] + sets):
            found = Effect.crossed(values, ("sets", "draws"))
            low, high = median_range(draws)
            assert (found.low, found.high) == pytest.approx((low + sets.mean(), high + sets.mean()))
            assert found.over == "10 sets and 10 draws"

    def test_one_factor_alone_is_as_over_draws(self) -> None:
        values = np.random.default_rng(0).normal(size=12)
        assert Effect.crossed(values, ("seeds",)) == Effect.over_draws(values, "seeds")

    def test_effects_by_name(self) -> None:
        draws = [{"bert": k / 10, "gpt2": 1.0} for k in range(6)] + [{"bert": 0.7}]
        bert, gpt2 = effects_over(draws, "sets")
        assert (bert.about, bert.over, gpt2.over) == ("bert", "7 sets", "6 sets")


class TestRule:
    @pytest.mark.parametrize(
        ("rule", "low", "high", "expected"),
        [
            (UP, 0.1, 0.3, "agrees"),
            (UP, 0.05, 0.3, "undecided"),
            (UP, -0.3, 0.09, "differs"),
            (UP, math.nan, math.nan, "undecided"),
            (DOWN, 0.0, 0.2, "agrees"),
            (DOWN, 0.1, 0.3, "undecided"),
            (DOWN, 0.3, 0.4, "differs"),
            (NONE, -0.05, 0.1, "agrees"),
            (NONE, -0.2, 0.05, "undecided"),  # not shown to be none, though 0 lies inside
            (NONE, -0.5, 0.5, "undecided"),
            (NONE, 0.11, 0.2, "differs"),
            (NONE, -0.4, -0.2, "differs"),
        ],
    )
    def test_a_range_among_beside_and_across(
        self, rule: Rule, low: float, high: float, expected: str
    ) -> None:
        assert rule.judge(effect(low, high)) == expected

    def test_all_must_agree_and_one_refutes(self) -> None:
        good, unsure, bad = effect(0.2, 0.3), effect(0.0, 0.3), effect(-0.2, 0.0)
        assert UP.decide([good, good]) == "agrees"
        assert UP.decide([good, unsure]) == "undecided"
        assert UP.decide([good, unsure, bad]) == "differs"
        assert UP.decide([]) == "cannot be tested"

    def test_a_fact_is_judged_as_it_is(self) -> None:
        assert UP.judge(Effect.fact(0.1)) == "agrees"
        assert UP.judge(Effect.fact(0.09)) == "differs"

    def test_an_end_of_a_rule_belongs_to_it_whatever_the_last_digit_of_a_float(self) -> None:
        assert UP.judge(effect(0.3 - 0.2, 0.3)) == "agrees"  # 0.3 − 0.2 is 0.09999999999999998
        assert DOWN.judge(effect(0.1, 0.1 + 0.1 + 1e-17)) == "agrees"
        assert UP.judge(effect(0.0, 0.0999)) == "differs"

    def test_words(self) -> None:
        assert UP.in_words == "agrees from 0.1 on"
        assert DOWN.in_words == "agrees up to 0.2"
        assert NONE.in_words == "agrees from −0.1 to 0.1"

    def test_the_wrong_verdict_on_the_threshold_is_rare(self) -> None:
        """An effect exactly on the threshold is called either way in at most five of a hundred runs."""
        rng = np.random.default_rng(0)
        found = [
            UP.judge(Effect.over_draws(0.1 + rng.normal(size=10), "sets of sentences")) for _ in range(2000)
        ]
        assert found.count("undecided") / 2000 >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 2000)
        assert {"agrees", "differs"} <= set(found)


class TestSensitivity:
    def test_counts_the_analyses_that_say_the_same(self) -> None:
        analyses = {
            "a": {"x": 0.2},
            "b": {"x": 0.0},
            "c": {"x": 0.3, "y": 0.0},
            "d": {"x": math.nan},
            "e": {},
        }
        assert sensitivity(UP, "agrees", analyses) == Sensitivity(1, 3, ("b", "c"))
        assert sensitivity(UP, "differs", analyses) == Sensitivity(2, 3, ("a",))
        assert sensitivity(UP, "undecided", analyses) is None
        assert sensitivity(UP, "agrees", {}) is None

    def test_a_verdict_that_most_analyses_contradict_is_undecided(self) -> None:
        assert steadied("agrees", Sensitivity(1, 3)) == "undecided"
        assert steadied("agrees", Sensitivity(2, 4)) == "agrees"
        assert steadied("differs", None) == "differs"


class TestStatement:
    def test_of_a_rule_and_effects(self) -> None:
        effects = [Effect("bert", 0.5, 0.25, 0.75, "10 sets"), Effect("gpt2", 1.0, 1.0, 1.0, "10 sets")]
        made = decided(UP, effects, comment="So it is.", analyses={"cosine": {"bert": 0.4}})
        assert made.verdict == "agrees"
        assert made.found == ("After − before: bert 0.5 (0.25 to 0.75) and gpt2 1, over 10 sets. So it is.")
        assert made.sensitivity == Sensitivity(1, 1)

    def test_without_effects_it_cannot_be_tested(self) -> None:
        made = decided(UP, [], comment="No model without positions is here.")
        assert (made.verdict, made.found) == ("cannot be tested", "No model without positions is here.")

    def test_a_grid_that_contradicts_leaves_it_undecided(self) -> None:
        made = decided(UP, [effect(0.2, 0.3)], analyses={"a": {"x": 0.0}, "b": {"x": 0.0}, "c": {"x": 1.0}})
        assert made.verdict == "undecided"
        assert made.sensitivity == Sensitivity(1, 3, ("a", "b"))


def test_every_tested_statement_has_a_panel_with_its_range_and_the_ends_of_its_rule() -> None:
    statements = [
        decided(
            NONE, [Effect("bert", 0.0, -0.05, 0.05, "10 sets"), Effect("gpt2", 0.3, 0.2, 0.4, "10 sets")]
        ),
        decided(UP, [], comment="Not here."),
        decided(UP, [Effect.over_draws([0.1, 0.2], "sets")]),
    ]
    figure = effect_figure(statements)
    figure.chart.to_dict()  # valid Vega-Lite
    panels = figure.spec["vconcat"]
    assert len(panels) == 2
    data = [rows for name, rows in figure.spec["datasets"].items()]
    assert {"about": "gpt2", "value": 0.3, "low": 0.2, "high": 0.4} in [row for rows in data for row in rows]
    ends = [row["x"] for rows in data for row in rows if "mark" in row]
    assert sorted(ends) == [-0.1, 0.1, 0.1]


def test_charts_write_weighted_tau_without_an_underscore() -> None:
    rule = replace(UP, claim="Alike (τ_w = 0.7).", effect="mean τ_w less chance")
    drawn = str(effect_figure([decided(rule, [effect(0.2, 0.3)])]).chart.to_dict())
    assert "mean weighted τ less chance" in drawn
    assert "τ_w" not in drawn
