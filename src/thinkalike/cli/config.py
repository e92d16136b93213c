"""A command's options in a TOML file: `--config FILE` reads them, and every run writes its own.

    command = "compare"
    models = ["nano-bert", "nano-gpt2"]
    sentences = 400

The names are those of the options, `-` as `_`. The command line comes before the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.types import Facts, Json, Value

OPTION = "--config"
FILE = "command.toml"
"""What a run writes beside its results"""
PLACES = ("out", "run", "report", "figure")
"""Options that say where to, not what"""


def in_front(arguments: Sequence[str]) -> list[str]:
    """The arguments with `--config FILE` before the command, wherever it stands."""
    found: list[str] = []
    rest = list(arguments)
    while OPTION in rest:
        place = rest.index(OPTION)
        found += rest[place : place + 2]
        del rest[place : place + 2]
    return [*found, *rest]


def use_config(context: typer.Context, file: Path | None) -> None:
    """What the file says becomes the default of the options of its command."""
    if file is None:
        return
    said = _read(file)
    command, asked = said.pop("command", None), context.invoked_subcommand
    if asked is None:
        raise InvalidInput(f"{OPTION} needs a command: thinkalike {command or 'compare'} {OPTION} {file}.")
    if command is not None and command != asked:
        raise InvalidInput(f"{file} is of `thinkalike {command}`, and `thinkalike {asked}` was called.")
    known = _parameters(context, asked)
    for name in said:
        if name not in known:
            raise UnknownName.among(f"option of `thinkalike {asked}` (in {file})", name, known)
    context.default_map = {asked: said}


def write_config(command: str, options: Facts, folder: Path) -> None:
    """The options that were given, into the folder of a run, but for where to."""
    import tomli_w

    from thinkalike.files import plain, write_text

    given = {
        name: value
        for name, value in options.items()
        if value is not None and name != "context" and not (name in PLACES and isinstance(value, (str, Path)))
    }
    text = tomli_w.dumps({"command": command, **plain(given)})
    file = folder / FILE
    if not (file.is_file() and file.read_bytes() == text.encode()):
        write_text(text, file)


def _read(file: Path) -> Json:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {file}: {OPTION} names a TOML file of options.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(
            f"{file} is no TOML file of options ({error}). A line is NAME = VALUE, such as sentences = 400."
        ) from None


def _parameters(context: typer.Context, command: str) -> list[str]:
    commands: Mapping[str, Value] = getattr(context.command, "commands", {})
    return [str(parameter.name) for parameter in commands[command].params] if command in commands else []
