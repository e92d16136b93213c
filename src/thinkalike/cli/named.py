"""MODEL, NAME=MODEL: the systems that a command is given, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from thinkalike.errors import InvalidInput

MODELS = "hub ids, folders, .gguf files or bundled models; each may end in @REVISION, :encoder, :decoder or "
MODELS += ":untrained. NAME=MODEL gives a name of its own."
SYSTEMS = "hub ids, folders, .gguf files, bundled models, what `extract` wrote, .npz, .npy or .zarr files of "
SYSTEMS += "arrays. NAME=MODEL gives a name of its own."


def parse_systems(texts: Sequence[str]) -> dict[str, str]:
    """Names → models or arrays, from MODEL or NAME=MODEL."""
    from thinkalike.systems.names import name_of

    named: dict[str, str] = {}
    for text in texts:
        name, given, model = text.partition("=")
        if given and Path(text).exists():  # a path with a sign in it
            given = ""
        name, model = (name.strip(), model.strip()) if given else (name_of(text), text)
        if not (name and model):
            raise InvalidInput(f"{text!r} names no model: write MODEL or NAME=MODEL.")
        if name in named:
            raise InvalidInput(f"{name} comes twice: give one of them another name with NAME=MODEL.")
        named[name] = model
    return named


def parse_models(texts: Sequence[str]) -> dict[str, str]:
    """The same for a command that reads with models, and cannot work with arrays."""
    from thinkalike.systems.names import is_array_file

    named = parse_systems(texts)
    for model in named.values():
        if is_array_file(model):
            raise InvalidInput(
                f"{model} holds arrays, and this command needs a model: give one, or use the arrays with "
                "`thinkalike compare` or `thinkalike profile`."
            )
    return named


def default_folder(named: Mapping[str, str], before: str = "") -> Path:
    """runs/NAMES."""
    from thinkalike.files import file_name

    return Path("runs") / file_name("_".join([*([before] if before else []), *_plain(named)]))


def _plain(named: Mapping[str, str]) -> list[str]:
    return [name.replace("/", "-") for name in named]
