"""`ta.stitch` from end to end on tiny models."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import thinkalike as ta
from thinkalike.stitching import stitch

SMALL = {"length": 32, "resamples": 200}


@pytest.fixture(scope="module")
def two(make):
    return make("gpt2", 0), make("gpt2", 1)


def test_a_model_stitched_with_itself_costs_nothing(make, documents, tokenizer):
    model = make("gpt2")
    for kind in ("identity", "affine", "orthogonal"):
        result = ta.stitch(model, model, documents, kind=kind, tokenizer=tokenizer, **SMALL)
        frame = result.to_frame()
        assert list(frame["layer_bottom"]) == list(frame["layer_top"]) == [0, 1, 2]
        np.testing.assert_allclose(frame["penalty"], 0, atol=1e-4)
        np.testing.assert_allclose(frame["floor"], frame["penalty"])
        assert np.isfinite(frame["ceiling"]).all()
        assert (frame["low"] <= frame["penalty"] + 1e-9).all()
        assert (frame["high"] >= frame["penalty"] - 1e-9).all()
        np.testing.assert_allclose(frame["norm"], frame["norm_own"], rtol=1e-3)
        np.testing.assert_allclose(frame["outside"], 0.01, atol=0.005)


def test_penalty_is_the_stitched_loss_less_the_tops_own(two, documents, tokenizer):
    from thinkalike.stimuli.text import pack
    from thinkalike.stitching import StitchedModel

    bottom, top = two
    result = stitch(bottom, top, documents, kind="identity", layers=[(1, 2)], tokenizer=tokenizer, **SMALL)
    packed = pack(documents, tokenizer, length=32, partial=True)
    ids = torch.from_numpy(packed.ids)
    targets = torch.where(torch.from_numpy(packed.mask), ids, -100)[:, 1:].flatten()
    mask = torch.from_numpy(packed.mask).long()
    with torch.no_grad():
        losses = [
            torch.nn.functional.cross_entropy(
                model(input_ids=ids, attention_mask=mask).logits[:, :-1].flatten(0, 1), targets
            )
            for model in (top, StitchedModel(bottom, top, 1, 2))
        ]
    assert result.own_loss == pytest.approx(float(losses[0]), abs=1e-5)
    assert result.to_frame()["loss"][0] == pytest.approx(float(losses[1]), abs=1e-5)
    assert result.to_frame()["penalty"][0] == pytest.approx(float(losses[1] - losses[0]), abs=1e-5)
    assert result.unit == "documents"
    assert len(result.counts) == 60
