"""The Typer application that the command modules register with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import thinkalike
from thinkalike.cli.config import use_config

app = typer.Typer(
    name="thinkalike",
    help="What makes two language models think alike? Compare layers by features, geometry and function.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"thinkalike {thinkalike.__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option(help="Options of the command in a TOML file; it may also stand after it.")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Options that stand before any command."""
    use_config(context, config)
