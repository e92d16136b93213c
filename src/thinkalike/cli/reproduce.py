"""`thinkalike reproduce`: the experiments of the two papers, each as one command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thinkalike.cli.application import app
from thinkalike.cli.finished import Written, says_again
from thinkalike.cli.options import DryRun, address, asked, only_with
from thinkalike.errors import InvalidInput
from thinkalike.options import named_once
from thinkalike.types import Value

if TYPE_CHECKING:
    from thinkalike.recipes import Reproduction


@app.command()
@says_again()
def reproduce(
    name: Annotated[str | None, typer.Argument(help="A recipe; without one they are listed.")] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help="smoke: under a minute. nano: the bundled models. real: pretrained ones that packages "
            "carry. paper: the paper's, from the hub.",
            show_default="nano",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        address("The folder for page, figures and findings.", show_default="runs/NAME-SCALE"),
    ] = None,
    models: Annotated[
        Path | None,
        typer.Option(
            help="A folder that holds models under the names of the hub, for --scale paper offline."
        ),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="SETTING=VALUE",
            help="Change a setting of the recipe; may be given several times.",
        ),
    ] = None,
    dry_run: DryRun = False,
) -> Written:
    """Run an experiment of one of the two papers, and say which of its findings we find too."""
    if name is None:
        only_with(False, "with the NAME of a recipe", scale=scale, out=out, models=models, set=change)
        list_recipes()
        return []
    from thinkalike.recipes import reproduce as run

    folder = out or Path("runs") / f"{name}-{scale or 'nano'}"

    changes = parse_settings(change or [])
    if dry_run:
        from thinkalike.recipes.reproducing import foresee

        typer.echo(foresee(name, out=folder, **asked(scale=scale, models_folder=models), **changes))
        return []
    close(run(name, out=folder, **asked(scale=scale, models_folder=models), **changes))
    files = models is not None or any(Path(str(value)).exists() for value in changes.values())
    return [] if scale == "paper" or files else [folder]  # what it read may be another next time


def parse_settings(texts: Sequence[str]) -> dict[str, Any]:
    """SETTING=VALUE as a mapping; a value that is JSON (a number, a list) is read as such."""
    return named_once(map(_setting, texts), "setting")


def _setting(text: str) -> tuple[str, Value]:
    key, given, value = text.partition("=")
    if not (key and given):
        raise InvalidInput(f"{text!r} changes no setting: write SETTING=VALUE.")
    try:
        return key, json.loads(value)
    except (ValueError, RecursionError):
        return key, value


def list_recipes() -> None:
    """Names, titles, and which figures each shows."""
    from rich.console import Console
    from rich.table import Table

    from thinkalike.recipes.recipe_registry import RECIPES, SCALES

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("recipe", "what", "shows"):
        table.add_column(column, no_wrap=column == "recipe")
    for recipe in RECIPES.values():
        table.add_row(recipe.name, recipe.title, recipe.shows)
    Console().print(table)
    typer.echo(f"\nthinkalike reproduce NAME [--scale {'|'.join(SCALES)}]. More: docs/recipes.md")


def close(done: Reproduction) -> None:
    """Every statement with its verdict, and where the page is."""
    from textwrap import fill

    from rich.console import Console

    width = Console().width
    for beyond in (False, True):
        chosen = [s for s in done.findings.statements if s.beyond == beyond]
        if beyond and chosen:
            typer.echo("\nBeyond the paper")
        for statement in chosen:
            lead = f"{statement.verdict:>16}  "
            typer.echo(fill(statement.found, width, initial_indent=lead, subsequent_indent=" " * len(lead)))
    counts = ", ".join(f"{count} {verdict}" for verdict, count in done.findings.counts().items() if count)
    typer.echo(f"\n{done.recipe.name}: {counts}. Page: {done.page}")
