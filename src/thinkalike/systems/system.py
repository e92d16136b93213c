"""A model under study: found by a name or handed over, known by its weights, loaded when it is needed."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.machine import check_half_precision
from thinkalike.stimuli.text import same_tokenizer
from thinkalike.systems.architectures import Part
from thinkalike.systems.fingerprints import fingerprint_files, fingerprint_weights
from thinkalike.systems.heads import HEADS, Task, task_of
from thinkalike.systems.loading import loading
from thinkalike.systems.names import ModelName, is_gguf, parse_name
from thinkalike.systems.pretrained import load_config, load_headed, load_model, load_processor, pick_device
from thinkalike.systems.quantised import check_in_memory, quantisation_of
from thinkalike.systems.stack import Stack, layers_of, parts_of
from thinkalike.types import Config, Processor, Tokenizer

if TYPE_CHECKING:
    from torch import nn

MOST_TOKENS = 1024  # in a passage, unless more are asked for: as in Brown et al. 2023


@dataclass(frozen=True)
class LoadOptions:
    """Which model is meant by a name, and how it is loaded.

    Attributes
    ----------
    revision
        Branch, tag or commit on the hub; for a folder, a subfolder with a checkpoint.
    part
        "encoder" or "decoder" of a model that has both.
    untrained, seed
        Take the same architecture with random weights drawn from `seed`.
    blocks
        The dotted path of the list of blocks, for an architecture that the table does not have.
    dtype
        "float32", "bfloat16", "float16", or "auto" for what the weights are stored in.
    device, device_map
        Where to run, a GPU where there is one if not given; or "auto" to spread a big model.
    gguf_file
        The file of a folder with quantised weights.
    trust_remote_code
        Let the hub's own code of this model run.
    """

    revision: str | None = None
    part: Part | None = None
    untrained: bool = False
    seed: int = 0
    blocks: str | None = None
    dtype: str = "float32"
    device: str | None = None
    device_map: object = None
    gguf_file: str | None = None
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        if self.device is not None and self.device_map is not None:
            raise InvalidInput("device and device_map both say where the model runs: give one of them.")


@dataclass(frozen=True, eq=False)
class System:
    """A model, its blocks and its tokenizer; weights are loaded when they are first asked for.

    Attributes
    ----------
    name
        What results call it.
    config
        Of transformers.
    about
        Where it came from: what its results will say of it.
    dtype, device
        Of the weights.
    folder
        Where its files are, if they are here.
    task
        What its output layer predicts; None if it was opened without one.
    tokenizer_given
        In the place of the model's own.
    """

    name: str
    config: Config = field(repr=False)
    about: Mapping[str, object] = field(repr=False)
    dtype: str
    device: str
    _load: Callable[[], tuple[nn.Module, Stack]] = field(repr=False)
    _identity: Callable[[], str] = field(repr=False)
    _processor: Callable[[str], Processor] = field(repr=False)
    folder: Path | None = None
    task: Task | None = None
    tokenizer_given: Processor = field(default=None, repr=False)

    @property
    def model(self) -> nn.Module:
        """What is called: with the output layer, if the system was opened with one."""
        return self._load()[0]

    @property
    def stack(self) -> Stack:
        """Its blocks."""
        return self._load()[1]

    @property
    def identity(self) -> str:
        """A digest of configuration and weights."""
        return self._identity()

    @property
    def tokenizer(self) -> Tokenizer:
        return cast("Tokenizer", self.processor("text"))

    def processor(self, kind: str) -> Processor:
        """The tokenizer ("text"), image processor ("image") or feature extractor ("audio")."""
        return self._processor(kind) if self.tokenizer_given is None else self.tokenizer_given

    @property
    def max_length(self) -> int | None:
        """How many tokens of text it can read; None for any number."""
        from thinkalike.systems.calling import context_length

        return context_length(self.stack)


def open_system(
    model: str | Path | nn.Module,
    options: LoadOptions | None = None,
    *,
    name: str | None = None,
    head: Task | Literal["own"] | None = None,
    tokenizer: Processor | None = None,
) -> System:
    """Find a model by name, or take one that is loaded.

    Parameters
    ----------
    name
        What results call it, if not what it is called.
    head
        Of a model by name: load the output layer for this task too, or for that which the model was saved
        for ("own"). A model that is loaded has the one it has.
    tokenizer
        Or other processor, if not the model's own.
    """
    if head not in (None, "own", *HEADS):
        raise UnknownName.among("task", head, HEADS)
    options = options or LoadOptions()
    if isinstance(model, (str, Path)):
        system = _by_name(model, options, head)
    else:
        system = _in_memory(model, options, head)
    if system.device == "cpu":
        check_half_precision(system.dtype)
    return replace(system, name=name or system.name, tokenizer_given=tokenizer)


def _by_name(model: str | Path, options: LoadOptions, head: Task | Literal["own"] | None) -> System:
    """A model from a folder, from the bundled ones, from the hub, or from a .gguf file."""
    if is_gguf(model):
        path = Path(model)
        quantised = _by_name(path.parent, replace(options, gguf_file=path.name), head)
        return replace(quantised, name=path.stem)
    found = parse_name(model, revision=options.revision, part=options.part, untrained=options.untrained)
    gguf, trust = options.gguf_file, options.trust_remote_code
    config = load_config(found, gguf_file=gguf, trust_remote_code=trust)
    # The commit, where the hub gave one, so that the weights belong to the configuration.
    asked = found.part is not None
    found = replace(
        found,
        part=found.part or next(iter(parts_of(config)), None),
        commit=getattr(config, "_commit_hash", None),
    )
    task = task_of((getattr(config, "architectures", None) or [""])[0], config) if head == "own" else head
    device, seed = pick_device(options.device), options.seed

    @functools.cache
    def load() -> tuple[nn.Module, Stack]:
        if task is not None:
            headed = load_headed(
                found,
                config,
                HEADS[task],
                dtype=options.dtype,
                device=device,
                gguf_file=gguf,
                trust_remote_code=trust,
                seed=seed,
            )
            return headed, layers_of(headed, part=found.part, blocks=options.blocks)
        stack = load_model(
            found,
            config,
            dtype=options.dtype,
            device=device,
            device_map=options.device_map,
            gguf_file=gguf,
            trust_remote_code=trust,
            seed=seed,
            blocks=options.blocks,
        )
        return stack.model, stack

    return System(
        name=str(found),
        config=config,
        about={
            "model": found.model,
            "revision": found.revision,
            "commit": found.commit,
            "model_type": config.model_type,
            "part": found.part,
            "part_asked": asked,
            "untrained": found.untrained,
            "seed": seed if found.untrained else None,
            "gguf_file": options.gguf_file,
            "quantised": quantisation_of(config),
        },
        dtype=options.dtype,
        device=device,
        _load=load,
        _identity=lambda: fingerprint_files(found, options.gguf_file),
        _processor=functools.cache(
            lambda kind: load_processor(found, kind, gguf_file=gguf, trust_remote_code=trust)
        ),
        folder=found.folder,
        task=task,
    )


def _in_memory(model: nn.Module, options: LoadOptions, head: Task | Literal["own"] | None) -> System:
    """A model that the caller has loaded; it stays where and as it is."""
    check_in_memory(model)
    if options.untrained:
        model = random_copy(model, seed=options.seed)
    stack = layers_of(model, part=options.part, blocks=options.blocks)
    config = getattr(stack.model, "config", None)
    origin = str(getattr(config, "_name_or_path", "") or "")
    name = origin or type(model).__name__
    name = name if stack.part is None else f"{name}:{stack.part}"
    folder = Path(origin) if origin and Path(origin).is_dir() else None
    first = next(model.parameters())

    def processor(kind: str) -> Processor:
        if not origin:
            raise InvalidInput(
                f"{name} is already loaded and does not say where from: give its tokenizer, image processor "
                "or feature extractor as processor=…"
            )
        return load_processor(ModelName(origin, folder=folder), kind)

    return System(
        name=f"{name}:untrained" if options.untrained else name,
        config=cast("Config", config),
        about={
            "model": name,
            "model_type": stack.model_type,
            "part": stack.part,
            "untrained": options.untrained,
            "seed": options.seed if options.untrained else None,
            "quantised": quantisation_of(config),
        },
        dtype=str(first.dtype).removeprefix("torch."),
        device=first.device.type,
        _load=lambda: (model, stack),
        _identity=lambda: fingerprint_weights(stack.model),
        _processor=processor,
        folder=folder,
        task=task_of(type(model).__name__, config) if head == "own" else head,
    )


def open_systems(
    models: Sequence[str | Path | nn.Module] | Mapping[str, str | Path | nn.Module],
    options: LoadOptions,
    *,
    tokenizer: Tokenizer | None = None,
) -> list[System]:
    """All models of a list or mapping; no two may have one name.

    `tokenizer`, if not the models' own, is one for all, or name → tokenizer.
    """
    if isinstance(models, (str, Path)):
        raise InvalidInput(f"models is {str(models)!r}: give a list of models, such as [{str(models)!r}].")
    if not len(models):
        raise InvalidInput("There are no models to compare: give at least one.")
    if isinstance(models, Mapping):
        systems = [open_system(model, options, name=name) for name, model in models.items()]
    else:
        systems = [open_system(model, options) for model in models]
    names = [system.name for system in systems]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"{name} comes twice: give the models names, {{'first': …, 'second': …}}.")
    if isinstance(tokenizer, Mapping):
        return [replace(system, tokenizer_given=tokenizer.get(system.name)) for system in systems]
    return [replace(system, tokenizer_given=tokenizer) for system in systems]


def untrained_copy(system: System, *, seed: int) -> System:
    """The same architecture with random weights."""
    model = random_copy(system.model, seed=seed)
    stack = layers_of(model, part=system.stack.part)
    return replace(system, name=f"{system.name}:untrained", _load=lambda: (model, stack))


def random_copy(model: nn.Module, *, seed: int) -> nn.Module:
    """The same architecture with random weights, where the model is."""
    import torch

    config = getattr(model, "config", None)
    if config is None:
        raise InvalidInput(f"{type(model).__name__} has no config to build an untrained copy from.")
    parameter = next(model.parameters())
    with loading(), torch.random.fork_rng():
        torch.manual_seed(seed)
        fresh: nn.Module = type(model)(copy.deepcopy(config))
    return fresh.to(parameter.device, parameter.dtype).eval()


def check_same_tokens(systems: Sequence[System], instead: str) -> None:
    """Refuse models whose tokenizers differ: their tokens are not the same items. `instead`: the way out."""
    first = systems[0]
    for other in systems[1:]:
        if not same_tokenizer(first.tokenizer, other.tokenizer):
            sizes = f"{len(first.tokenizer)} against {len(other.tokenizer)} tokens"
            raise InvalidInput(f"{first.name} and {other.name} split text differently ({sizes}): {instead}")


def passage_length(systems: Sequence[System], length: int | None) -> int:
    """As asked for, if every model can read that much; else what the shortest reader reads, 1,024 at most."""
    for system in systems:
        if length is not None and system.max_length is not None and length > system.max_length:
            raise InvalidInput(
                f"length={length}, but {system.name} reads at most {system.max_length} tokens: choose fewer."
            )
    return length or min(MOST_TOKENS, *(system.max_length or MOST_TOKENS for system in systems))
