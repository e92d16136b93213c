"""The fused scan and convolution against their definitions, torch, and numerical gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from thinkalike.errors import InvalidInput
from thinkalike.systems.mamba.conv_kernels import conv_backward, conv_forward
from thinkalike.systems.mamba.scan_kernels import CHUNK, scan_backward, scan_forward
from thinkalike.systems.mamba.scan_maths import BLOCK
from thinkalike.systems.mamba.scan_operations import selective_scan, silu_convolution


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


def test_one_decay_for_all_states_is_the_same_as_equal_ones():
    inputs = random_inputs(2, CHUNK + 4, 5, 6)
    inputs["A"] = inputs["A"][:, :1]
    alike = inputs | {"A": inputs["A"].expand(-1, 6)}
    expected, last = scan_by_definition(**alike)
    leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
    y, state = selective_scan(**leaves)
    np.testing.assert_allclose(y.detach(), expected, rtol=1e-12)
    np.testing.assert_allclose(state, last, rtol=1e-12)
    full = {name: x.clone().requires_grad_() for name, x in alike.items()}
    grads = torch.autograd.grad(y.square().sum(), list(leaves.values()))
    full_grads = torch.autograd.grad(selective_scan(**full)[0].square().sum(), list(full.values()))
    for name, grad, full_grad in zip(inputs, grads, full_grads, strict=True):
        torch.testing.assert_close(grad, full_grad.sum_to_size(grad.shape), msg=name)


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


@pytest.mark.parametrize("function", [scan_forward, scan_backward, conv_forward, conv_backward])
def test_other_threads_run_meanwhile(function):
    """Numba lets go of the lock of the interpreter while a kernel runs."""
    assert function.targetoptions["nogil"]


def convolve_with_torch(x, weight, bias):
    taps = weight.shape[1]
    padded = F.conv1d(x.mT, weight[:, None], bias, padding=taps - 1, groups=x.shape[2])
    return F.silu(padded[..., : x.shape[1]]).mT


@pytest.mark.parametrize("n_steps", [1, 3, 4, 21])
def test_convolution_and_its_gradients_equal_those_of_torch(n_steps):
    generator = torch.Generator().manual_seed(n_steps)
    x, weight, bias, grad = (
        torch.randn(*shape, generator=generator, requires_grad=True)
        for shape in ((2, n_steps, BLOCK + 9), (BLOCK + 9, 4), (BLOCK + 9,), (2, n_steps, BLOCK + 9))
    )
    results = []
    for convolve in (silu_convolution, convolve_with_torch):
        y = convolve(x, weight, bias)
        results.append([y, *torch.autograd.grad(y, (x, weight, bias), grad)])
    for fused, reference in zip(*results, strict=True):
        torch.testing.assert_close(fused, reference, rtol=1e-5, atol=1e-5)


def test_convolution_gradients_agree_with_finite_differences():
    generator = torch.Generator().manual_seed(0)
    tensors = [
        torch.randn(*shape, dtype=torch.float64, generator=generator, requires_grad=True)
        for shape in ((2, 6, 3), (3, 4), (3,))
    ]
    assert torch.autograd.gradcheck(silu_convolution, tensors)


def test_convolution_without_a_bias():
    x, weight = torch.randn(1, 7, 5), torch.randn(5, 3)
    torch.testing.assert_close(silu_convolution(x, weight), convolve_with_torch(x, weight, None))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dt": torch.zeros(1, 6, 5)}, r"dt has the shape \(1, 6, 5\); expected \(1, 6, 4\)"),
        ({"A": -torch.ones(3, 1)}, r"A has the shape \(3, 1\); expected \(4, 1\)"),
        ({"A": -torch.ones(3, 2)}, r"A has the shape \(3, 2\); expected \(4, 2\)"),
        ({"B": torch.zeros(1, 5, 2)}, r"B has the shape \(1, 5, 2\); expected \(1, 6, 2\)"),
        ({"C": torch.zeros(2, 6, 2)}, r"C has the shape \(2, 6, 2\); expected \(1, 6, 2\)"),
        ({"D": torch.zeros(1)}, r"D has the shape \(1,\); expected \(4,\)"),
        ({"z": torch.zeros(1, 6)}, r"z has the shape \(1, 6\); expected \(1, 6, 4\)"),
        ({"D": torch.zeros(4, device="meta")}, r"D is on meta; .* D\.cpu\(\)"),
    ],
)
def test_wrong_shapes_and_devices_are_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        selective_scan(**random_inputs(1, 6, 4, 2, torch.float32) | change)


def test_a_scan_over_no_step_is_refused():
    with pytest.raises(InvalidInput, match="not empty"):
        selective_scan(**random_inputs(1, 0, 4, 2))


def test_wrong_shapes_of_the_convolution_are_refused():
    x = torch.zeros(1, 6, 4)
    with pytest.raises(InvalidInput, match=r"weight has the shape \(3, 2\); expected \(4, 2\)"):
        silu_convolution(x, torch.zeros(3, 2))
    with pytest.raises(InvalidInput, match=r"bias has the shape \(2,\); expected \(4,\)"):
        silu_convolution(x, torch.zeros(4, 2), torch.zeros(2))
