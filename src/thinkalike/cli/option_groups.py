"""Options that go together in several commands: said once, and handed over as one thing.

    @app.command()
    @grouped
    def profile(model: …, *, on: Machine, …): …

To the command line a group stands for its fields, in their order and at its place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from thinkalike.cli.autoencoder import Autoencoder, BestLatents, OfLayer, TheseLatents, latent_options
from thinkalike.cli.options import (
    BatchSize,
    Bos,
    Chat,
    Device,
    Distance,
    DropFirst,
    Dtype,
    Generate,
    Importance,
    Ordered,
    Pooling,
    Preset,
    Site,
    Steps,
    SystemTurn,
    Window,
    asked,
    batch_size_of,
)
from thinkalike.cli.shown import Columns, Drop, Features, Kinds, Sentences, StimuliFile, read_stimuli
from thinkalike.types import Json

if TYPE_CHECKING:
    from thinkalike.stimuli import Stimuli

Result = TypeVar("Result")


@dataclass(frozen=True)
class Group:
    """The base of them all: fields are options, with their defaults."""

    def asked(self) -> Json:
        """Those that were given, as the functions behind the commands take them."""
        return asked(**vars(self))


@dataclass(frozen=True)
class Shown(Group):
    """The stimuli: a file, or sentences of the probing grammar, and which of their features."""

    stimuli: StimuliFile = None
    sentences: Sentences = None
    features: Features = None
    drop: Drop = None
    kind: Kinds = None

    def read(self, seed: int | None) -> Stimuli:
        """The stimuli themselves; the seed is that of the grammar's sentences."""
        options = vars(self).copy()
        return read_stimuli(options.pop("stimuli"), seed=seed, **options)


@dataclass(frozen=True)
class ShownByColumns(Shown):
    """The same, of a file whose columns may have any name."""

    column: Columns = None


@dataclass(frozen=True)
class Vectors(Group):
    """Which vectors of a model stand for a word."""

    pooling: Pooling = None
    site: Site = None
    bos: Bos = None


@dataclass(frozen=True)
class Texts(Group):
    """How a text is laid before a model."""

    drop_first: DropFirst = None
    chat: Chat = False
    system_turn: SystemTurn = None
    window: Window = None
    generate: Generate = None

    def asked(self) -> Json:
        return asked(**{**vars(self), "chat": self.chat or None})


@dataclass(frozen=True)
class Machine(Group):
    """On what a model runs, and how much of it at once."""

    dtype: Dtype = None
    device: Device = None
    batch_size: BatchSize = None

    def asked(self) -> Json:
        return asked(**{**vars(self), "batch_size": batch_size_of(self.batch_size)})


@dataclass(frozen=True)
class Latents(Group):
    """Latents of a sparse autoencoder in place of layers."""

    autoencoder: Autoencoder = None
    layer: OfLayer = None
    latents: TheseLatents = None
    best: BestLatents = None

    def asked(self) -> Json:
        return latent_options(**vars(self))


@dataclass(frozen=True)
class Encoding(Group):
    """How features explain distances."""

    preset: Preset = None
    distance: Distance = None
    step: Steps = None
    ordered: Ordered = None
    importance: Importance = None

    def asked(self) -> Json:
        options = vars(self).copy()
        return asked(steps=options.pop("step"), **options)


def grouped(command: Callable[..., Result]) -> Callable[..., Result]:
    """A command whose parameters may be groups, as a function of all their options."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[Parameter] = []
    groups: dict[str, type[Group]] = {}
    for name, parameter in signature(command).parameters.items():
        hint: Any = hints[name]
        if not (isinstance(hint, type) and issubclass(hint, Group)):
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hint))
            continue
        groups[name] = hint
        own = get_type_hints(hint, include_extras=True)
        parameters += [
            Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=own[one.name])
            for one in fields(hint)
        ]

    @functools.wraps(command)
    def run(**given: Any) -> Result:
        made = {
            name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()
        }
        return command(**given, **made)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run
