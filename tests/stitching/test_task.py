"""Fitting by task loss: the schedule, the best φ, stopping, divergence, and going on after a stop."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.files import write_arrays
from thinkalike.stitching import TaskFit, stitch
from thinkalike.stitching.stitches import Stitch
from thinkalike.stitching.task import Training

QUICK = {"length": 32, "resamples": 0, "floor": False, "ceiling": False}
SHORT = {"steps": 24, "warmup": 4, "every": 8, "batch_tokens": 256, "validation_tokens": 256}


@pytest.fixture(scope="module")
def two(make):
    return make("gpt2", 0), make("gpt2", 1)


@pytest.fixture
def run(two, documents, tokenizer):
    def call(fit, *, layers=((1, 1), (2, 0)), **options):
        return stitch(*two, documents, fit=fit, layers=layers, tokenizer=tokenizer, **QUICK | options)

    return call


def test_the_schedule_rises_and_falls_linearly():
    how = TaskFit(steps=2000, warmup=200)
    assert how.rate(0) == pytest.approx(0.1 / 200)
    assert how.rate(199) == pytest.approx(0.1)
    assert how.rate(1100) == pytest.approx(0.1 * 900 / 1800)
    assert how.rate(2000) == 0
    assert TaskFit(optimizer="adamw").rate(199) == pytest.approx(1e-3)
    assert TaskFit(learning_rate=0.5, warmup=0).rate(0) == pytest.approx(0.5)
    group = how.optimise(torch.nn.Linear(2, 2)).param_groups[0]
    assert (group["momentum"], group["nesterov"], group["weight_decay"]) == (0.9, True, 1e-3)


@pytest.mark.parametrize("kind", ["affine", "layernorm-affine", "orthogonal", "low-rank"])
def test_started_at_least_squares_it_is_no_worse_on_validation_text(run, kind):
    result = run(TaskFit(optimizer="adamw", learning_rate=0.01, **SHORT), kind=kind)
    looks = result.curves[result.curves["split"] == "validation"]
    for (_, _, _), curve in looks.groupby(["role", "layer_bottom", "layer_top"]):
        assert list(curve["step"]) == [0, 8, 16, 24]
        assert curve["loss"].min() < curve["loss"].iloc[0]  # it learns at all
    frame = result.to_frame()
    assert list(frame["stopped"]) == ["end", "end"]
    assert (frame["best_step"] > 0).all()
    plain = run("least-squares", kind=kind)
    assert (frame["loss"] != plain.to_frame()["loss"]).all()


def test_the_best_phi_is_kept(run, two, documents, tokenizer, monkeypatch):
    """With losses that we make up, φ is that of the look with the lowest."""
    seen = []
    original = Training.look

    def look(self, loss, step, how):
        seen.append(self.phi.change.detach().clone())
        original(self, {0: 3.0, 8: 1.0, 16: 2.0, 24: 2.5}[step], step, how)

    monkeypatch.setattr(Training, "look", look)
    result = run(TaskFit(**SHORT), layers=[(1, 1)])
    assert result.to_frame()["best_step"][0] == 8
    torch.testing.assert_close(result.phis[result.stitches[0]].change.detach(), seen[1])
    assert (seen[1] - seen[3]).abs().max() > 0


def test_it_stops_when_nothing_gets_better(run, monkeypatch):
    original = Training.look
    monkeypatch.setattr(Training, "look", lambda self, loss, step, how: original(self, 2.0, step, how))
    result = run(TaskFit(**SHORT | {"patience": 2}))
    assert list(result.to_frame()["stopped"]) == ["patience", "patience"]
    assert list(result.to_frame()["steps"]) == [16, 16]


def test_divergence_stops_says_where_and_keeps_the_last_good_phi(run):
    result = run(
        TaskFit(learning_rate=1e6, warmup=0, clip=1e9, **{k: v for k, v in SHORT.items() if k != "warmup"})
    )
    frame = result.to_frame()
    assert list(frame["stopped"]) == ["diverged", "diverged"]
    assert (frame["steps"] < 24).all()
    assert list(frame["best_step"]) == [0, 0]
    caution = " ".join(result.cautions)
    assert f"diverged at step {frame['steps'][0]}: φ is that of step 0" in caution
    np.testing.assert_allclose(frame["loss"], run("least-squares", test=None).to_frame()["loss"], rtol=0.2)
    assert np.isfinite(frame["loss"]).all()


def stopping(monkeypatch, name, after):
    """Let the training die at its so-manieth call of a method."""
    original, calls = getattr(Training, name), []

    def method(self, *args):
        calls.append(1)
        if len(calls) > after:
            raise KeyboardInterrupt
        original(self, *args)

    monkeypatch.setattr(Training, name, method)


@pytest.mark.parametrize(
    ("optimizer", "stops"),
    [
        ("sgd", [("update", 0)] * 6),  # before the first step, more often than `patience` has looks
        ("sgd", [("update", 3), ("look", 2), ("update", 1), ("update", 30), ("look", 1)]),
        ("adamw", [("look", 0), ("update", 1), ("update", 30), ("update", 30)]),
    ],
)
def test_a_killed_fit_goes_on_as_if_nothing_had_been(run, tmp_path, monkeypatch, optimizer, stops):
    how = TaskFit(optimizer=optimizer, **SHORT)
    whole = run(how)
    path = tmp_path / "unfinished.npz"
    for name, after in stops:
        with monkeypatch.context() as patch:
            stopping(patch, name, after)
            with pytest.raises(KeyboardInterrupt):
                run(how, checkpoint=path)
    resumed = run(how, checkpoint=path)
    np.testing.assert_array_equal(resumed.losses, whole.losses)
    pd.testing.assert_frame_equal(resumed.curves, whole.curves, check_exact=True)
    assert not resumed.curves.duplicated([*Stitch._fields, "step", "split"]).any()
    pd.testing.assert_frame_equal(resumed.training, whole.training)
    for one, phi in whole.phis.items():
        for name, tensor in phi.state_dict().items():
            assert torch.equal(tensor, resumed.phis[one].state_dict()[name])
    assert not path.exists()


def test_a_checkpoint_of_something_else_or_damaged_is_passed_over(run, tmp_path):
    how = TaskFit(**SHORT)
    whole = run(how)
    path = tmp_path / "unfinished.npz"
    path.write_bytes(b"nonsense")
    np.testing.assert_array_equal(run(how, checkpoint=path).losses, whole.losses)
    write_arrays({"x": np.ones(1)}, path, about={"key": "another"})
    np.testing.assert_array_equal(run(how, checkpoint=path).losses, whole.losses)


def test_equal_seeds_give_equal_numbers_and_others_do_not(run):
    how = TaskFit(**SHORT)
    np.testing.assert_array_equal(run(how).losses, run(how).losses)


def test_from_the_identity(run):
    result = run(TaskFit(start="identity", **SHORT), layers=[(1, 1)])
    assert result.to_frame()["best_step"][0] > 0


def test_bad_settings():
    with pytest.raises(UnknownName, match=r"no optimizer 'adam'. Did you mean 'adamw'"):
        TaskFit(optimizer="adam")
    with pytest.raises(UnknownName, match="no start 'random'"):
        TaskFit(start="random")
    with pytest.raises(InvalidInput, match="steps=0: it must be above 0"):
        TaskFit(steps=0)
    for rate in (-1.0, 0.0, float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match=f"learning_rate={rate}: give a number above 0"):
            TaskFit(learning_rate=rate)
    with pytest.raises(InvalidInput, match="weight_decay=-1: give 0 or more"):
        TaskFit(weight_decay=-1)
