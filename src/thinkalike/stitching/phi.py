"""φ, between the two models: each is its start plus what it learns, so that decay pulls to the start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.stitching.closed_form import Pair, orthogonal_solution, reduced_rank, ridge_solution
from thinkalike.types import Option

__all__ = ["KINDS", "Kind", "get_kind", "identity_start", "normalised", "restored"]


class Map(nn.Module, ABC):
    """x ↦ prepare(x) · W + b on the last axis, in float32."""

    bias_start: Tensor

    def __init__(self, bias: Tensor, *, prepare: Callable[[Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.register_buffer("bias_start", bias.float())
        self.bias_change = nn.Parameter(torch.zeros_like(bias, dtype=torch.float32))
        self.prepare = prepare

    @abstractmethod
    def matrix(self) -> Tensor:
        """(n_in, n_out)"""

    def forward(self, x: Tensor) -> Tensor:
        x = x.float()
        if self.prepare is not None:
            x = self.prepare(x)
        return x @ self.matrix() + (self.bias_start + self.bias_change)


class Affine(Map):
    """W free."""

    start: Tensor

    def __init__(self, weight: Tensor, bias: Tensor, **options: Any) -> None:
        super().__init__(bias, **options)
        self.register_buffer("start", weight.float())
        self.change = nn.Parameter(torch.zeros_like(weight, dtype=torch.float32))

    def matrix(self) -> Tensor:
        return self.start + self.change


class LowRank(Map):
    """W = left · right, of rank r."""

    left_start: Tensor
    left_change: Tensor
    right_start: Tensor
    right_change: Tensor

    def __init__(self, left: Tensor, right: Tensor, bias: Tensor) -> None:
        super().__init__(bias)
        for name, factor in (("left", left), ("right", right)):
            self.register_buffer(f"{name}_start", factor.float())
            setattr(self, f"{name}_change", nn.Parameter(torch.zeros_like(factor, dtype=torch.float32)))

    def matrix(self) -> Tensor:
        return (self.left_start + self.left_change) @ (self.right_start + self.right_change)


class Orthogonal(Map):
    """W with orthonormal rows or columns: its start, turned by the Cayley transform of A − Aᵀ.

    R = (I + S)⁻¹ (I − S) with S = A − Aᵀ is a rotation for any A. It turns the wider side, where it can reach
    every direction.
    """

    start: Tensor

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__(bias)
        self.register_buffer("start", weight.float())
        width = max(weight.shape)
        self.turn = nn.Parameter(torch.zeros(width, width))

    def matrix(self) -> Tensor:
        skew = self.turn - self.turn.T
        one = torch.eye(len(skew), dtype=skew.dtype, device=skew.device)
        rotation = torch.linalg.solve(one + skew, one - skew)
        rows, columns = self.start.shape
        return self.start @ rotation if columns > rows else rotation @ self.start


class Identity(nn.Module):
    """x ↦ x."""

    def forward(self, x: Tensor) -> Tensor:
        return x


def normalised(x: Tensor) -> Tensor:
    """LayerNorm without gain or bias, which the affine map after it has."""
    return nn.functional.layer_norm(x, x.shape[-1:])


@dataclass(frozen=True)
class Kind:
    """One kind of φ.

    Attributes
    ----------
    solve
        From the moments of both sides (and the rank) to the φ of least squares.
    start
        From the two widths to a φ that changes as little as may be; None if there is none.
    prepare
        What comes before the linear part.
    parts, make
        The names of the fixed parts, and what makes a φ of them.
    """

    solve: Callable[[Pair, int | None], nn.Module] | None
    start: Callable[[int], nn.Module] | None
    prepare: Callable[[Tensor], Tensor] | None = None
    parts: tuple[str, ...] = ("start", "bias_start")
    make: Callable[..., nn.Module] = Affine


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(array)


def _affine(pair: Pair, rank: int | None) -> nn.Module:
    return Affine(*map(_tensor, ridge_solution(pair)))


def _normed(pair: Pair, rank: int | None) -> nn.Module:
    return Affine(*map(_tensor, ridge_solution(pair)), prepare=normalised)


def _orthogonal(pair: Pair, rank: int | None) -> nn.Module:
    return Orthogonal(*map(_tensor, orthogonal_solution(pair)))


def _low_rank(pair: Pair, rank: int | None) -> nn.Module:
    narrow = min(pair.cross.shape)
    rank = max(1, narrow // 4) if rank is None else rank
    if not 1 <= rank <= narrow:
        raise InvalidInput(f"rank={rank}, but these layers allow a rank of 1 to {narrow}.")
    return LowRank(*map(_tensor, reduced_rank(pair, rank)))


def _at_identity(make: Callable[..., nn.Module], **options: Option) -> Callable[[int], nn.Module]:
    return lambda width: make(torch.eye(width), torch.zeros(width), **options)


KINDS: dict[str, Kind] = {
    "identity": Kind(None, lambda width: Identity(), parts=(), make=Identity),
    "affine": Kind(_affine, _at_identity(Affine)),
    "layernorm-affine": Kind(_normed, _at_identity(Affine, prepare=normalised), normalised),
    "orthogonal": Kind(_orthogonal, _at_identity(Orthogonal), make=Orthogonal),
    "low-rank": Kind(_low_rank, None, parts=("left_start", "right_start", "bias_start"), make=LowRank),
}
"""Name → how a φ of that kind is fitted by least squares, and where it starts"""


def get_kind(name: str) -> Kind:
    if name not in KINDS:
        raise UnknownName.among("kind of φ", name, KINDS)
    return KINDS[name]


def restored(name: str, state: dict[str, Tensor]) -> nn.Module:
    """The φ of this kind whose `state_dict` this was."""
    kind = get_kind(name)
    options = {} if kind.prepare is None else {"prepare": kind.prepare}
    phi = kind.make(*(state[part] for part in kind.parts), **options)
    phi.load_state_dict(state)
    return phi


def identity_start(kind: str, widths: tuple[int, int], names: tuple[str, str]) -> nn.Module:
    """φ at the identity, for two layers of equal width."""
    start = get_kind(kind).start
    if start is None:
        raise InvalidInput(
            f"A φ of kind {kind!r} cannot be the identity: start it at least squares, start='least-squares'."
        )
    if widths[0] != widths[1]:
        raise InvalidInput(
            f"{names[0]} is {widths[0]} wide and {names[1]} {widths[1]}: the identity cannot stand between "
            "them. Use kind='affine' with fit='least-squares'."
        )
    return start(widths[0])
