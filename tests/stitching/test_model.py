"""A stitched model is made of the right parts, for every architecture, and only φ learns."""

from __future__ import annotations

import warnings

import pytest
import torch
import transformers as tf
from torch import nn

from tests import tiny
from thinkalike.errors import InvalidInput
from thinkalike.stitching import StitchedModel
from thinkalike.systems.calling import frozen

HEADS = {
    "encoder": "AutoModelForMaskedLM",
    "decoder": "AutoModelForCausalLM",
    "state space": "AutoModelForCausalLM",
    "encoder-decoder": "AutoModelForSeq2SeqLM",
    "vision": "AutoModelForImageClassification",
    "speech": "AutoModelForCTC",
}
OTHER_HEADS = {
    "whisper": "AutoModelForSpeechSeq2Seq",
    "gemma3": "AutoModelForImageTextToText",
    "qwen3_vl": "AutoModelForImageTextToText",
    "deit": "DeiTForImageClassification",  # two heads go by the automatic name
    "xlnet": "XLNetLMHeadModel",
}
WITHOUT_LOGITS = ("clip", "siglip", "dinov3_vit", "qwen3_vl_text")
"""Towers that end in vectors to be compared, and models that transformers gives no output layer"""


def with_head(name):
    """The tiny model of that name with an output layer, its stack's part, and inputs for the whole."""
    from thinkalike.systems.architectures import ARCHITECTURES

    case = tiny.Case(name, tiny.TINY[name])
    config = case.tiny.config()
    head = HEADS[ARCHITECTURES[config.model_type].kind]
    head = OTHER_HEADS.get(name, head)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.jit\.script` is deprecated", DeprecationWarning)
        made = getattr(tf, head)
        model = (made.from_config(config) if head.startswith("Auto") else made(config)).eval()
    inputs = case.inputs()
    if case.tiny.part is not None:
        inputs.setdefault("decoder_input_ids", torch.arange(5, 12).repeat(2, 1))
    return model, case.tiny.part, inputs


@pytest.mark.parametrize("name", [name for name in tiny.TINY if not name.startswith(WITHOUT_LOGITS)])
def test_stitched_with_itself_a_model_gives_its_own_logits(name):
    model, part, inputs = with_head(name)
    with torch.no_grad():
        expected = model(**inputs).logits
    depth = StitchedModel(model, model, 0, 0, part=part)._stacks[1].n_blocks
    for layer in range(depth + 1):
        stitched = StitchedModel(model, model, layer, layer, part=part)
        with torch.no_grad():
            found = stitched(**inputs).logits
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def ran(model, call):
    """Which blocks of a GPT-2 computed anything while `call` ran."""
    found = []
    handles = [
        block.mlp.register_forward_hook(lambda *_, number=number: found.append(number))
        for number, block in enumerate(model.transformer.h)
    ]
    try:
        call()
    finally:
        for handle in handles:
            handle.remove()
    return found


def test_blocks_that_are_not_used_are_not_computed(make, tokenizer):
    bottom, top = make("gpt2", 0, layers=3), make("gpt2", 1, layers=3)
    stitched = StitchedModel(bottom, top, 1, 2)
    ids = torch.arange(4, 20)[None]
    stitched(input_ids=ids)  # learns the form in which blocks answer
    assert ran(bottom, lambda: stitched(input_ids=ids)) == [0]
    assert ran(top, lambda: stitched(input_ids=ids)) == [2]


def test_gradients_reach_phi_only(make):
    bottom, top = make("gpt2", 0), make("mamba", 1)
    phi = nn.Linear(16, 16)
    stitched = StitchedModel(bottom, top, 1, 1, phi)
    stitched.train()
    assert not any(module.training for model in (bottom, top) for module in model.modules())
    stitched(input_ids=torch.arange(4, 20)[None]).logits.square().sum().backward()
    assert phi.weight.grad.abs().sum() > 0
    for model in (bottom, top):
        assert all(parameter.grad is None for parameter in model.parameters())


def test_frozen_models_are_as_before_afterwards(make):
    model = make("gpt2", 0)
    model.train()
    model.transformer.wte.weight.requires_grad_(False)
    with frozen(model, model):
        assert not any(parameter.requires_grad for parameter in model.parameters())
        assert not any(module.training for module in model.modules())
    assert all(module.training for module in model.modules())
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert learning == {name for name, _ in model.named_parameters()} - {"transformer.wte.weight"}


def test_a_layer_beyond_the_model(make):
    model = make("gpt2", 0)
    with pytest.raises(InvalidInput, match="has the layers 0 to 2; 3 was asked for"):
        StitchedModel(model, model, 3, 1)(input_ids=torch.arange(4, 9)[None])
