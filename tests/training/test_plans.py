"""The plans are those by which the bundled weights were made."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import torch

from thinkalike.systems import bundled
from training.export import settings
from training.plans import PLANS

SHIPPED = [name for name in PLANS if name in bundled.names()]


def test_all_but_the_controls_of_position_and_seed_are_shipped() -> None:
    controls = {"nano-gpt2-nopos", "nano-gpt2-rotary"} | {
        f"nano-{n}-seed1" for n in ("bert", "gpt2", "mamba")
    }
    assert set(PLANS) - set(SHIPPED) <= controls


@pytest.mark.parametrize("name", SHIPPED)
def test_the_card_is_of_the_plan(name: str) -> None:
    plan, card = PLANS[name], bundled.card(name)
    model = plan.build(**plan.shape)
    assert type(model).__name__ == card.architecture
    assert sum(parameter.numel() for parameter in model.parameters()) == card.parameters
    assert (plan.steps, plan.seed, plan.task) == (card.steps, card.seed, card.task)
    assert settings(plan) == card.training


def test_without_positions_the_order_of_the_words_before_is_not_seen_by_the_first_block() -> None:
    """A word's state after one block depends on the set of words before it, and not on their order."""
    model = PLANS["nano-gpt2-nopos"].build(n_embd=16, n_layer=1, n_head=2, positions="none").eval()
    told = PLANS["nano-gpt2"].build(n_embd=16, n_layer=1, n_head=2).eval()
    ids = torch.tensor([[5, 9, 11, 7], [11, 5, 9, 7]])
    for network, blind in ((model, True), (told, False)):
        first, second = network.transformer(ids).last_hidden_state[:, -1].detach()
        assert torch.allclose(first, second, atol=1e-6) == blind
    assert not model.transformer.wpe.weight.requires_grad


def test_rotary_positions_are_relative_and_all_units_of_a_head_rotate() -> None:
    """The same words moved along the context give the same logits, which sinusoids do not."""
    model = PLANS["nano-gpt2-rotary"].build(n_embd=16, n_layer=2, n_head=2).eval()
    told = PLANS["nano-gpt2"].build(n_embd=16, n_layer=2, n_head=2).eval()
    ids = torch.tensor([[5, 9, 11, 7]])
    for network, relative in ((model, True), (told, False)):
        here = network(ids, position_ids=torch.arange(4)[None]).logits
        there = network(ids, position_ids=torch.arange(4)[None] + 50).logits
        assert torch.allclose(here, there, atol=1e-5) == relative
    assert model.config.rope_parameters["partial_rotary_factor"] == 1.0
    swapped = model(ids[:, [1, 0, 2, 3]]).logits[:, -1]
    assert not torch.allclose(model(ids).logits[:, -1], swapped, atol=1e-6)


@pytest.mark.parametrize(
    ("control", "of"),
    [("nano-gpt2-nopos", "nano-gpt2"), ("nano-gpt2-rotary", "nano-gpt2")]
    + [(f"nano-{name}-seed1", f"nano-{name}") for name in ("bert", "gpt2", "mamba")],
)
def test_a_control_differs_in_one_thing_alone(control: str, of: str) -> None:
    a, b = asdict(PLANS[control]), asdict(PLANS[of])
    changed = {name for name in a if a[name] != b[name]}
    expected = {"seed1": {"seed"}, "nopos": {"shape"}, "rotary": {"build"}}
    assert changed == expected[control.rpartition("-")[2]]
    sizes = [sum(p.numel() for p in PLANS[n].build(**PLANS[n].shape).parameters()) for n in (control, of)]
    assert abs(sizes[0] - sizes[1]) <= 256 * 128  # at most the table of positions
