"""What a model is called, and where its files are.

A name is MODEL[@REVISION][:encoder|:decoder][:untrained]: `gpt2`, `runs/mine@checkpoint-500`,
`t5-small:decoder`, `EleutherAI/pythia-70m@step1000`, `gpt2:untrained`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from thinkalike.errors import InvalidInput, ModelError, UnknownName
from thinkalike.systems import bundled
from thinkalike.systems.architectures import PARTS, Part

Given = TypeVar("Given")

ARRAY_FILES = (".npy", ".npz", ".mat", ".zarr")
STORE = "zarr.json"
"""What every folder that `extract` wrote holds, whatever its name"""


def is_array_file(path: object) -> bool:
    """Whether this is the path of arrays (a file, or what `extract` wrote) rather than of a model."""
    if not isinstance(path, (str, os.PathLike)):
        return False
    place = Path(path)
    if place.suffix in ARRAY_FILES:
        return place.exists()
    return (place / STORE).is_file()


def name_of(model: str) -> str:
    """What a model or a file of arrays is called: the last part of its path, else what was given."""
    if is_array_file(model):
        path = Path(model)
        return path.stem if path.suffix in ARRAY_FILES else path.name
    if is_gguf(model):
        return Path(model).stem
    return Path(model).name if Path(model.partition("@")[0]).is_dir() else model


def is_gguf(model: str | Path) -> bool:
    """Whether this is the path of a file of quantised weights."""
    return Path(model).suffix == ".gguf" and Path(model).is_file()


@dataclass(frozen=True)
class ModelName:
    """Which model, taken apart.

    Attributes
    ----------
    model
        A hub id, or the path of a folder.
    folder
        Where the files are; None if the hub has them.
    commit
        What the revision stands for on the hub, once that is known.
    """

    model: str
    revision: str | None = None
    part: Part | None = None
    untrained: bool = False
    folder: Path | None = None
    commit: str | None = None

    def __str__(self) -> str:
        """The name to show: of a folder, only the last part of its path."""
        name = Path(self.model).resolve().name if Path(self.model).expanduser().is_dir() else self.model
        name = name if self.revision is None else f"{name}@{self.revision}"
        name = name if self.part is None else f"{name}:{self.part}"
        return f"{name}:untrained" if self.untrained else name

    @property
    def files(self) -> dict[str, str]:
        """Where transformers finds the files."""
        if self.folder is not None:
            return {"pretrained_model_name_or_path": str(self.folder)}
        revision = self.commit or self.revision or "main"
        return {"pretrained_model_name_or_path": self.model, "revision": revision}


def parse_name(
    name: str | Path, *, revision: str | None = None, part: Part | None = None, untrained: bool = False
) -> ModelName:
    """Take a name apart and find its folder. What is given beside the name must not contradict it."""
    model = str(name)
    if not Path(model).is_dir():
        model, given_part, given_untrained = _suffixes(model)
        part = _agreed("part", part, given_part)
        untrained = untrained or given_untrained
    if not Path(model).is_dir() and "@" in model:
        model, _, given_revision = model.partition("@")
        if "@" in given_revision:
            raise InvalidInput(f"The name {str(name)!r} has two revisions: give one, MODEL@REVISION.")
        revision = _agreed("revision", revision, given_revision)
    return ModelName(model, revision, part, untrained, _folder(model, revision))


def _suffixes(name: str) -> tuple[str, Part | None, bool]:
    """The name without what stands behind its colons, the part, and whether it is untrained."""
    model, marks = name, list[str]()
    while ":" in model and model.rpartition(":")[2] in ("untrained", *PARTS):
        model, _, mark = model.rpartition(":")
        marks.append(mark)
    parts: list[Part] = [part for part in PARTS for mark in marks if mark == part]
    if len(parts) > 1 or marks.count("untrained") > 1:
        raise InvalidInput(f"The name {name!r} says twice what it is: leave one of its ends out.")
    return model, parts[0] if parts else None, "untrained" in marks


def _agreed(what: str, given: Given | None, in_name: Given | None) -> Given | None:
    if given is not None and in_name is not None and given != in_name:
        raise InvalidInput(
            f"The name says {what} {in_name!r}, but {what}={given!r} was given: leave one out."
        )
    return given if in_name is None else in_name


def _folder(model: str, revision: str | None) -> Path | None:
    """Where the files of a local or a bundled model are; None for a name that only the hub can know."""
    path = Path(model).expanduser()
    if path.is_dir():
        path = path if revision is None else path / revision
        if not path.is_dir():
            raise ModelError(
                f"{model} is a folder and has no subfolder {revision!r}: the revisions of a folder are the "
                "checkpoints in it."
            )
        return path
    folder = bundled.resolve(model, revision)
    if folder is None and model.startswith("nano-"):
        raise UnknownName.among("bundled model", model, bundled.names())
    if folder is None and (model.startswith((".", "/", "~")) or model.count("/") > 1):
        raise ModelError(f"There is no folder {model!r}: give one that holds config.json and the weights.")
    return folder
