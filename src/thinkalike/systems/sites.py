"""Sites: where in a block states are read, and which layers they fall into.

A site is a name in `SITES`, or the path of a module within a block, such as "self_attn.q_proj" or, for a
module of the block itself, ".self_attn"; ":input" behind it reads what enters the module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from thinkalike.errors import InvalidInput, ModelError, UnknownName
from thinkalike.registry import Registry
from thinkalike.systems.architectures import Architecture
from thinkalike.systems.stack import Stack, follow
from thinkalike.types import Answer, Config

if TYPE_CHECKING:
    import torch
    from torch import nn

Paths = Callable[[Architecture, "Config | None"], Sequence[str | None]]
"""From an architecture and a model's config to the paths from a block to the modules whose summed states are
the site; none, or None, where the architecture has no such site"""


def first_tensor(output: Answer) -> torch.Tensor:
    """The hidden states in what a module takes or returns: a tensor, a tuple, or a ModelOutput."""
    import torch

    if isinstance(output, torch.Tensor):
        return output
    if isinstance(output, dict):
        output = tuple(output.values())
    if isinstance(output, (tuple, list)) and output and isinstance(output[0], torch.Tensor):
        return output[0]
    raise ModelError(
        f"A block returned {type(output).__name__}, not hidden states: it cannot be read as a layer."
    )


@dataclass(frozen=True)
class Site:
    """Where in a block states are read, and which layers they fall into.

    Attributes
    ----------
    paths
        (architecture, config) → paths from a block to modules; the states of several are summed.
    reads
        What leaves these modules ("output"), what enters them ("input"), or what the model carries from token
        to token ("state").
    states
        What a module takes or answers → states (..., n_units).
    mark
        Of parts that are layers of their own: "h" makes 4.h0, 4.h1, … of layer 4.
    parts
        How many equal parts the units fall into; every unit is one if not given.
    """

    paths: Paths
    reads: Literal["output", "input", "state"] = "output"
    states: Callable[[Answer], torch.Tensor] = first_tensor
    mark: str | None = None
    parts: Callable[[Stack], int] | None = None

    def paths_in(self, row: Architecture, config: Config | None) -> tuple[str, ...]:
        """From a block to the modules of the site; empty if the architecture has no such site."""
        return tuple(path for path in self.paths(row, config) if path is not None)


def _residual(row: Architecture, config: Config | None) -> Sequence[str | None]:
    """The stream itself, which is not the output of a module within the block."""
    return ()


def _block(row: Architecture, config: Config | None) -> Sequence[str | None]:
    """What a block adds last; attention and MLP together where they are added in parallel."""
    together = getattr(config, row.parallel, False) if isinstance(row.parallel, str) else row.parallel
    return (row.attention, row.mlp) if together else (row.mixer or row.mlp,)


def n_heads(stack: Stack) -> int:
    """How many attention heads a block has."""
    config = stack.config.get_text_config() if hasattr(stack.config, "get_text_config") else stack.config
    for name in (f"{stack.part}_attention_heads", "num_attention_heads", "n_head"):
        found = getattr(config, name, None)
        if isinstance(found, int) and found > 0:
            return found
    raise ModelError(
        f"The configuration of this {stack.model_type} model does not say how many heads it has."
    )


def chosen_experts(answer: Answer) -> torch.Tensor:
    """The weights of all experts (n_tokens, n_experts), 0 for those that were not chosen."""
    import torch

    logits, weights, which = cast("tuple[torch.Tensor, torch.Tensor, torch.Tensor]", answer)
    return torch.zeros_like(logits, dtype=weights.dtype).scatter(-1, which, weights)


def _accept_site(name: str, given: object) -> Site:
    if isinstance(given, Site):
        return given
    if not callable(given):
        raise InvalidInput(
            f"The site {name!r} is {given!r}: give a Site, or a function (architecture, config) → paths."
        )
    return Site(given)


SITES: Registry[Site] = Registry(
    "site",
    "thinkalike.sites",
    {
        "residual": Site(_residual),
        "block": Site(_block),
        "attention": Site(lambda row, config: (row.attention,)),
        "mlp": Site(lambda row, config: (row.mlp,)),
        "heads": Site(lambda row, config: (row.heads,), reads="input", mark="h", parts=n_heads),
        "neurons": Site(lambda row, config: (row.neurons,), reads="input"),
        "router": Site(lambda row, config: (row.router,)),
        "experts": Site(lambda row, config: (row.router,), states=chosen_experts, mark="e"),
        "state": Site(lambda row, config: (row.state,), reads="state"),
    },
    accept=_accept_site,
)
"""Where in a block states are read; the residual stream after it, or what passes the modules within it"""


def find_site(name: str) -> Site:
    """The site of a name, or of a path within a block."""
    if name in SITES:
        return SITES[name]
    if name == "latents":
        raise InvalidInput(
            "Latents are not in the model but in an autoencoder of its residual stream: "
            "ta.extract(model, stimuli, autoencoder=…, layer=…, best='FEATURE') reads them."
        )
    path, _, end = name.partition(":")
    if "." in path.rstrip(".") and end in ("", "input", "output"):
        return Site(lambda row, config: (path.lstrip("."),), reads="input" if end == "input" else "output")
    raise UnknownName.among("site", name, [*SITES, "or the path of a module in a block, with a dot in it"])


def sites_of(row: Architecture, config: Config | None = None) -> list[str]:
    """The names of the sites that an architecture has beside the residual stream."""
    return [name for name, site in SITES.items() if site.paths_in(row, config)]


def modules_at(stack: Stack, name: str) -> tuple[tuple[nn.Module, ...], ...]:
    """For each block the modules of a site; none for a block that lacks it, as in hybrids some do."""
    from torch import nn

    paths = find_site(name).paths_in(stack.architecture, stack.config)
    found = tuple(
        tuple(
            module for path in paths if isinstance(module := follow(block, path, missing_ok=True), nn.Module)
        )
        for block in stack.blocks
    )
    if not any(found):
        have = " or ".join(["residual", *sites_of(stack.architecture, stack.config)])
        modules = ", ".join(child for child, _ in stack.blocks[0].named_children())
        raise InvalidInput(
            f"A {stack.model_type} model has no site {name!r} that we know of: choose {have}, or the path of "
            f"a module. The first block consists of {modules or 'no modules'}."
        )
    return found
