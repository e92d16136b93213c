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

FOOTNOTE = (
    "τ_w and RSA: means over all pairs of layers. chance: what 95 % of chance rankings stay below. "
    "best layers: the pair that is most alike by features."
)


def close(comparison: Comparison, report: Path | None) -> None:
    """The answer, a small table of the pairs of systems, the cautions, and where the report is."""
    from thinkalike.wording import number

    console = Console()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("systems", "τ_w", "q", "chance", "untrained", "RSA", "best layers"):
        is_text = name in ("systems", "best layers")
        table.add_column(name, justify="left" if is_text else "right", no_wrap=is_text)
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
    typer.echo(fill(FOOTNOTE, console.width))
    if comparison.cautions:
        typer.echo("\nTo keep in mind:")
        for caution in comparison.cautions:
            typer.echo(
                fill(f"· {caution.text}", console.width, initial_indent="  ", subsequent_indent="    ")
            )
    if report is not None:
        typer.echo(f"\nReport: {report}")
