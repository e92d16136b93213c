"""Models opened for a stream: loaded, with what reading text needs to know of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.streaming.reading import ReadingModel

if TYPE_CHECKING:
    from thinkalike.systems.architectures import Stack
    from thinkalike.systems.hooks import Layer


@dataclass(frozen=True, eq=False)
class System:
    """A loaded model, what reading text needs to know of it, and where it came from."""

    about: ReadingModel
    stack: Stack
    origin: Mapping[str, Any]
    identity: Callable[[], str]


def named_models(models: Any) -> list[tuple[str | None, Any]]:
    if isinstance(models, (str, Path)):
        raise InvalidInput(f"models is {str(models)!r}: give a list of models, such as [{str(models)!r}].")
    if not len(models):
        raise InvalidInput("There are no models to compare: give at least one.")
    return list(models.items()) if isinstance(models, Mapping) else [(None, model) for model in models]


def open_systems(models: Any, *, device: str | None, dtype: str, tokenizer: Any) -> list[System]:
    """Load every model of a list or mapping; no two may have one name."""
    systems = [opened(name, model, device, dtype, tokenizer) for name, model in named_models(models)]
    _refuse_twice([system.about.name for system in systems])
    return systems


def opened(name: str | None, model: Any, device: str | None, dtype: str, tokenizer: Any) -> System:
    from thinkalike.systems.loading import pick_device
    from thinkalike.systems.subject import by_name, context_length, in_memory

    if isinstance(model, (str, Path)):
        subject = by_name(
            model,
            revision=None,
            part=None,
            untrained=False,
            seed=0,
            blocks=None,
            dtype=dtype,
            device=pick_device(device),
            device_map=None,
            gguf_file=None,
            trust_remote_code=False,
        )
    else:
        subject = in_memory(model, part=None, untrained=False, seed=0, blocks=None)
    stack = subject.load()
    most = context_length(stack)
    if stack.part == "decoder" and most is not None:
        most -= 1  # the start token
    name = name or subject.system
    own = tokenizer.get(name) if isinstance(tokenizer, Mapping) else tokenizer
    about = ReadingModel(name, own or subject.processor("text"), most)
    return System(about, stack, subject.about, subject.identity)


def chosen_layers(system: System, site: str, layers: Sequence[Layer] | None) -> list[Layer]:

    from thinkalike.activations.run import layer_labels

    every = layer_labels(system.stack, site, False)
    if layers is None:
        return every
    for layer in layers:
        if layer not in every:
            raise UnknownName.among(f"layer in {system.about.name}", layer, every)
    return list(layers)


def _refuse_twice(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"{name} comes twice: give the models names, {{'first': …, 'second': …}}.")
