"""Mamba and Mamba-2 through the fused scan against transformers' own path."""

from __future__ import annotations

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    GPT2Model,
    Mamba2Config,
    MambaConfig,
    MambaForCausalLM,
)

from thinkalike.systems.mamba.selective_scan import SWITCH, fused_scan, selective_scan

SIZES = {"vocab_size": 60, "hidden_size": 48, "num_hidden_layers": 3}
CONFIGS = {
    "mamba": MambaConfig(**SIZES, state_size=5, time_step_rank=4),
    "mamba without biases": MambaConfig(**SIZES, state_size=16, use_conv_bias=False),
    "mamba2": Mamba2Config(**SIZES, state_size=7, num_heads=6, head_dim=16, n_groups=1, chunk_size=16),
    "mamba2 in groups": Mamba2Config(
        **SIZES, state_size=4, num_heads=8, head_dim=12, n_groups=2, chunk_size=8
    ),
}


def build(config):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():  # away from the symmetries of a fresh model
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return model.eval()


@pytest.fixture(scope="module", params=CONFIGS)
def any_mamba(request):
    return build(CONFIGS[request.param])


@pytest.fixture(scope="module")
def mamba():
    return build(CONFIGS["mamba"])


@pytest.fixture
def batch():
    """Ids (3, 37) and their mask: no padding, right padding, left padding."""
    ids = torch.randint(0, 60, (3, 37), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, 20:] = 0
    mask[2, :5] = 0
    return ids, mask


def logits_and_gradients(model, ids, mask, *, enabled):
    model.zero_grad()
    with fused_scan(model, enabled=enabled):
        result = model(ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100))
        result.loss.backward()
    return result.logits.detach(), {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("training", [False, True])
def test_mamba_equals_transformers_with_padding(any_mamba, batch, training):
    any_mamba.train(training)
    try:
        logits, gradients = logits_and_gradients(any_mamba, *batch, enabled=True)
        expected, expected_gradients = logits_and_gradients(any_mamba, *batch, enabled=False)
    finally:
        any_mamba.eval()
    torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-5)
    for name, gradient in gradients.items():
        expected_gradient = expected_gradients[name]
        scale = expected_gradient.abs().max().item()
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-4, atol=1e-5 * scale, msg=name)


def test_every_hidden_state_is_the_same(any_mamba, batch):
    ids, mask = batch
    with torch.no_grad():
        expected = any_mamba(ids, attention_mask=mask, output_hidden_states=True).hidden_states
        with fused_scan(any_mamba):
            states = any_mamba(ids, attention_mask=mask, output_hidden_states=True).hidden_states
    for state, reference in zip(states, expected, strict=True):
        torch.testing.assert_close(state, reference, rtol=1e-5, atol=1e-5)


def test_generation_from_the_cache_is_the_same(any_mamba, batch):
    ids = batch[0][:, :11]
    options = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    expected = any_mamba.generate(ids, **options)
    with fused_scan(any_mamba):
        assert torch.equal(any_mamba.generate(ids, **options), expected)
        first = any_mamba(ids[:, :6], use_cache=True)
        second = any_mamba(ids[:, 6:7], cache_params=first.cache_params, use_cache=True)
    whole = any_mamba(ids[:, :7]).logits[:, -1]
    torch.testing.assert_close(second.logits[:, -1], whole, rtol=1e-5, atol=1e-5)


def test_bfloat16_is_as_close_as_bfloat16_allows(any_mamba, batch):
    ids, mask = batch
    with torch.no_grad():
        exact = any_mamba(ids, attention_mask=mask).logits
        half = AutoModelForCausalLM.from_config(any_mamba.config).eval()
        half.load_state_dict(any_mamba.state_dict())
        half.to(torch.bfloat16)
        with fused_scan(half):
            logits = half(ids, attention_mask=mask).logits
    assert (logits - exact).norm() / exact.norm() < 0.02


def count_calls(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "thinkalike.systems.mamba.selective_scan.selective_scan",
        lambda *args, **kwargs: calls.append(1) or selective_scan(*args, **kwargs),
    )
    return calls


def test_it_is_used_inside_the_block_and_only_there(mamba, batch, monkeypatch):
    calls = count_calls(monkeypatch)
    ids = batch[0]
    with torch.no_grad():
        with fused_scan(mamba), fused_scan(mamba):  # twice is once
            mamba(ids)
            assert len(calls) == mamba.config.num_hidden_layers
        mamba(ids)
        with fused_scan(mamba, enabled=False):
            mamba(ids)
        monkeypatch.setenv(SWITCH, "0")
        with fused_scan(mamba):
            mamba(ids)
    assert len(calls) == mamba.config.num_hidden_layers
    assert not any("forward" in vars(module) for module in mamba.modules())


def test_the_model_is_restored_after_an_error(mamba):
    with pytest.raises(RuntimeError, match="stop"), fused_scan(mamba):
        raise RuntimeError("stop")
    assert not any("forward" in vars(module) for module in mamba.modules())


def test_another_model_is_untouched(mamba, batch, monkeypatch):
    calls = count_calls(monkeypatch)
    other = MambaForCausalLM(mamba.config).eval()
    with fused_scan(mamba), torch.no_grad():
        other(batch[0])
    assert not calls


def test_models_without_mamba_are_left_alone():
    model = GPT2Model(GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=10))
    with fused_scan(model):
        assert not any("forward" in vars(module) for module in model.modules())


def test_hooks_on_the_mixer_and_its_parts_still_fire(mamba, batch):
    seen = []
    mixer = mamba.backbone.layers[1].mixer
    parts = (mixer, mixer.in_proj, mixer.x_proj, mixer.out_proj)
    handles = [part.register_forward_hook(lambda module, *_: seen.append(module)) for part in parts]
    try:
        with fused_scan(mamba), torch.no_grad():
            mamba(batch[0])
    finally:
        for handle in handles:
            handle.remove()
    assert set(seen) == set(parts)


def test_what_the_kernel_does_not_know_goes_the_usual_way(batch, monkeypatch):
    """Another activation, bounded time steps, and more than one token after a cache."""
    calls = count_calls(monkeypatch)
    ids = batch[0]
    odd = [
        MambaConfig(**SIZES, state_size=5, hidden_act="gelu"),
        Mamba2Config(
            **SIZES, num_heads=6, head_dim=16, n_groups=1, chunk_size=16, time_step_limit=(0.0, 0.05)
        ),
    ]
    for config in odd:
        model = build(config)
        with torch.no_grad(), fused_scan(model):
            model(ids)
    assert not calls
    model = build(CONFIGS["mamba2"])
    with torch.no_grad(), fused_scan(model):
        first = model(ids[:, :20], use_cache=True)
        n_calls = len(calls)
        assert n_calls == model.config.num_hidden_layers
        second = model(ids[:, 20:], cache_params=first.cache_params, use_cache=True)
    assert len(calls) == n_calls
    torch.testing.assert_close(second.logits, model(ids).logits[:, 20:], rtol=1e-5, atol=1e-5)
