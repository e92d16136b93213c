"""Stitching of trained models: the bundled ones on the bundled text."""

from __future__ import annotations

import numpy as np
import pytest

from thinkalike.stitching import TaskFit, stitch
from thinkalike.systems import bundled

GELU, SOLU = "nano-gelu-3l", "nano-solu-3l"


@pytest.fixture(scope="module")
def text() -> list[str]:
    """The first 40 paragraphs that have some length."""
    paragraphs = bundled.sample_text().read_text(encoding="utf-8").splitlines()
    return [paragraph[:600] for paragraph in paragraphs if len(paragraph) > 200][:40]


def run(bottom, top, text, **options):
    usual = {"length": 64, "ceiling": False, "resamples": 300, "tokens_at_once": 512}
    return stitch(bottom, top, text, **usual | options)


def test_with_itself_a_model_loses_nothing_but_by_the_layernorm(text):
    for kind, most in (("identity", 1e-6), ("affine", 1e-4), ("layernorm-affine", 0.1)):
        frame = run(SOLU, SOLU, text, kind=kind, layers=[1, 3]).to_frame()
        assert frame["penalty"].abs().max() < most
        if kind == "layernorm-affine":  # it cannot be the identity: a floor of its own
            assert (frame["penalty"] > 1e-3).all()


def test_the_ends_are_apart_and_a_mismatch_of_depth_costs_more(text):
    result = run(GELU, SOLU, text, layers="grid", ceiling=True)
    frame = result.to_frame()
    assert (frame["penalty"] > frame["floor"] + 0.1).all()
    assert (frame["penalty"] < frame["ceiling"]).all()
    assert result.depth_mismatch() > 0.3


def test_task_loss_is_no_worse_than_its_start_and_alike_over_seeds(text):
    how = TaskFit(steps=8, warmup=2, every=4, batch_tokens=512, validation_tokens=1024, learning_rate=0.05)
    losses = []
    for seed in (0, 1):
        result = run(GELU, SOLU, text[:30], test=text[30:], layers=[2], floor=False, fit=how, seed=seed)
        looks = result.curves[result.curves["split"] == "validation"]["loss"]
        assert looks.min() <= looks.iloc[0]
        losses.append(result.to_frame().iloc[0])
    assert losses[0]["penalty"] == pytest.approx(
        losses[1]["penalty"], abs=losses[0]["high"] - losses[0]["low"]
    )
    assert np.isfinite(losses[0]["outside"])
