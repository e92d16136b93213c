"""What a recipe runs with: a frozen dataclass of plain values, one instance per scale."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Self, Union, get_args, get_origin, get_type_hints

from thinkalike.errors import InvalidInput, UnknownName


class File(str):
    """The path of a file or folder, which must be there when the setting is given."""


@dataclass(frozen=True, kw_only=True)
class RecipeSettings:
    """What every recipe has; a recipe's own settings are a subclass.

    Attributes
    ----------
    scale
        The scale that these settings belong to.
    models_folder
        Where models lie under the names that the recipe gives them, in place of the hub.
    seed
        Of everything that is drawn.
    """

    scale: str = "nano"
    models_folder: str | None = None
    seed: int = 0

    def changed(self, recipe: str, changes: Mapping[str, object]) -> Self:
        """These settings with some of them replaced; a name or value that cannot be is refused."""
        types = get_type_hints(type(self))
        known = [field.name for field in fields(self) if field.name not in ("scale", "models_folder")]
        for name in changes:
            if name not in known:
                raise UnknownName.among(f"setting of {recipe}", name, known)
        return replace(self, **{name: fitted(name, value, types[name]) for name, value in changes.items()})

    def plain(self) -> dict[str, object]:
        """Name → value, as they are kept and shown."""
        return asdict(self)

    def only(self, *names: str) -> dict[str, Any]:
        """Some of them by name, for calls and keys that take just these."""
        return {name: getattr(self, name) for name in names}


def fitted(name: str, value: Any, wanted: object) -> Any:
    """`value` as the type that a setting wants: `a,b` as a tuple, a whole number as a float; else refused."""
    origin, inside = get_origin(wanted), get_args(wanted)
    if origin is Union or type(wanted).__name__ == "UnionType":
        if value is None and type(None) in inside:
            return None
        return fitted(name, value, next(kind for kind in inside if kind is not type(None)))
    if origin is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        if isinstance(parts, (list, tuple)):
            kinds = inside[:1] * len(parts) if inside[-1] is Ellipsis else inside
            if len(parts) == len(kinds):
                return tuple(fitted(name, part, kind) for part, kind in zip(parts, kinds, strict=True))
    elif origin is not None and isinstance(value, Mapping):
        return {str(key): fitted(name, part, inside[1]) for key, part in value.items()}
    elif wanted is float:
        if type(value) in (int, float) and math.isfinite(value):
            return float(value)
    elif wanted is File and isinstance(value, str):
        if not Path(value).exists():
            raise InvalidInput(f"The setting {name} names a file, and there is none at {value}: check it.")
        return File(value)
    elif wanted is int:
        if type(value) is int and value >= 0:
            return value
    elif wanted is str:
        if type(value) in (str, int, float):
            return str(value)
    elif type(value) is wanted:
        return value
    raise InvalidInput(f"The setting {name} is {_in_words(wanted)}; {value!r} was given.")


def _in_words(wanted: object) -> str:
    words = {
        int: "a whole number from 0",
        File: "the path of a file",
        float: "a number",
        bool: "true or false",
        str: "text",
    }
    if wanted in words:
        return words[wanted]
    return "a list, such as a,b" if get_origin(wanted) is tuple else "a table of names and values"
