"""Why models are alike: facts planted and found, tests against other ways to get them, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist, squareform

import thinkalike as ta
from benchmarks.calibration.populations import Population, p_values
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.inference.redundancy import place_tests
from thinkalike.populations.between_models import Distances
from thinkalike.populations.fact_table import fact_table, group_facts
from thinkalike.populations.why import why
from thinkalike.populations.why_sensitivity import (
    WhyAnalysis,
    cohort_fact,
    other_cohorts,
    other_groupings,
    why_sensitivity,
)
from thinkalike.systems import bundled


def drawn(seed: int, **changes: float) -> tuple[Distances, pd.DataFrame]:
    return replace(Population("planted"), **changes).drawn(np.random.default_rng(seed))


def test_two_of_six_planted_facts_are_found() -> None:
    distances, facts = drawn(0)
    found = why(distances, facts, groups={}, n_permutations=199)
    frame = found.to_frame()
    assert set(frame["facts"][:2]) == {"category 0", "number 0"}
    assert (np.sort(found.p)[:2] <= 0.01).all()
    assert (frame["q"][2:] > 0.05).all()
    assert (frame["low"][:2] > 0).all()
    ranged = frame[frame["importance"] != 0]
    assert ((ranged["low"] <= ranged["importance"]) & (ranged["importance"] <= ranged["high"])).all()
    assert frame["low"][frame["importance"] == 0].isna().all()


def test_the_simulation_asks_what_why_asks() -> None:
    distances, facts = drawn(7, correlated=0.5)
    found = why(distances, facts, groups={}, n_permutations=199, ranges=False)
    assert p_values(distances, facts) == pytest.approx(dict(zip(found.groups, found.p, strict=True)))


def test_correlated_facts_do_not_lend_their_effect() -> None:
    """Number 1 goes with number 0, which alone matters: alone it would seem to matter too."""
    distances, facts = drawn(1, correlated=0.9, effect=2.0)
    chosen = facts[["number 0", "number 1", "category 0"]]
    found = why(distances, chosen, groups={}, n_permutations=199, ranges=False)
    both = found.to_frame().set_index("facts")
    assert both.loc["number 1", "q_alone"] <= 0.05 < both.loc["number 1", "q"]
    assert both.loc["number 0", "q"] <= 0.05


def test_what_is_shown_is_corrected_by_hand() -> None:
    """Benjamini and Hochberg: the k-th smallest of n is times n / k, and no larger than those after it."""
    distances, facts = drawn(3, effect=0.4)
    found = why(distances, facts, groups={}, n_permutations=199, ranges=False)
    shown = found.to_frame().set_index("facts").loc[list(found.groups)]
    assert not {"p", "alone"} & set(shown.columns)
    for raw, column in ((found.p, "q"), (found.alone, "q_alone")):
        n, order = len(raw), np.argsort(raw)
        by_hand = np.empty(n)
        by_hand[order] = [min(raw[order[m]] * n / (m + 1) for m in range(k, n)) for k in range(n)]
        np.testing.assert_allclose(shown[column], np.minimum(by_hand, 1.0))
        assert (by_hand > raw).any()


def test_what_facts_explain_is_a_regression_of_the_places() -> None:
    """Against ordinary least squares on coordinates that are known."""
    rng = np.random.default_rng(2)
    x, rest, Y = rng.normal(size=(20, 2)), rng.normal(size=(20, 3)), rng.normal(size=(20, 4))
    Y[:, 0] += x[:, 0]
    rss = []
    for columns in (rest, np.column_stack([rest, x])):
        design = np.column_stack([np.ones(20), columns])
        rss.append(((Y - design @ np.linalg.lstsq(design, Y, rcond=None)[0]) ** 2).sum())
    adjusted = 1 - (rss[1] / (20 - 6)) / (rss[0] / (20 - 4))
    found = place_tests(pdist(Y), [x, rest], n_permutations=0)[0]
    assert found.share == pytest.approx(adjusted)
    assert np.isnan(found.p)
    alone = place_tests(pdist(Y), [x, rest], alone=True, n_permutations=0)[0]
    design = np.column_stack([np.ones(20), x])
    left = ((Y - design @ np.linalg.lstsq(design, Y, rcond=None)[0]) ** 2).sum()
    assert alone.share == pytest.approx(1 - (left / 17) / (((Y - Y.mean(axis=0)) ** 2).sum() / 19))


def test_permuting_systems_by_brute_force() -> None:
    """What the other facts leave of the places goes to other systems, and all is fitted anew by hand."""
    rng = np.random.default_rng(3)
    x, rest, Y = rng.normal(size=(12, 1)), rng.normal(size=(12, 2)), rng.normal(size=(12, 3))
    Y[:, 0] += 0.5 * x[:, 0]
    few, whole = (np.column_stack([np.ones(12), *given]) for given in ([rest], [rest, x]))

    def left(design: np.ndarray, values: np.ndarray) -> np.ndarray:
        return values - design @ np.linalg.lstsq(design, values, rcond=None)[0]

    def ratio(values: np.ndarray) -> float:
        outer, inner = ((left(design, values) ** 2).sum() for design in (few, whole))
        return (outer - inner) / inner

    residuals = left(few, Y)
    orders = [np.random.default_rng((5, k)).permutation(12) for k in range(200)]
    count = sum(ratio(residuals[order]) >= ratio(Y) - 1e-12 for order in orders)
    found = place_tests(pdist(Y), [x, rest], n_permutations=200, seed=5)[0]
    assert found.p == pytest.approx((1 + count) / 201)


def test_a_fact_that_others_make_up_is_not_tested() -> None:
    rng = np.random.default_rng(4)
    x, Y = rng.normal(size=(9, 1)), rng.normal(size=(9, 2))
    assert np.isnan(place_tests(pdist(Y), [x, 2 * x + 1], n_permutations=19)[0].p)
    many = rng.normal(size=(9, 8))  # as many columns as systems leave nothing
    assert np.isnan(place_tests(pdist(Y), [x, many], n_permutations=19)[0].p)
    assert np.isfinite(place_tests(pdist(Y), [x, many], alone=True, n_permutations=19)[0].p)


def test_facts_that_say_nothing_are_left_out_with_the_reason() -> None:
    facts = pd.DataFrame(
        {
            "depth": [2, 4, 6, 8],
            "size": [1e6, 1e7, 1e8, 1e9],
            "family": ["a", "a", "b", "b"],
            "same": [1, 1, 1, 1],
            "id": list("wxyz"),
            "some": [1.0, None, 2.0, 3.0],
        },
        index=list("ABCD"),
    )
    table = fact_table(facts)
    assert table.names == ("depth", "size", "family")
    assert table.left_out == {
        "same": "the same in all models",
        "id": "different in every model",
        "some": "not known of every model",
    }
    np.testing.assert_allclose(table.features["size"], [6, 7, 8, 9])  # the logarithm: so wide a range
    np.testing.assert_allclose(table.columns[:, 1], table.columns[:, 0])
    assert group_facts(table) == {"depth + size": ("depth", "size"), "family": ("family",)}
    assert list(group_facts(table, {})) == ["depth", "size", "family"]
    assert list(group_facts(table, {"big": ["depth", "size"]})) == ["big", "family"]
    with pytest.raises(UnknownName, match="no fact that differs among these models 'same'"):
        group_facts(table, {"x": ["same"]})
    with pytest.raises(InvalidInput, match="No fact is known of every model and differs"):
        fact_table(facts[["same", "id"]])


def test_what_cannot_be_explained() -> None:
    facts = drawn(0)[1]
    few = Distances("features", tuple(facts.index[:5]), squareform(pdist(np.eye(5))))
    with pytest.raises(InvalidInput, match="There are 5 models: to explain how alike they are takes 8"):
        why(few, facts)
    with pytest.raises(InvalidInput, match="There are no facts about model 0"):
        why(few, facts.iloc[2:])


def test_the_bundled_models() -> None:
    found = ta.Atlas().why(n_permutations=99)
    assert found.n_models == len(bundled.names(revisions=True))
    assert found.score > 0
    assert any("depth" in name for name in found.groups)
    assert "vocabulary" in found.left_out


def test_a_fact_that_one_model_alone_has_still_has_a_range() -> None:
    """Left out with that model, it says nothing: its importance is 0 there."""
    distances, facts = drawn(3, models=10)
    odd = facts.assign(odd=["x"] + ["y"] * 9)[["odd", "number 0"]]
    found = why(distances, odd, groups={"both": ["odd", "number 0"]}, n_permutations=0)
    assert np.isfinite([found.low[0], found.high[0]]).all()


def test_the_answer_under_other_choices_is_one_table() -> None:
    distances, facts = drawn(5)
    facts = facts.assign(family=[f"f{k % 4}" for k in range(60)])
    analyses = [
        WhyAnalysis("main", "all", distances),
        *other_cohorts(distances, facts, "family", None),
        *other_groupings(distances, facts, {"some": ["category 1", "number 1"]}),
    ]
    found = why_sensitivity(analyses, facts, n_permutations=19)
    assert list(found.table()) == ["all", *(f"without f{k}" for k in range(4)), "facts one by one"]
    leaders = found.leaders()
    assert set(leaders["leader"]) <= {"category 0", "number 0"}
    assert leaders["same"].iloc[0]
    assert leaders["models"].tolist() == [60, 45, 45, 45, 45, 60]
    frame = found.to_frame().set_index("fact")
    assert set(frame.index[:2]) == {"category 0", "number 0"}
    assert frame["analyses"].tolist() == [6] * 7
    assert frame["leads"].sum() == 6
    assert (frame["least"] <= frame["main"]).all()
    alone = why(distances, facts, n_permutations=0, ranges=False)
    assert frame.loc["number 0", "main"] == pytest.approx(
        dict(zip(alone.groups, alone.importance, strict=True))["number 0"]
    )


def test_cohorts_drop_facts_that_no_longer_differ() -> None:
    distances, facts = drawn(6)
    facts = facts.assign(family=["f0"] * 20 + ["f1"] * 40, only=["x"] * 10 + ["y"] * 50)
    analyses = list(other_cohorts(distances, facts, "family", {"pair": ["only", "number 0"]}))
    assert [one.name for one in analyses] == ["without f0", "without f1"]
    assert analyses[0].groups == {"pair": ["number 0"]}
    assert cohort_fact(facts, None) == "family"
    with pytest.raises(InvalidInput, match="There is no fact 'age' to make cohorts by"):
        cohort_fact(facts, "age")
