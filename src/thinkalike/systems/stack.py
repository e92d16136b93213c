"""The blocks of a model in the order in which they run, found by the table and checked against the model.

`layers_of(model)` gives a `Stack`. Layer 0 is what enters the first block; layer k is the residual stream
after block k, before any final norm.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, cast, overload

from thinkalike.errors import InvalidInput, ModelError, UnknownName
from thinkalike.systems.architectures import ARCHITECTURES, HALVES, PARTS, Architecture, Part
from thinkalike.types import Config

if TYPE_CHECKING:
    import torch
    from torch import nn


@dataclass(frozen=True, eq=False)
class Stack:
    """The blocks of a model in the order in which they run; a shared block stands there once per run.

    Attributes
    ----------
    model
        What to call: the base model, or a part that runs by itself, as the encoder of an encoder-decoder.
    owner
        The module that runs the blocks; one call of it is one pass through the stack.
    """

    model: nn.Module
    owner: nn.Module
    blocks: tuple[nn.Module, ...]
    final_norm: nn.Module | None
    architecture: Architecture
    model_type: str
    part: Part | None = None
    notes: dict[str, object] = field(default_factory=dict, repr=False)

    @property
    def n_blocks(self) -> int:
        return len(self.blocks)

    @property
    def config(self) -> Config:
        return cast("Config", self.model.config)

    def batch_first(self, states: torch.Tensor) -> torch.Tensor:
        """States as the model has them with the batch first; and, once more, as the model has them."""
        return states.transpose(0, 1) if self.architecture.time_first else states


def layers_of(model: nn.Module, *, part: Part | None = None, blocks: str | None = None) -> Stack:
    """Find the blocks of `model`, with or without a head on top.

    Parameters
    ----------
    model
        A loaded model.
    part
        Which stack of a model that has several; the first of `parts_of` if not given.
    blocks
        The dotted path of the list of blocks, for an architecture that the table does not have.

    Returns
    -------
    Stack

    Examples
    --------
    >>> from thinkalike.systems import bundled, layers_of
    >>> len(layers_of(bundled.load("nano-gelu-3l")[0]).blocks)
    3
    """
    base = _base_of(model)
    model_type = str(getattr(getattr(base, "config", None), "model_type", type(base).__name__))
    row = ARCHITECTURES.get(model_type)
    part = _part_of(parts_of(getattr(base, "config", None)), part, model_type, known=row is not None)
    root = base if part is None else getattr(base, part, None) or getattr(base, f"{part}_model", None)
    if root is None:
        raise ModelError(f"This {model_type} model has no {part} of its own: hand over the {part} itself.")
    # A tower has a configuration, and so a row, of its own: its final norm is not that of the other.
    row = ARCHITECTURES.get(str(getattr(getattr(root, "config", None), "model_type", "")), row)
    # An encoder runs by itself; a decoder is run by the whole model, which feeds it the encoder's answer.
    caller = base if part == "decoder" else root

    if blocks is not None:
        path, row = blocks, replace(row or Architecture("unknown", blocks), blocks=blocks)
    elif row is not None and _fits(root, row):
        path = row.blocks
    else:
        path = _discover(root, model_type)
        row = Architecture("unknown", path)
    listed = _listed(root, path, model_type, named=blocks is not None)
    return Stack(
        model=caller,
        owner=_owner(root, path),
        blocks=_in_order(listed, getattr(base, "config", None)),
        final_norm=follow(root, row.final_norm, missing_ok=True) if row.final_norm else None,
        architecture=row,
        model_type=model_type,
        part=part,
    )


@overload
def follow(module: nn.Module, path: str) -> nn.Module: ...
@overload
def follow(module: nn.Module, path: str, *, missing_ok: Literal[True]) -> nn.Module | None: ...


def follow(module: nn.Module, path: str, *, missing_ok: bool = False) -> nn.Module | None:
    """The submodule at a dotted path; integers, also negative ones, count in a ModuleList."""
    at = module
    for step in path.split("."):
        found = _numbered(at, int(step)) if step.lstrip("-").isdigit() else getattr(at, step, None)
        if found is None:
            if missing_ok:
                return None
            raise ModelError(f"{type(module).__name__} has no module {path!r}.")
        at = found
    return at


def _numbered(modules: nn.Module, number: int) -> nn.Module | None:
    """The module of a number in a list of modules; None if there is none."""
    from torch import nn

    if not isinstance(modules, (nn.ModuleList, nn.Sequential)) or not -len(modules) <= number < len(modules):
        return None
    return modules[number]


def parts_of(config: Config | None) -> tuple[Part, ...]:
    """The stacks of a model that has several, the one that is taken unasked first; none if it has one."""
    row = ARCHITECTURES.get(str(getattr(config, "model_type", "")))
    if row is not None:
        return row.parts
    return HALVES if getattr(config, "is_encoder_decoder", False) else ()


def _part_of(parts: tuple[Part, ...], part: Part | None, model_type: str, *, known: bool) -> Part | None:
    """The part that was asked for, if the model has it; else the one that is taken unasked."""
    if part is not None and part not in PARTS:
        raise UnknownName.among("part", part, PARTS)
    if part is not None and known and not parts:
        raise InvalidInput(f"A {model_type} model is one stack: leave out part={part!r}.")
    if part is not None and parts and part not in parts:
        raise InvalidInput(f"A {model_type} model has no part {part!r}: choose {' or '.join(parts)}.")
    return part or next(iter(parts), None)


def _base_of(model: nn.Module) -> nn.Module:
    """The model without its output layer; itself if it has the blocks where the table says.

    transformers goes by the name of an attribute, which in some models is a part of the base model itself,
    and in some (Llama 4) is that of none: there the base model is called `model`, as in most.
    """
    row = ARCHITECTURES.get(str(getattr(getattr(model, "config", None), "model_type", "")))
    base: nn.Module = getattr(model, "base_model", model)
    if row is not None:
        return next((one for one in (model, base, getattr(model, "model", model)) if _fits(one, row)), base)
    return base


def _fits(root: nn.Module, row: Architecture) -> bool:
    """Whether the model is built as the table says; another version of transformers may differ."""
    from torch import nn

    return isinstance(follow(root, row.blocks, missing_ok=True), nn.ModuleList)


def _listed(root: nn.Module, path: str, model_type: str, *, named: bool) -> list[nn.Module]:
    """The blocks at a path. If a user named it, they must be of one kind; hybrids of the table need not."""
    from torch import nn

    found = follow(root, path, missing_ok=True)
    if not isinstance(found, (nn.ModuleList, nn.Sequential)) or not len(found):
        known = ", ".join(name for name, _ in _lists(root)) or "none"
        raise ModelError(
            f"There is no list of blocks at {path!r} in this {model_type} model. Lists: {known}."
        )
    if named and not _of_one_kind(found):
        raise ModelError(f"The blocks at {path!r} in this {model_type} model are not of one kind.")
    return list(found)


def _in_order(listed: list[nn.Module], config: Config | None) -> tuple[nn.Module, ...]:
    """Spread shared blocks over the layers they serve as, as ALBERT does with its groups."""
    n_runs = getattr(config, "num_hidden_layers", len(listed))
    if not hasattr(config, "num_hidden_groups") or n_runs <= len(listed):
        return tuple(listed)
    return tuple(listed[run * len(listed) // n_runs] for run in range(n_runs))


def _owner(root: nn.Module, path: str) -> nn.Module:
    parent, _, _ = path.rpartition(".")
    return follow(root, parent) if parent else root


def _of_one_kind(blocks: Iterable[nn.Module]) -> bool:
    """Whether blocks share more than being modules: those of hybrids are several classes of one base."""
    from torch import nn

    shared = set.intersection(*(set(type(block).__mro__) for block in blocks))
    return bool(shared - set(nn.Module.__mro__))


def _lists(root: nn.Module) -> Iterator[tuple[str, nn.ModuleList]]:
    from torch import nn

    for name, module in root.named_modules():
        if isinstance(module, nn.ModuleList) and len(module) and _of_one_kind(module):
            yield name, module


def _discover(root: nn.Module, model_type: str) -> str:
    """The path of the longest list of equal blocks; of equally long ones, that with the most parameters."""
    candidates = [
        (len(blocks), sum(p.numel() for p in blocks.parameters()), name) for name, blocks in _lists(root)
    ]
    if not candidates:
        raise ModelError(
            f"No list of equal blocks found in this {model_type} model: "
            "name it with blocks='path.to.the.list', or hand over arrays with Activations.from_arrays."
        )
    length, _, path = max(candidates)
    warnings.warn(
        f"The architecture {model_type!r} is not in the table: taking the {length} equal blocks at {path!r} "
        "as its layers. If that is wrong, name the right list with blocks='path.to.the.list'.",
        UserWarning,
        stacklevel=3,
    )
    return path
