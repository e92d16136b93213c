"""Effects and their ranges: what the order statistics promise, by brute force."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from thinkalike.recipes.effects import FEWEST, Effect, effects_over, median_range


@pytest.mark.parametrize("n", [6, 7, 8, 9, 10, 11])
def test_the_range_holds_the_median_as_often_as_it_says(n: int) -> None:
    """Each of 2ⁿ equally likely ways to fall on either side of the median, one by one."""
    low, high = median_range(np.arange(1.0, n + 1))
    below = np.array(list(product((0, 1), repeat=n))).sum(axis=1)
    # With `below` of n values below it, the median lies above the k-th smallest if at least k are below.
    holds = (below >= low) & (below <= high - 1)
    assert holds.mean() >= 0.95
    narrower = (below >= low + 1) & (below <= high - 2)
    assert narrower.mean() < 0.95


def test_the_range_holds_whatever_the_distribution() -> None:
    rng = np.random.default_rng(0)
    draws = rng.exponential(size=(4000, 10))
    ends = np.array([median_range(one) for one in draws])
    share = np.mean((ends[:, 0] <= math.log(2)) & (math.log(2) <= ends[:, 1]))
    assert share == pytest.approx(0.9785, abs=4 * math.sqrt(0.9785 * 0.0215 / 4000))  # of 2¹⁰ ways


@pytest.mark.parametrize("n", range(FEWEST))
def test_too_few_values_have_no_range(n: int) -> None:
    assert all(math.isnan(end) for end in median_range(np.arange(float(n))))


def test_order_does_not_matter_and_all_equal_is_a_point() -> None:
    values = np.array([3.0, 1.0, 6.0, 2.0, 5.0, 4.0, 0.0])
    assert median_range(values) == median_range(np.sort(values)) == (0.0, 6.0)
    assert median_range(np.full(9, 2.0)) == (2.0, 2.0)


def test_draws_that_are_missing_count_for_nothing() -> None:
    found = Effect.over_draws([0.1, math.nan, 0.3, 0.2, 0.4, 0.5, math.inf, 0.6], "seeds", "a")
    assert found == Effect("a", pytest.approx(0.35), 0.1, 0.6, "6 seeds")
    nothing = Effect.over_draws([math.nan], "seeds")
    assert math.isnan(nothing.value)
    assert nothing.over == "0 seeds"


def test_a_fact_has_no_range() -> None:
    assert Effect.fact(3, "a") == Effect("a", 3.0, 3.0, 3.0, "")


def test_crossed_draws_have_the_widest_range() -> None:
    """Sets that hardly matter and draws that do: the range is that of the draws."""
    sets, draws = np.linspace(-0.01, 0.01, 7), np.linspace(-1, 1, 9)
    values = sets[:, None] + draws
    found = Effect.crossed(values, ("sets", "draws"))
    assert (found.low, found.high) == pytest.approx(median_range(values.mean(axis=0)))
    assert found.over == "7 sets and 9 draws"
    assert found.value == pytest.approx(np.median(values))
    turned = Effect.crossed(values.T, ("draws", "sets"))
    assert (turned.low, turned.high) == pytest.approx((found.low, found.high))


def test_crossed_draws_may_lack_some() -> None:
    values = np.arange(48.0).reshape(6, 8)
    values[0] = np.nan
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        found = Effect.crossed(values, ("sets", "draws"))
    assert found.over == "5 sets and 8 draws"
    assert math.isnan(found.low)  # five sets are too few


def test_effects_by_name_over_draws_that_do_not_all_have_them() -> None:
    draws = [{"a": float(k), **({"b": 1.0} if k < 6 else {})} for k in range(8)]
    a, b = effects_over(draws, "sets")
    assert (a.about, a.over, a.value) == ("a", "8 sets", 3.5)
    assert (b.about, b.over, b.low, b.high) == ("b", "6 sets", 1.0, 1.0)
    assert effects_over([], "sets") == ()
