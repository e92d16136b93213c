"""Digests of what a model is and of what it is shown: equal digests, equal numbers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import google_crc32c
import numpy as np

from thinkalike.provenance import digest_of
from thinkalike.systems.names import ModelName, is_gguf, parse_name
from thinkalike.types import Processor

if TYPE_CHECKING:
    import torch
    from torch import nn

    from thinkalike.stimuli.table import Stimuli

SMALL_FILE = 16_000_000


def fingerprint_folder(folder: Path, gguf_file: str | None = None) -> str:
    """A digest of a model's folder: the content of small files; name, size and time of the weights."""
    content = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if not path.is_file() or (path.suffix == ".gguf" and path.name != gguf_file):
            continue
        state = path.stat()
        content.update(f"{path.name}\0{state.st_size}\0".encode())
        if state.st_size <= SMALL_FILE and path.suffix not in (".safetensors", ".bin", ".gguf"):
            content.update(path.read_bytes())
        else:
            content.update(str(state.st_mtime_ns).encode())
    return content.hexdigest()


def fingerprint_files(name: ModelName, gguf_file: str | None = None) -> str:
    """A digest of a model by its name: of its folder, or of its commit on the hub."""
    if name.folder is not None:
        return fingerprint_folder(name.folder, gguf_file)
    return digest_of({"hub": name.model, "commit": name.commit or name.revision})


def fingerprint_named(model: str, *, revision: str | None = None, gguf_file: str | None = None) -> str | None:
    """The same, told without opening the model; None if only the network could tell."""
    if is_gguf(model):
        return fingerprint_folder(Path(model).parent, Path(model).name)
    name = parse_name(model, revision=revision)
    if name.folder is None:
        from huggingface_hub import try_to_load_from_cache

        kept = try_to_load_from_cache(name.model, "config.json", revision=name.revision)
        if not isinstance(kept, str):
            return None
        name = replace(name, commit=Path(kept).parent.name)
    return fingerprint_files(name, gguf_file)


def fingerprint_weights(model: nn.Module) -> str:
    """A digest of every parameter and buffer of a model in memory, and of its configuration.

    By checksums of the tensors: SHA-256 over gigabytes takes seconds.
    """
    import torch

    content = hashlib.sha256(str(getattr(model, "config", type(model).__name__)).encode())
    for name, tensor in sorted(
        (plain for one in model.state_dict().items() for plain in _plain(*one)), key=itemgetter(0)
    ):
        values = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        checksum = google_crc32c.value(values)
        content.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} {checksum}\n".encode())
    return content.hexdigest()


def _plain(name: str, tensor: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """A tensor, or the tensors that a packed one is made of."""
    if not hasattr(tensor, "__tensor_flatten__"):
        yield name, tensor
        return
    for part in tensor.__tensor_flatten__()[0]:
        yield from _plain(f"{name}.{part}", getattr(tensor, part))


def fingerprint_processor(processor: Processor) -> str:
    """A digest of a tokenizer, or of the settings of any other processor."""
    backend = getattr(processor, "backend_tokenizer", None)
    if backend is not None:
        return hashlib.sha256(backend.to_str().encode()).hexdigest()
    settings = processor.to_dict() if hasattr(processor, "to_dict") else repr(processor)
    return digest_of({"class": type(processor).__name__, "settings": settings})


def fingerprint_texts(stimuli: Stimuli) -> str:
    """A digest of what is shown and asked: texts, items and their spans, but no features."""
    items = stimuli.items
    columns = [items[name].tolist() for name in ("sentence", "start", "end") if name in items]
    return digest_of({"items": list(items.index), "spans": columns, "texts": stimuli.sentences.to_dict()})


def fingerprint_inputs(inputs: Iterable[object]) -> str:
    """A digest of images or sounds: arrays and pictures by content, paths by the bytes of the file."""
    content = hashlib.sha256()
    for one in inputs:
        if isinstance(one, (str, os.PathLike)):
            content.update(Path(one).read_bytes())
        else:
            array = np.asarray(one)
            content.update(f"{array.dtype}{array.shape}".encode())
            content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()
