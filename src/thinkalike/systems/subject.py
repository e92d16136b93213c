"""The model under study: found by a name or handed over, known by its weights, loaded when it is needed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thinkalike.errors import InvalidInput
from thinkalike.provenance import digest_of
from thinkalike.systems.architectures import ARCHITECTURES, Part, Stack, layers_of
from thinkalike.systems.fingerprints import fingerprint_folder, fingerprint_weights
from thinkalike.systems.loading import load_config, load_model, load_processor
from thinkalike.systems.names import ModelName, parse_name

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Subject:
    """A model, before it is loaded.

    Attributes
    ----------
    system
        Its name.
    about
        What its activations will say of it.
    identity
        () → a digest of configuration and weights.
    load
        () → its blocks.
    processor
        "text", "image" or "audio" → its tokenizer, image processor or feature extractor.
    """

    system: str
    about: dict[str, Any]
    identity: Callable[[], str]
    load: Callable[[], Stack]
    processor: Callable[[str], Any]


def by_name(
    name: str | Path,
    *,
    revision: str | None,
    part: Part | None,
    untrained: bool,
    seed: int,
    blocks: str | None,
    dtype: str,
    device: str,
    device_map: Any,
    gguf_file: str | None,
    trust_remote_code: bool,
) -> Subject:
    """A model from a folder, from the bundled ones, or from the hub."""
    found = parse_name(name, revision=revision, part=part, untrained=untrained)
    files: dict[str, Any] = {"gguf_file": gguf_file, "trust_remote_code": trust_remote_code}
    config = load_config(found, **files)
    found = replace(
        found, part=found.part or _default_part(config), commit=getattr(config, "_commit_hash", None)
    )

    where: dict[str, Any] = {"dtype": dtype, "device": device, "device_map": device_map}
    return Subject(
        system=str(found),
        about={
            "model": found.model,
            "revision": found.revision,
            "commit": found.commit,
            "model_type": config.model_type,
            "part": found.part,
            "untrained": found.untrained,
            "seed": seed if found.untrained else None,
            "gguf_file": gguf_file,
        },
        identity=lambda: _identity(found, gguf_file),
        load=lambda: load_model(found, config, seed=seed, blocks=blocks, **where, **files),
        processor=lambda kind: load_processor(found, kind, **files),
    )


def in_memory(
    model: nn.Module, *, part: Part | None, untrained: bool, seed: int, blocks: str | None
) -> Subject:
    """A model that the caller has loaded; it stays where and as it is."""
    if untrained:
        model = random_copy(model, seed=seed)
    stack = layers_of(model, part=part, blocks=blocks)
    config = getattr(stack.model, "config", None)
    origin = str(getattr(config, "_name_or_path", "") or "")
    name = origin or type(model).__name__
    name = name if stack.part is None else f"{name}:{stack.part}"

    def processor(kind: str) -> Any:
        if not origin:
            raise InvalidInput(
                f"{name} is already loaded and does not say where from: give its tokenizer, image processor "
                "or feature extractor as processor=…"
            )
        return load_processor(ModelName(origin, folder=_folder(origin)), kind)

    return Subject(
        system=f"{name}:untrained" if untrained else name,
        about={
            "model": name,
            "model_type": stack.model_type,
            "part": stack.part,
            "untrained": untrained,
            "seed": seed if untrained else None,
        },
        identity=lambda: fingerprint_weights(stack.model),
        load=lambda: stack,
        processor=processor,
    )


def random_copy(model: nn.Module, *, seed: int) -> nn.Module:
    """The same architecture with random weights, where the model is."""
    import torch

    config = getattr(model, "config", None)
    if config is None:
        raise InvalidInput(f"{type(model).__name__} has no config to build an untrained copy from.")
    parameter = next(model.parameters())
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        fresh: nn.Module = type(model)(copy.deepcopy(config))
    return fresh.to(parameter.device, parameter.dtype).eval()


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """No gradients, no dropout; afterwards every module trains or not as before."""
    import torch

    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for module in training:
            module.training = True


def context_length(stack: Stack) -> int | None:
    """How many tokens the model can read; None if any number."""
    rule = stack.architecture.max_length
    config = stack.config.get_text_config() if hasattr(stack.config, "get_text_config") else stack.config
    length = getattr(config, "max_position_embeddings", None)
    if rule == "any" or not isinstance(length, int) or length < 1:
        return None
    return length - (config.pad_token_id + 1) if rule == "offset positions" else length


def start_token(stack: Stack) -> int | None:
    """What a decoder beside an encoder reads first; None for any other stack."""
    if stack.part != "decoder":
        return None
    config = stack.config
    first = (
        getattr(config, name, None) for name in ("decoder_start_token_id", "bos_token_id", "pad_token_id")
    )
    return next((int(token) for token in first if token is not None), 0)


def _default_part(config: Any) -> Part | None:
    row = ARCHITECTURES.get(config.model_type)
    two_stacks = row.two_stacks if row else getattr(config, "is_encoder_decoder", False)
    return "encoder" if two_stacks else None


def _folder(origin: str) -> Path | None:
    return Path(origin) if Path(origin).is_dir() else None


def _identity(name: ModelName, gguf_file: str | None) -> str:
    if name.folder is not None:
        return fingerprint_folder(name.folder, gguf_file)
    return digest_of({"hub": name.model, "commit": name.commit or name.revision})
