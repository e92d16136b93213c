"""Cross-entropy of a large vocabulary without ever holding all its logits."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

SMALLEST = 1e-30  # of a probability whose logarithm is taken
CHUNK = 256  # rows whose logits are held at once: 4 MB for 4,096 tokens, which stays in the cache


class _LinearCrossEntropy(Function):
    """mean(−log softmax(H Wᵀ + b)[y]), the gradient computed on the way forward, chunk by chunk."""

    @staticmethod
    def forward(
        ctx: Any, hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, labels: torch.Tensor
    ) -> torch.Tensor:
        grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        grad_bias = torch.zeros_like(bias)
        total = hidden.new_zeros(())
        for start in range(0, len(hidden), CHUNK):
            part = slice(start, start + CHUNK)
            wanted = labels[part, None]
            error = torch.addmm(bias, hidden[part], weight.T).softmax(1)
            right = error.gather(1, wanted)
            total -= right.clamp_min(SMALLEST).log().sum()
            error.scatter_(1, wanted, right - 1)  # softmax minus the one-hot label
            grad_hidden[part] = error @ weight
            grad_weight.addmm_(error.T, hidden[part])
            grad_bias += error.sum(0)
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        ctx.count = len(hidden)
        return total / len(hidden)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        scale = grad / ctx.count
        return *(saved * scale for saved in ctx.saved_tensors), None


def linear_cross_entropy(
    hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """The mean cross-entropy of `hidden @ weight.T + bias` against `labels`.

    Parameters
    ----------
    hidden : of shape (n, d)
    weight : of shape (n_tokens, d)
    labels : of shape (n,), each a row of `weight`
    bias : of shape (n_tokens,), optional
    """
    bias = torch.zeros(len(weight), dtype=weight.dtype) if bias is None else bias
    return _LinearCrossEntropy.apply(hidden, weight, bias, labels)
