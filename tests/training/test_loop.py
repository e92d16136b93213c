"""Training resumes bit for bit, follows its schedule, and learns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from thinkalike.errors import StoreError
from training import loop
from training.batches import IGNORED, Tokens
from training.plans import PLANS, Plan

SPECIAL = {"pad": 0, "cls": 1, "sep": 2, "mask": 3, "eos": 4}
TinyPlan = Callable[..., Plan]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = loop.rows
    monkeypatch.setattr(loop, "rows", lambda *given, **where: rows(*given, size=256, length=64, **where))


def train(plan: Plan, tokens: Tokens, folder: Path, **options: Any) -> loop.Run:
    return loop.train(plan, tokens, SPECIAL, folder, description="test", **options)


@pytest.mark.parametrize("name", ["nano-bert", "nano-gpt2", "nano-mamba", "nano-solu-3l", "nano-pythia-64"])
def test_a_run_stopped_at_step_12_ends_as_one_that_never_stopped(
    name: str, tokens: Tokens, tiny_plan: TinyPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = tiny_plan(name)
    whole = train(plan, tokens, tmp_path / "whole")
    step = loop._step

    def interrupted(run: loop.Run, *rest: Any) -> float:
        if run.step == 12:
            raise KeyboardInterrupt
        return step(run, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "_step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(plan, tokens, tmp_path / "parts", save_every=0.0)
    resumed = train(plan, tokens, tmp_path / "parts")
    assert len(whole.losses) == 20
    assert resumed.losses == whole.losses
    for (key, one), other in zip(
        whole.model.state_dict().items(), resumed.model.state_dict().values(), strict=True
    ):
        assert torch.equal(one, other), key


def test_training_lowers_the_loss(tokens: Tokens, tiny_plan: TinyPlan, tmp_path: Path) -> None:
    losses = train(tiny_plan("nano-gpt2", steps=60), tokens, tmp_path).losses
    assert np.mean(losses[-10:]) < np.mean(losses[:5]) - 1.0


def test_another_seed_gives_other_weights(tokens: Tokens, tiny_plan: TinyPlan, tmp_path: Path) -> None:
    one, other = (
        train(tiny_plan("nano-gpt2", steps=2, seed=seed), tokens, tmp_path / str(seed)) for seed in (0, 1)
    )
    assert one.losses != other.losses


def test_revisions_are_kept_as_they_were_at_their_step(
    tokens: Tokens, tiny_plan: TinyPlan, tmp_path: Path
) -> None:
    plan = tiny_plan("nano-pythia-64", steps=6, revisions=(3,), decay=0.0)
    train(plan, tokens, tmp_path / "long")
    short = train(tiny_plan("nano-pythia-64", steps=3, decay=0.0), tokens, tmp_path / "short")
    from training.export import restore

    kept = restore(plan, tmp_path / "long" / "step3")
    for (key, one), other in zip(kept.state_dict().items(), short.model.state_dict().values(), strict=True):
        assert torch.equal(one, other), key


def test_a_longer_plan_goes_on_from_where_the_rate_began_to_fall(
    tokens: Tokens, tiny_plan: TinyPlan, tmp_path: Path
) -> None:
    train(tiny_plan("nano-gpt2", steps=8, decay=0.5), tokens, tmp_path / "parts")
    longer = train(tiny_plan("nano-gpt2", steps=12, decay=0.5), tokens, tmp_path / "parts")
    whole = train(tiny_plan("nano-gpt2", steps=12, decay=0.5), tokens, tmp_path / "whole")
    assert longer.losses == whole.losses


def test_a_damaged_checkpoint_says_so(tokens: Tokens, tiny_plan: TinyPlan, tmp_path: Path) -> None:
    (tmp_path / loop.CHECKPOINT).write_bytes(b"not a checkpoint")
    with pytest.raises(StoreError, match=r"checkpoint\.pt is damaged or of another model: remove it"):
        train(tiny_plan("nano-gpt2"), tokens, tmp_path)


def test_the_rate_goes_up_stays_and_goes_down_to_zero() -> None:
    factors = [loop.rate_factor(step, steps=100, warm_up=10, decay=0.2) for step in range(101)]
    assert factors[:10] == pytest.approx(np.arange(1, 11) / 10)
    assert factors[10:80] == [1.0] * 70
    assert factors[80:] == pytest.approx(np.arange(20, -1, -1) / 20)


def test_the_end_can_be_moved_while_the_rate_is_level() -> None:
    short, long = (
        [loop.rate_factor(s, steps=n, warm_up=10, decay=0.2) for s in range(80)] for n in (100, 1000)
    )
    assert short == long


def test_fewer_tokens_are_masked_as_the_rate_falls() -> None:
    plan = Plan(PLANS["nano-bert"].build, {}, steps=100, task="masked", decay=0.2, masked_share=(0.4, 0.1))
    shares = [loop.share_to_predict(plan, step) for step in range(101)]
    assert shares[:81] == [0.4] * 81
    assert shares[80:] == pytest.approx(np.linspace(0.4, 0.1, 21))


@pytest.mark.parametrize("name", PLANS)
def test_every_parameter_has_one_optimizer_and_muon_only_matrices(name: str) -> None:
    run = loop.new_run(PLANS[name])
    held = [p for optimizer in run.optimizers for group in optimizer.param_groups for p in group["params"]]
    assert sorted(map(id, held)) == sorted(map(id, run.model.parameters()))
    muon = run.optimizers[1].param_groups[0]["params"]
    tables = {id(run.model.get_input_embeddings().weight), id(run.model.get_output_embeddings().weight)}
    assert muon
    assert all(p.ndim == 2 and id(p) not in tables for p in muon)


@pytest.mark.parametrize("name", ["nano-bert", "nano-gpt2", "nano-mamba", "nano-solu-3l", "nano-pythia-64"])
def test_the_loss_is_that_of_the_models_own_logits(name: str, tiny_plan: TinyPlan) -> None:
    plan = tiny_plan(name)
    torch.manual_seed(0)
    model = plan.build(**plan.shape)
    ids = torch.randint(5, 4096, (3, 9))
    labels = torch.randint(5, 4096, (3, 9))
    labels[:, ::2] = IGNORED
    expected = torch.nn.functional.cross_entropy(
        model(ids).logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED
    )
    assert loop.language_model_loss(model, ids, labels).item() == pytest.approx(expected.item(), rel=1e-5)
