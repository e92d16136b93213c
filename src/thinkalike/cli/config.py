"""A command's options in a TOML file: `--config FILE` reads them, and every run writes its own.

    command = "compare"
    models = ["nano-bert", "nano-gpt2"]
    sentences = 400

The names are those of the options, `-` as `_`. The command line comes before the file. A run also says from
where it was called, and where to: `thinkalike resume` needs that, `--config` does not read it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from thinkalike.addresses import is_address
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.ownership import OPTIONS
from thinkalike.types import Json, Value

if TYPE_CHECKING:
    import click

OPTION = "--config"
PLACES = ("out", "run", "report", "figure")
"""Options that say where to, not what"""
WORKERS = ("workers", "scheduler")
"""Options that say where the work is done"""
CALLED = "called"
"""The table of the file that says from where, seen from its folder, and where to"""


def in_front(arguments: Sequence[str]) -> list[str]:
    """The arguments with `--config FILE` before the command, wherever it stands."""
    files: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        name, given, file = word.partition("=")
        if name != OPTION:
            rest.append(word)
            continue
        files.append(file if given else next(words, ""))
    if not files:
        return rest
    if len(files) > 1 or not files[0]:
        came = f"{len(files)} came" if len(files) > 1 else "none came"
        raise InvalidInput(f"{OPTION} takes one TOML file of options, and {came}: {OPTION} FILE.")
    return [OPTION, files[0], *rest]


def use_config(context: typer.Context, file: Path | None) -> None:
    """What the file says becomes the default of the options of its command."""
    if file is None:
        return
    said = _read(file)
    command, asked = said.pop("command", None), context.invoked_subcommand
    said.pop(CALLED, None)
    if asked is None:
        raise InvalidInput(f"{OPTION} needs a command: thinkalike {command or 'compare'} {OPTION} {file}.")
    if command is not None and command != asked:
        raise InvalidInput(f"{file} is of `thinkalike {command}`, and `thinkalike {asked}` was called.")
    known = _parameters(context, asked)
    for name, value in said.items():
        if isinstance(value, dict):
            raise InvalidInput(
                f"{file} has a section [{name}], and options of `thinkalike {asked}` stand in none: take the "
                f"line [{name}] out, and give options of another command in a file of their own."
            )
        if name not in known:
            raise UnknownName.among(f"option of `thinkalike {asked}` (in {file})", name, known)
    fitting = {name: _fitting(value, known[name], file) for name, value in said.items()}
    for name, value in fitting.items():
        _taken(context, known[name], value, file)
    context.default_map = {asked: fitting}


def write_config(command: str, options: Mapping[str, Any], folder: Path) -> None:
    """The options that were given, into the folder of a run; where to, apart from the others."""
    import tomli_w

    from thinkalike.files import plain, write_text

    given = {name: value for name, value in options.items() if value is not None and name != "context"}
    places = {name: str(given.pop(name)) for name in PLACES if _is_place(given.get(name))}
    called = {} if is_address(folder) else {"from": os.path.relpath(Path.cwd(), folder.resolve())}
    written = {name: value for name, value in plain(given).items() if value is not None}  # NaN has no word
    text = tomli_w.dumps({"command": command, **written, CALLED: {**called, **places}})
    file = folder / OPTIONS
    if not (file.is_file() and file.read_bytes() == text.encode()):
        write_text(text, file)


def call_of(folder: Path, commands: Collection[str]) -> tuple[Path, list[str]]:
    """From where the run of a folder was called, and with what; by one of `commands`."""
    file = folder / OPTIONS
    if not file.is_file():
        raise InvalidInput(
            f"{folder} has no {OPTIONS}, which every command leaves in the folder of its run: give that "
            "folder. What a call of Python has begun goes on with the same call."
        )
    said = _read(file)
    command, called = said.get("command"), said.get(CALLED)
    words = {name: one for name, one in called.items() if _is_word(one)} if isinstance(called, dict) else {}
    if command not in commands or "from" not in words or words != called:
        raise InvalidInput(f"{file} does not say how the run was called: give the command once more.")
    options = [word for name in PLACES if name in words for word in (f"--{name}", words[name])]
    return folder / words["from"], [OPTION, str(file.resolve()), str(command), *options]


def _is_word(value: Value) -> bool:
    return isinstance(value, str) and value.isprintable()


def _is_place(value: object) -> bool:
    return isinstance(value, (str, Path)) or is_address(value)


def _read(file: Path) -> Json:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {file}: {OPTION} names a TOML file of options.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(
            f"{file} is no TOML file of options ({error}). A line is NAME = VALUE, such as sentences = 400."
        ) from None


def _taken(context: Any, parameter: click.Parameter, value: Value, file: Path) -> None:
    """The option itself says whether a value is of its kind and in its range, but not where it came from."""
    try:
        parameter.process_value(context, value)
    except typer.BadParameter as error:
        raise InvalidInput(f"{file}: {parameter.name} is {value!r}. {error.message.rstrip('.')}.") from None


def _fitting(value: Value, parameter: click.Parameter, file: Path) -> Value:
    """A value of the file as the option takes it."""
    several = parameter.multiple or parameter.nargs != 1
    is_flag = bool(getattr(parameter, "is_flag", False))
    each = value if isinstance(value, list) else [value]
    expected = (
        "true or false" if is_flag else "words or numbers in brackets" if several else "a word or number"
    )
    if (isinstance(value, list) and not several) or any(
        isinstance(one, bool) != is_flag or not isinstance(one, (str, int, float)) for one in each
    ):
        raise InvalidInput(f"{file}: {parameter.name} is {value!r}, and {expected} was expected.")
    return each if several else value


def _parameters(context: typer.Context, command: str) -> dict[str, click.Parameter]:
    found = commands_of(context).get(command)
    return {} if found is None else {str(one.name): one for one in found.params}


def commands_of(context: object) -> Mapping[str, click.Command]:
    """All commands, by name; of the context of the whole command line."""
    found: Mapping[str, click.Command] = getattr(getattr(context, "command", None), "commands", {})
    return found
