"""Reading the layers of a model while it runs.

Layer k < L is read where it enters block k + 1, layer L where it leaves the last block: so a layer is
exactly what `start_from` puts back, also where a model does something between its blocks (DeBERTa-v2's
convolution).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from thinkalike.errors import ModelError
from thinkalike.labels import Layer
from thinkalike.systems.sites import find_site, first_tensor, modules_at
from thinkalike.systems.stack import Stack

if TYPE_CHECKING:
    import torch

Keep = Callable[[Layer, "torch.Tensor"], "torch.Tensor"]
FINAL_NORM = "final_norm"


def entering(args: tuple[object, ...], kwargs: dict[str, object]) -> torch.Tensor:
    """The hidden states in the arguments of a block: the first one, or that called `hidden_states`."""
    import torch

    states = args[0] if args else kwargs.get("hidden_states")
    if not isinstance(states, torch.Tensor):
        raise ModelError("A block was called without hidden states: it cannot be read as a layer.")
    return states


class Recording:
    """What one pass through a stack left behind; emptied when the next pass begins."""

    def __init__(self, stack: Stack, keep: Keep) -> None:
        self.stack, self.keep = stack, keep
        self.states: dict[Layer, torch.Tensor] = {}
        self.n_runs = 0

    def begin(self) -> None:
        self.states.clear()
        self.n_runs = 0

    def entered(self, block: torch.nn.Module) -> int:
        """Count one more block in and give the layer that enters it; the order is checked as it goes."""
        run = self.n_runs
        if run >= self.stack.n_blocks or self.stack.blocks[run] is not block:
            raise ModelError(
                f"The blocks of this {self.stack.model_type} model do not run one after the other, "
                "as layers do: name the right list with blocks='path.to.the.list'."
            )
        self.n_runs += 1
        return run

    def add(self, layer: Layer, states: torch.Tensor) -> None:
        kept = self.keep(layer, self.stack.batch_first(states))
        # Where several modules of a block answer at this site, their sum.
        self.states[layer] = self.states[layer] + kept if layer in self.states else kept

    def check(self) -> None:
        """Raise unless the pass went through every block."""
        if self.n_runs != self.stack.n_blocks:
            raise ModelError(
                f"Only {self.n_runs} of the {self.stack.n_blocks} blocks of this {self.stack.model_type} "
                "model ran: name the right list with blocks='path.to.the.list'."
            )


@contextmanager
def recording(
    stack: Stack,
    keep: Keep = lambda layer, states: states,
    *,
    site: str = "residual",
    final_norm: bool = False,
) -> Iterator[Recording]:
    """While the block runs, each call of the model fills `.states`: layer → `keep(layer, states)`.

    The site "residual" has layers 0 … L, the others those of 1 … L whose blocks have it; `final_norm` adds a
    layer of that name.
    """
    record, where = Recording(stack, keep), find_site(site)
    last = stack.n_blocks

    def enter(block: torch.nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        layer = record.entered(block)
        if site == "residual":
            record.add(layer, entering(args, kwargs))

    def leave(block: torch.nn.Module, args: object, output: object) -> None:
        if site == "residual" and record.n_runs == last:
            record.add(last, first_tensor(output))

    # A shared block is the same module in every run: which layer a module is of, the count says.
    def answer(module: torch.nn.Module, args: object, output: object) -> None:
        record.add(record.n_runs, where.states(output))

    def question(module: torch.nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        record.add(record.n_runs, where.states(args or tuple(kwargs.values())))

    def norm(module: torch.nn.Module, args: object, output: object) -> None:
        if record.n_runs == last:  # some models use the same norm before the first block
            record.add(FINAL_NORM, first_tensor(output))

    handles = [stack.owner.register_forward_pre_hook(lambda module, args: record.begin())]
    try:
        for block in dict.fromkeys(stack.blocks):
            handles.append(block.register_forward_pre_hook(enter, with_kwargs=True))
            handles.append(block.register_forward_hook(leave))
        modules = () if site == "residual" else modules_at(stack, site)
        for module in dict.fromkeys(module for group in modules for module in group):
            if where.reads == "input":
                handles.append(module.register_forward_pre_hook(question, with_kwargs=True))
            else:
                handles.append(module.register_forward_hook(answer))
        if final_norm and stack.final_norm is not None:
            handles.append(stack.final_norm.register_forward_hook(norm))
        yield record
    finally:
        for handle in handles:
            handle.remove()
