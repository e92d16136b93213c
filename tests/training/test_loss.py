"""The chunked loss and the orthogonal optimizer, against plain torch."""

from __future__ import annotations

import pytest
import torch

from training import loss as module
from training.loss import linear_cross_entropy
from training.muon import Muon, orthogonalise


@pytest.mark.parametrize("with_bias", [True, False])
def test_loss_and_gradients_are_those_of_plain_cross_entropy(
    with_bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK", 4)
    generator = torch.Generator().manual_seed(0)
    hidden, weight = (torch.randn(n, 3, generator=generator).double() for n in (10, 7))
    bias = torch.randn(7, generator=generator).double() if with_bias else torch.zeros(7).double()
    labels = torch.randint(0, 7, (10,), generator=generator)
    parts = [tensor.clone().requires_grad_() for tensor in (hidden, weight, bias)]
    plain = [tensor.clone().requires_grad_() for tensor in (hidden, weight, bias)]
    found = linear_cross_entropy(parts[0], parts[1], labels, parts[2] if with_bias else None)
    expected = torch.nn.functional.cross_entropy(plain[0] @ plain[1].T + plain[2], labels)
    (3 * found).backward()
    (3 * expected).backward()
    assert found.item() == pytest.approx(expected.item())
    for one, other in list(zip(parts, plain, strict=True))[: 3 if with_bias else 2]:
        torch.testing.assert_close(one.grad, other.grad)


@pytest.mark.parametrize("shape", [(12, 30), (30, 12), (16, 16)])
def test_orthogonalising_keeps_singular_vectors_and_evens_singular_values(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    core = left.T @ orthogonalise(matrix) @ right.T
    values = core.diagonal()
    assert (core - values.diag()).abs().max() < 1e-4
    if shape != (16, 16):  # a square random matrix has singular values too near zero for five iterations
        assert (values > 0.5).all()
    assert (values < 1.3).all()


def test_muon_does_as_torchs_own_does_but_for_rounding() -> None:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(8, 24, generator=generator)
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    optimizers = Muon([ours], lr=0.02), torch.optim.Muon([theirs], lr=0.02, weight_decay=0.01)
    for _ in range(5):
        gradient = torch.randn(8, 24, generator=generator)
        for parameter, optimizer in zip((ours, theirs), optimizers, strict=True):
            parameter.grad = gradient.clone()
            optimizer.step()
    assert (ours - start).norm() > 0.05
    assert (ours - theirs).norm() < 0.02 * (ours - start).norm()


def test_muon_leaves_parameters_without_a_gradient_alone() -> None:
    parameter = torch.nn.Parameter(torch.ones(2, 2))
    Muon([parameter], lr=1.0).step()
    assert (parameter == 1).all()
