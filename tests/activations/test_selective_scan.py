"""The fused scan against transformers' own Mamba, a plain loop, and numerical gradients."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2Model, MambaConfig, MambaForCausalLM

from thinkalike.activations.scan_kernels import BLOCK, CHUNK
from thinkalike.activations.selective_scan import SWITCH, fused_scan, selective_scan
from thinkalike.errors import InvalidInput


@pytest.fixture(scope="module")
def mamba():
    torch.manual_seed(0)
    config = MambaConfig(vocab_size=60, hidden_size=48, num_hidden_layers=3, state_size=5, time_step_rank=4)
    model = MambaForCausalLM(config)
    with torch.no_grad():  # away from the symmetries of a fresh model
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return model.eval()


@pytest.fixture
def batch():
    """Ids (3, 37) and their mask: no padding, right padding, left padding."""
    ids = torch.randint(0, 60, (3, 37), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, 20:] = 0
    mask[2, :5] = 0
    return ids, mask


def random_inputs(n_batch, n_steps, n_channels, n_states, dtype=torch.float64, *, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, dtype=dtype, generator=generator)

    u, dt, z = (draw(n_batch, n_steps, n_channels) for _ in range(3))
    A = -draw(n_channels, n_states).exp()
    B, C = (draw(n_batch, n_steps, n_states) for _ in range(2))
    return {"u": u, "dt": dt, "A": A, "B": B, "C": C, "D": draw(n_channels), "z": z}


def scan_by_definition(u, dt, A, B, C, D, z=None):
    """Gu and Dao's recurrence, one step, one state at a time, in float64."""
    u, dt, A, B, C, D = (x.double().numpy() for x in (u, dt, A, B, C, D))
    delta = np.logaddexp(dt, 0)
    h = np.zeros((u.shape[0], *A.shape))
    outputs = []
    for t in range(u.shape[1]):
        h = np.exp(delta[:, t, :, None] * A) * h + (delta[:, t] * u[:, t])[..., None] * B[:, t, None, :]
        outputs.append((h * C[:, t, None, :]).sum(-1) + D * u[:, t])
    y = np.stack(outputs, 1)
    if z is not None:
        z = z.double().numpy()
        y = y * z / (1 + np.exp(-z))
    return y, h


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize(
    "shape",
    [
        (1, 1, 1, 1),
        (2, CHUNK, BLOCK, 16),
        (3, 2 * CHUNK + 1, BLOCK + 7, 3),  # neither whole chunks nor whole blocks
        (2, CHUNK - 1, 2 * BLOCK - 1, 8),
    ],
)
def test_follows_the_definition(shape, gated):
    inputs = random_inputs(*shape, dtype=torch.float32)
    if not gated:
        inputs["z"] = None
    y, state = selective_scan(**inputs)
    expected, last = scan_by_definition(**inputs)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(state, last, rtol=1e-5, atol=1e-5)


