"""How many analyses agree with the first, counted by hand."""

from __future__ import annotations

import pytest
from scipy import stats

from thinkalike.inference.conclusions import Conclusions, order_agreement, order_of, support

NAN = float("nan")
AB, AC, BC = ("a", "b"), ("a", "c"), ("b", "c")
ANALYSES = [
    Conclusions({AB: 0.9, AC: 0.5, BC: 0.1}, {"a": "x", "b": "x", "c": "y"}, {AB: 0.1, AC: 0.2, BC: 0.3}),
    Conclusions({AB: 0.8, AC: 0.6, BC: 0.2}, {"a": "x", "b": "z", "c": "y"}),
    Conclusions({AB: 0.4, AC: 0.3, BC: 0.35}, {"a": "x", "b": "z", "c": None}, {AB: 0.9, AC: 0.2, BC: 0.3}),
    Conclusions({AB: 0.1, AC: NAN, BC: 0.7}, {"a": "y", "b": "x", "c": "y"}, {AB: 0.0, AC: 0.2, BC: 0.8}),
]


def test_counts() -> None:
    found = {(one.kind, one.about): one for one in support(ANALYSES)}
    alike = found["most alike", None]
    assert (alike.value, alike.agree, alike.n, alike.others) == (AB, 3, 4, ((BC, 1),))
    assert alike.share == 0.75
    order = found["order", None]
    assert (order.value, order.agree, order.n) == ((AB, AC, BC), 2, 4)
    assert dict(order.others) == {(AB, BC, AC): 1, (BC, AB): 1}
    geometry = found["most alike by geometry", None]  # the second analysis has no geometry of its own
    assert (geometry.value, geometry.agree, geometry.n) == (BC, 2, 3)
    assert (found["dominates", "a"].agree, found["dominates", "a"].n) == (3, 4)
    assert found["dominates", "b"].others == (("z", 2),)
    assert (found["dominates", "c"].agree, found["dominates", "c"].n) == (3, 3)  # one says nothing


def test_one_pair_has_no_rival() -> None:
    two = [Conclusions({AB: 0.3}, {"a": "x", "b": None}), Conclusions({AB: 0.1}, {"a": "y", "b": "x"})]
    (only,) = support(two)  # and b is dominated by nothing in the first
    assert (only.kind, only.about, only.agree, only.n) == ("dominates", "a", 1, 2)


def test_nothing_that_the_first_does_not_say() -> None:
    assert support([Conclusions({AB: NAN, AC: NAN, BC: NAN}, {"a": None}), ANALYSES[0]]) == ()


def test_orders() -> None:
    assert order_of(ANALYSES[3].likeness) == (BC, AB)
    first, third = ANALYSES[0].likeness, ANALYSES[2].likeness
    expected = stats.kendalltau([0.9, 0.5, 0.1], [0.4, 0.3, 0.35]).statistic
    assert order_agreement(first, third) == pytest.approx(expected)
    assert order_agreement(first, ANALYSES[3].likeness) == -1.0  # of the two pairs that both have
    assert order_agreement({AB: 1.0}, {AB: 2.0}) != order_agreement({AB: 1.0}, {AB: 2.0})  # NaN
