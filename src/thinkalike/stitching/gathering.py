"""One pass over text that sums what least squares and the check of stitched states need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import torch

from thinkalike.errors import InvalidInput
from thinkalike.progress import Step
from thinkalike.stitching.closed_form import LayerMoments, Pair
from thinkalike.stitching.examples import Examples
from thinkalike.stitching.job import Job
from thinkalike.stitching.phi import get_kind
from thinkalike.stitching.stitches import Role, Stitch
from thinkalike.systems.calling import bottom_states

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Gathered:
    """LayerMoments of both sides.

    Attributes
    ----------
    bottom
        By role and layer, of what goes into the linear part of φ; empty if nothing is to be fitted.
    top
        By layer.
    products : (n_in, n_out) by stitch
        Σ x yᵀ about the shifts of the moments; batches in float32, their sum in float64.
    """

    bottom: dict[tuple[Role, int], LayerMoments]
    top: dict[int, LayerMoments]
    products: dict[Stitch, Tensor]

    def pair(self, stitch: Stitch) -> Pair:
        x = self.bottom[stitch.role, stitch.layer_bottom]
        return Pair.of(x, self.top[stitch.layer_top], self.products[stitch].cpu().numpy())


def gather(
    job: Job, examples: Examples, *, kind: str | None, tokens_at_once: int, step: Step | None = None
) -> Gathered:
    """Run the bottoms and the top once over the examples; without `kind`, the top alone."""
    gathered = Gathered({}, {}, {})
    for batch in job.batches(examples, tokens_at_once):
        own = bottom_states(job.top.stack, job.top_layers | _own_layers(job, kind), batch.tokens)
        top = {at: _add(gathered.top, at, batch.rows(own[at])) for at in job.top_layers}
        if kind is not None:
            states = job.states(batch, known=own)
            bottom = {at: _add(gathered.bottom, at, _prepared(kind, batch.rows(states[at]))) for at in states}
            for stitch in job.stitches:
                product = bottom[stitch.role, stitch.layer_bottom].T @ top[stitch.layer_top]
                if stitch not in gathered.products:
                    gathered.products[stitch] = torch.zeros_like(product, dtype=torch.float64)
                gathered.products[stitch] += product
        if step is not None:
            step.advance()
    return gathered


Place = TypeVar("Place", int, tuple[Role, int])


def _add(moments: dict[Place, LayerMoments], at: Place, rows: Tensor) -> Tensor:
    """Add the rows of a layer to its moments; the rows about their shift."""
    rows = rows.float()
    if at not in moments:
        moments[at] = LayerMoments(rows)
    return moments[at].add(rows)


def least_squares(gathered: Gathered, stitch: Stitch, kind: str, rank: int | None) -> nn.Module:
    """The φ of this kind that brings the bottom's states nearest to the top's own."""
    solve = get_kind(kind).solve
    assert solve is not None
    pair = gathered.pair(stitch)
    n, width = gathered.bottom[stitch.role, stitch.layer_bottom].n, len(pair.mean_x)
    if n <= width:
        raise InvalidInput(
            f"The text to fit φ on has {n} tokens, too few for a layer of {width} units: give at least "
            f"{10 * width}."
        )
    return solve(pair, rank)


def _own_layers(job: Job, kind: str | None) -> set[int]:
    """The layers that the top's own bottom needs, where the top is its own bottom."""
    if kind is None:
        return set()
    roles = [role for role, system in job.bottoms.items() if system is job.top]
    return set().union(*(job.layers(role) for role in roles))


def _prepared(kind: str, rows: Tensor) -> Tensor:
    prepare = get_kind(kind).prepare
    return rows if prepare is None else prepare(rows.float())
