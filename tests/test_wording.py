"""Numbers as people write them."""

from __future__ import annotations

import pytest

from thinkalike.wording import how_many, number, percent


@pytest.mark.parametrize(
    ("share", "text"), [(0.123, "12 %"), (-0.012, "−1 %"), (-0.001, "0 %"), (1, "100 %")]
)
def test_percent_has_a_true_minus_and_none_before_0(share: float, text: str) -> None:
    assert percent(share) == text


def test_numbers_too() -> None:
    assert [number(value, digits=3) for value in (-0.0004, -0.0123, float("nan"))] == ["0.000", "−0.012", "–"]


def test_one_is_no_plural() -> None:
    assert [how_many(n, "layer") for n in (1, 2, 1200)] == ["1 layer", "2 layers", "1,200 layers"]
