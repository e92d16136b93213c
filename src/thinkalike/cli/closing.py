"""What a comparison says in the terminal when it is done."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from thinkalike.comparison.comparison import Comparison


def close(comparison: Comparison, report: Path | None) -> None:
    """The answer, a small table of the pairs of systems, the cautions, and where the report is."""
    from thinkalike.comparison.words import number

    console = Console()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("systems", "mean τ_w", "q", "chance 95 %", "untrained", "mean RSA", "best layers"):
        table.add_column(name, justify="left" if name in ("systems", "best layers") else "right")
    for block in comparison.matrices["features"].blocks:
        if block.a == block.b:
            continue
        table.add_row(
            f"{block.a}, {block.b}",
            number(block.mean),
            f"{block.q:.2g}",
            number(block.null_95),
            number(block.control) if isfinite(block.control) else "–",
            number(comparison.matrices["rsa"].block_mean(block.a, block.b)),
            f"{block.layer_a}, {block.layer_b} ({number(block.maximum)})",
        )
    typer.echo("")
    for sentence in comparison.answer:
        typer.echo(fill(sentence, console.width))
    typer.echo("")
    console.print(table)
    if comparison.cautions:
        typer.echo("\nTo keep in mind:")
        for caution in comparison.cautions:
            typer.echo(
                fill(f"· {caution.text}", console.width, initial_indent="  ", subsequent_indent="    ")
            )
    if report is not None:
        typer.echo(f"\nReport: {report}")
