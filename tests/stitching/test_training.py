"""All stitches trained together: the steps by hand, every example once an epoch, and going on from a file."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from thinkalike.checkpoint import Checkpoint
from thinkalike.stitching import TaskFit
from thinkalike.stitching.examples import Examples
from thinkalike.stitching.job import Job
from thinkalike.stitching.model_pair import open_pair
from thinkalike.stitching.phi import Affine
from thinkalike.stitching.stitches import Stitch
from thinkalike.stitching.task import Training
from thinkalike.stitching.training import _rows, resume_training, save_training, train
from thinkalike.systems.batch import Batch
from thinkalike.systems.calling import frozen
from thinkalike.systems.system import LoadOptions

STITCH = Stitch("pair", 1, 1)


@pytest.fixture
def job(make, tokenizer):
    bottom, top = open_pair(make("gpt2"), make("gpt2", 1), LoadOptions(), tokenizer=tokenizer)
    return Job({"pair": bottom}, top, (STITCH,))


def questions(n, seed=0):
    ids = np.random.default_rng(seed).integers(5, 200, (n, 8))
    targets = np.full_like(ids, -100)
    targets[:, :-1] = ids[:, 1:]
    return Examples(Batch(ids, np.ones(ids.shape, dtype=bool)), targets, np.zeros_like(ids))


def start():
    return Affine(torch.eye(16), torch.zeros(16))


def test_one_step_is_the_step_of_the_optimiser_on_the_loss_of_the_stitched_model(job):
    fit = questions(4)
    how = TaskFit(steps=1, warmup=0, every=1, batch_tokens=64, learning_rate=0.01, clip=1e9, patience=None)
    phi = start()
    with frozen(*job.models):
        found = train(job, {STITCH: phi}, how, fit, fit, seed=0, tokens_at_once=64)[STITCH]
        by_hand = start()
        rows, _ = _rows(fit, 0, 64, 0)
        ids = torch.from_numpy(fit.tokens.ids[rows])
        bottom, top = job.bottoms["pair"].model.transformer, job.top.model
        states = bottom(ids, output_hidden_states=True).hidden_states[1]
        mapped = by_hand(states)
        last = top.transformer.ln_f(top.transformer.h[1](mapped))
        logits = top.lm_head(last)[:, :-1]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
    assert found.first_loss == pytest.approx(float(loss.detach()), rel=1e-5)
    assert found.best_step == 1
    for name, parameter in by_hand.named_parameters():
        # Nesterov's first step is lr · (1 + momentum) · gradient; decay does nothing at the start.
        expected = parameter.detach() - 0.01 * 1.9 * parameter.grad
        trained = dict(found.phi.named_parameters())[name]
        torch.testing.assert_close(trained.detach(), expected, atol=1e-5, rtol=1e-4)
    assert [place for place, split, _ in found.curve if split == "validation"] == [0, 1]


def test_every_example_comes_once_before_any_comes_again():
    fit = questions(12)
    seen = [_rows(fit, number, batch_tokens=32, seed=5) for number in range(6)]
    assert [epoch for _, epoch in seen] == [0, 0, 0, 1, 1, 1]
    first, second = (np.concatenate([rows for rows, epoch in seen if epoch == k]) for k in (0, 1))
    assert sorted(first) == sorted(second) == list(range(12))
    assert first.tolist() != second.tolist()
    np.testing.assert_array_equal(first, np.concatenate([_rows(fit, k, 32, 5)[0] for k in range(3)]))


def test_a_training_that_is_kept_comes_back_whole(job, tmp_path):
    fit = questions(6)
    how = TaskFit(steps=4, every=2, batch_tokens=16, optimizer="adamw", patience=None)
    with frozen(*job.models):
        trained = train(job, {STITCH: start()}, how, fit, fit, seed=0, tokens_at_once=64)
    saved = Checkpoint(tmp_path / "state", "key")
    save_training(saved, trained, 3)
    fresh = {STITCH: Training.begin(start(), how)}
    assert resume_training(Checkpoint(tmp_path / "state", "other"), fresh) is None
    assert fresh[STITCH].curve == []
    assert resume_training(saved, fresh) == 3
    one, other = trained[STITCH], fresh[STITCH]
    for name in ("curve", "best_loss", "best_step", "first_loss", "looks_in_vain", "stopped", "last_step"):
        assert getattr(one, name) == getattr(other, name), name
    for ours, theirs in ((one.phi.state_dict(), other.phi.state_dict()), (one.best, other.best)):
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    steps = [copy.deepcopy(t.optimizer.state_dict()["state"]) for t in (one, other)]
    for number, fields in steps[0].items():
        for name, value in fields.items():
            assert torch.equal(torch.as_tensor(value), torch.as_tensor(steps[1][number][name])), name
