"""Muon in float32: momentum, made orthogonal (Jordan et al. 2024).

torch's own `Muon` iterates in bfloat16, which on a CPU without such arithmetic takes four times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

# The quintic that brings singular values near 1 in five iterations.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5


def orthogonalise(matrix: torch.Tensor) -> torch.Tensor:
    """A matrix with the singular vectors of `matrix` and singular values near 1 (0.7 to 1.2).

    X ← aX + (bA + cA²)X with A = XXᵀ, from X of Frobenius norm 1.
    """
    a, b, c = COEFFICIENTS
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    """Nesterov momentum whose update is made orthogonal, for weight matrices."""

    def __init__(
        self, params: Iterable[Any], *, lr: float, momentum: float = 0.95, weight_decay: float = 0.01
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            momentum, rate = group["momentum"], group["lr"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(parameter)
                average = state["momentum_buffer"].lerp_(parameter.grad, 1 - momentum)
                update = orthogonalise(parameter.grad.lerp(average, momentum))
                parameter.mul_(1 - rate * group["weight_decay"])
                parameter.add_(update, alpha=-rate * max(1.0, parameter.shape[0] / parameter.shape[1]) ** 0.5)
