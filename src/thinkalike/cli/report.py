"""`thinkalike report`: draw the page of a run again, and its charts as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thinkalike.cli.application import app
from thinkalike.cli.options import only_with, source


@app.command()
def report(
    directory: Annotated[Path, source("A run directory, as `compare` and `demo` write it, or its address.")],
    figures: Annotated[
        str | None, typer.Option(help="Also write every chart to DIRECTORY/figures: png, svg or pdf.")
    ] = None,
    width: Annotated[
        str | None,
        typer.Option(help="Their width: single or double, columns of a journal (89 and 183 mm)."),
    ] = None,
    pair: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Two layers, such as bert:4 gpt2:8, whose charts --figures writes too."),
    ] = None,
) -> None:
    """Write the report of a run again: one HTML page, and with --figures every chart as a file."""
    from thinkalike.comparison.comparison import Comparison
    from thinkalike.errors import InvalidInput
    from thinkalike.report.figures import check_format, chosen_pair, column_width, write_figures
    from thinkalike.report.page import write_report
    from thinkalike.report.pairs import picks

    if pair is not None and figures is None:
        raise InvalidInput("--pair names charts to write as files: give --figures png, svg or pdf too.")
    only_with(figures is not None, "with --figures", width=width)
    if figures is not None:
        check_format(figures)
    if width is not None:
        column_width(width)
    comparison = Comparison.load(directory)
    pairs = picks(comparison)
    if pair is not None:
        pairs.append(chosen_pair(comparison, *pair))
    typer.echo(write_report(comparison, directory))
    if figures is not None:
        for path in write_figures(
            comparison, directory / "figures", format=figures, width=width, pairs=pairs
        ):
            typer.echo(path)
