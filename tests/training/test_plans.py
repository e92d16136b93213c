"""The plans are those by which the bundled weights were made."""

from __future__ import annotations

import pytest

from thinkalike.systems import bundled
from training.export import settings
from training.plans import PLANS


@pytest.mark.parametrize("name", PLANS)
def test_the_card_is_of_the_plan(name: str) -> None:
    plan, card = PLANS[name], bundled.card(name)
    model = plan.build(**plan.shape)
    assert type(model).__name__ == card.architecture
    assert sum(parameter.numel() for parameter in model.parameters()) == card.parameters
    assert (plan.steps, plan.seed, plan.task) == (card.steps, card.seed, card.task)
    assert settings(plan) == card.training
