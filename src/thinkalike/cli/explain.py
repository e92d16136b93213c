"""`thinkalike explain`: why two layers of a finished run are alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thinkalike.cli.application import app
from thinkalike.cli.options import asked, source
from thinkalike.errors import InvalidInput


@app.command()
def explain(
    run: Annotated[Path, source("A run directory of `thinkalike compare`, or its address.", metavar="DIR")],
    first: Annotated[str, typer.Argument(metavar="SYSTEM:LAYER", help="For example bert-base-uncased:4.")],
    second: Annotated[str, typer.Argument(metavar="SYSTEM:LAYER", help="For example gpt2:8.")],
    group: Annotated[
        list[str] | None,
        typer.Option(help="NAME=FEATURE,FEATURE: also leave these out together; may be given several times."),
    ] = None,
    worst: Annotated[
        int | None,
        typer.Option(min=0, help="How many of the worst explained pairs of words to show.", show_default="5"),
    ] = None,
) -> None:
    """Say which features make two layers alike, how sure that is, and what the features do not explain."""
    from thinkalike.comparison import Comparison
    from thinkalike.labels import parse_row

    a, b = parse_row(first), parse_row(second)
    groups = dict(_parse_group(text) for text in group or [])
    typer.echo(str(Comparison.load(run).explain(*a, *b, groups=groups, **asked(n_worst=worst))))


def _parse_group(text: str) -> tuple[str, list[str]]:
    name, equals, members = text.partition("=")
    if not (name and equals and members):
        raise InvalidInput(
            f"{text!r} is no group: write NAME=FEATURE,FEATURE, as in agreement=number,person."
        )
    return name, [member.strip() for member in members.split(",")]
