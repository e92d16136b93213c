"""The reference of the command line, made from the commands themselves when the site is built."""

from __future__ import annotations

from typing import Any

MARK = "<!-- commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put every command where the mark is."""
    return markdown.replace(MARK, commands()) if MARK in markdown else markdown


def commands() -> str:
    """All commands, as Markdown."""
    from typer.main import get_command

    from thinkalike.cli import app

    root = get_command(app)
    parts = [_table("Before any command", [p for p in root.params if p.name != "help"])]
    parts += [_command(name, root.commands[name]) for name in sorted(root.commands)]
    return "\n".join(parts)


def _command(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    usage = " ".join([f"thinkalike {name}", *map(_placeholder, arguments), "[OPTIONS]" if options else ""])
    text = " ".join((command.help or "").split())
    parts = [f"## thinkalike {name}", text, f"```text\n{usage.strip()}\n```"]
    parts += [_table("Argument", arguments)] if arguments else []
    parts += [_table("Option", options)] if options else []
    return "\n\n".join(parts) + "\n"


def _placeholder(argument: Any) -> str:
    return argument.metavar or argument.name.upper()


def _table(title: str, parameters: list[Any]) -> str:
    rows = [f"| {_names(p)} | {_cell(p.help or '')}{_default(p)} |" for p in parameters]
    return "\n".join([f"| {title} | |", "|---|---|", *rows]) + "\n"


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{_cell(_placeholder(parameter))}`"
    return ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))


def _default(parameter: Any) -> str:
    """What is taken when nothing is given, where that says something."""
    if parameter.required:
        return " *Required.*"
    shown = parameter.show_default
    value = shown if isinstance(shown, str) else parameter.default
    if value is None or value is False:
        return ""
    if value is True and parameter.secondary_opts:
        value = parameter.opts[0]
    return f" Default: `{_cell(str(value))}`."


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