def test_extreme_time_steps_and_gates_are_exact():
    inputs = random_inputs(1, 12, 4, 2, torch.float32)
    steps = torch.tensor([-200.0, -90, -30, -5, -1e-3, 0, 1e-3, 5, 30, 60, 90, 200])
    gates = torch.tensor([200.0, -200, 90, -90, 20, -20, 1e-4, -1e-4, 0, 88, -88, 3])
    inputs["dt"], inputs["z"] = (x.view(1, 12, 1).expand(1, 12, 4) for x in (steps, gates))
    expected, _ = scan_by_definition(**inputs)
    np.testing.assert_allclose(selective_scan(**inputs)[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("gated", [True, False])
def test_gradients_agree_with_finite_differences(gated):
    inputs = random_inputs(2, CHUNK + 3, 3, 2)
    tensors = [x.requires_grad_() for name, x in inputs.items() if gated or name != "z"]

    def scan(u, dt, A, B, C, D, z=None):
        return selective_scan(u, dt, A, B, C, D, z=z)[0]

    assert torch.autograd.gradcheck(scan, tensors)


def test_float32_gradients_agree_with_float64_ones():
    """Gradcheck sees only the float64 code; whole and broken blocks, in the arithmetic that training uses."""
    doubles = random_inputs(2, 2 * CHUNK + 5, 2 * BLOCK + 9, 4)
    weight = torch.randn(doubles["u"].shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    gradients = []
    for dtype in (torch.float64, torch.float32):
        leaves = {name: x.to(dtype).requires_grad_() for name, x in doubles.items()}
        loss = (selective_scan(**leaves)[0] * weight.to(dtype)).sum()
        gradients.append(torch.autograd.grad(loss, list(leaves.values())))
    for name, exact, single in zip(doubles, *gradients, strict=True):
        assert single.dtype == torch.float32
        torch.testing.assert_close(
            single.double(), exact, rtol=1e-4, atol=1e-5 * exact.abs().max().item(), msg=name
        )


def test_slices_and_transposes_need_no_special_care():
    inputs = random_inputs(2, 9, 6, 3, torch.float32)
    wide = torch.cat([inputs["u"], inputs["z"]], -1)
    views = inputs | {
        "u": wide[..., :6],
        "z": wide[..., 6:],
        "dt": inputs["dt"].transpose(1, 2).contiguous().mT,
    }
    assert torch.equal(selective_scan(**views)[0], selective_scan(**inputs)[0])


def test_threads_change_nothing():
    inputs = random_inputs(3, 20, BLOCK + 5, 4, torch.float32)
    leaves = {name: x.requires_grad_() for name, x in inputs.items()}
    before, results = torch.get_num_threads(), []
    try:
        for n_threads in (1, 2, 5):
            torch.set_num_threads(n_threads)
            y, _ = selective_scan(**leaves)
            results.append([y, *torch.autograd.grad(y.square().sum(), list(leaves.values()))])
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(x, y) for x, y in zip(results[0], other, strict=True))


@pytest.mark.parametrize("name", ["u", "dt", "A", "B", "C", "D", "z"])
def test_nan_stays_visible(name):
    inputs = random_inputs(1, 6, 4, 2, torch.float32)
    inputs[name].view(-1)[0] = float("nan")
    assert selective_scan(**inputs)[0].isnan().any()


def test_growing_states_are_refused():
    inputs = random_inputs(1, 6, 4, 2)
    inputs["A"][2, 1] = 0.5
    with pytest.raises(InvalidInput, match=r"A must not be positive.*largest value is 0\.5"):
        selective_scan(**inputs)


def logits_and_gradients(model, ids, mask, *, enabled):
    model.zero_grad()
    with fused_scan(model, enabled=enabled):
        result = model(ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100))
        result.loss.backward()
    return result.logits.detach(), {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("training", [False, True])
def test_mamba_equals_transformers_with_padding(mamba, batch, training):
    mamba.train(training)
    try:
        logits, gradients = logits_and_gradients(mamba, *batch, enabled=True)
        expected, expected_gradients = logits_and_gradients(mamba, *batch, enabled=False)
    finally:
        mamba.eval()
    torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-5)
    for name, gradient in gradients.items():
        expected_gradient = expected_gradients[name]
        scale = expected_gradient.abs().max().item()
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-4, atol=1e-5 * scale, msg=name)


def test_every_hidden_state_is_the_same(mamba, batch):
    ids, mask = batch
    with torch.no_grad():
        expected = mamba(ids, attention_mask=mask, output_hidden_states=True).hidden_states
        with fused_scan(mamba):
            states = mamba(ids, attention_mask=mask, output_hidden_states=True).hidden_states
    for state, reference in zip(states, expected, strict=True):
        torch.testing.assert_close(state, reference, rtol=1e-5, atol=1e-5)


def test_generation_from_the_cache_is_the_same(mamba, batch):
    ids = batch[0][:, :11]
    options = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    expected = mamba.generate(ids, **options)
    with fused_scan(mamba):
        assert torch.equal(mamba.generate(ids, **options), expected)
        first = mamba(ids[:, :6], use_cache=True)
        second = mamba(ids[:, 6:7], cache_params=first.cache_params, use_cache=True)
    whole = mamba(ids[:, :7]).logits[:, -1]
    torch.testing.assert_close(second.logits[:, -1], whole, rtol=1e-5, atol=1e-5)


def test_bfloat16_is_as_close_as_bfloat16_allows(mamba, batch):
    ids, mask = batch
    with torch.no_grad():
        exact = mamba(ids, attention_mask=mask).logits
        half = MambaForCausalLM(mamba.config).eval()
        half.load_state_dict(mamba.state_dict())
        half.to(torch.bfloat16)
        with fused_scan(half):
            logits = half(ids, attention_mask=mask).logits
    assert (logits - exact).norm() / exact.norm() < 0.02


def count_calls(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "thinkalike.activations.selective_scan.selective_scan",
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
    parts = (mixer, mixer.in_proj, mixer.conv1d, mixer.x_proj, mixer.dt_proj, mixer.out_proj)
    handles = [part.register_forward_hook(lambda module, *_: seen.append(module)) for part in parts]
    try:
        with fused_scan(mamba), torch.no_grad():
            mamba(batch[0])
    finally:
        for handle in handles:
            handle.remove()
    assert set(seen) == set(parts)


def test_other_threads_run_meanwhile():
    """The kernel holds no lock: a Python thread goes on counting while one call runs."""
    inputs = random_inputs(8, 512, 4 * BLOCK, 16, torch.float32)
    selective_scan(**inputs)  # compiled
    counts, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counts[0] += 1

    counter = threading.Thread(target=count)
    counter.start()
    before = counts[0]
    selective_scan(**inputs)
    during = counts[0] - before
    done.set()
    counter.join()
    assert during > 1000
