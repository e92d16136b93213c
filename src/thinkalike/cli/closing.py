"""What a comparison says in the terminal when it is done."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from thinkalike.cli.tables import show_notes, show_table

if TYPE_CHECKING:
    from thinkalike.comparison.comparison import Comparison

FOOTNOTE = (
    "τ_w: how alike the order of the features is, from −1 to 1; RSA and other measures: geometry; all are "
    "means over pairs of layers. low to high: 95 % range over other sentences. q: how often chance does as "
    "much, corrected for the number of pairs. untrained: copies with random weights."
)


def close(comparison: Comparison, report: Path | None) -> None:
    """The answer, a small table of the pairs of systems, the cautions, and where the report is."""
    console = Console()
    typer.echo("")
    for question, said in comparison.answer.by_question().items():
        typer.echo(fill(f"{question} {said}", console.width))
    typer.echo("")
    frame = comparison.table().drop(columns="ceiling", errors="ignore")  # the report has it
    rows = [[_cell(name, value) for name, value in row.items()] for _, row in frame.iterrows()]
    show_table([str(name) for name in frame], rows, names=("systems", "best layers"), console=console)
    typer.echo(fill(FOOTNOTE, console.width))
    if comparison.cautions:
        typer.echo("\nTo keep in mind:")
        show_notes((caution.text for caution in comparison.cautions), console)
    if report is not None:
        typer.echo(f"\nReport: {report}")


def _cell(column: object, value: object) -> str:
    from thinkalike.wording import number

    if not isinstance(value, float):
        return str(value)
    return f"{value:.2g}" if column == "q" else number(value)
