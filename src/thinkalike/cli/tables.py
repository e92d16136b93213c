"""Tables in the terminal, whose names may wrap and whose numbers are never cut, and the notes below them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill

import typer
from rich.console import Console
from rich.table import Table

PADDING = 2
WORD = 14
"""Letters of a word that is not broken in two, whatever the room"""


def show_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    names: Sequence[str],
    title: str | None = None,
    console: Console | None = None,
) -> None:
    """Print rows of text under `columns`; those of `names` stand left and wrap where there is no room."""
    console = console or Console()
    table = Table(title=title, box=None, padding=(0, PADDING, 0, 0), header_style="bold")
    needed = 0
    for k, column in enumerate(columns):
        if column in names:
            words = [word for row in rows for word in row[k].split()]
            widest = max(len(column), *(min(len(word), WORD) for word in words or [""]))
            table.add_column(column, overflow="fold", min_width=widest)
            needed += widest + PADDING
            continue
        widest = max([len(column), *(len(row[k]) for row in rows)])
        table.add_column(column, justify="right", no_wrap=True, min_width=widest)
        needed += widest + PADDING
    for row in rows:
        table.add_row(*row)
    console.print(table, width=max(console.width, needed), crop=False)


def show_notes(notes: Iterable[str], console: Console | None = None) -> None:
    """Print what is to be kept in mind, one point each."""
    width = (console or Console()).width
    for note in notes:
        typer.echo(fill(f"· {note}", width, initial_indent="  ", subsequent_indent="    "))
