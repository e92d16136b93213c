"""`thinkalike models`: what is bundled, and what can be extracted."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from thinkalike.cli.application import app

if TYPE_CHECKING:
    from thinkalike.systems.bundled import Card


@app.command()
def models(
    architectures: Annotated[
        bool, typer.Option("--architectures", help="List the architectures that can be extracted instead.")
    ] = False,
) -> None:
    """List the bundled models, or the architectures whose layers we know."""
    if architectures:
        show_architectures()
    else:
        show_bundled()


def show_architectures() -> None:
    """Print the table of architectures as it stands in the code."""
    from thinkalike.systems.architectures import ARCHITECTURES
    from thinkalike.systems.sites import sites_of

    rows: dict[str, list[str]] = {
        kind: [] for kind in dict.fromkeys(row.kind for row in ARCHITECTURES.values())
    }
    for name, row in ARCHITECTURES.items():
        sites = " ".join(sites_of(row))
        blocks = f"{{{','.join(row.parts)}}}.{row.blocks}" if row.parts else row.blocks
        first, *more = wrap(sites, 34) or [""]
        rows[row.kind].append(f"  {name:<24}{blocks:<30}{first}".rstrip())
        rows[row.kind].extend(" " * 56 + line for line in more)
    typer.echo(f"{'model_type':<26}{'blocks':<30}sites beside the residual stream")
    for kind, lines in rows.items():
        typer.echo("\n".join([f"\n{kind}", *lines]))
    typer.echo(
        "\nmodel_type is in a model's config.json. Of any other, the longest list of equal blocks"
        "\nis taken, with a warning; `thinkalike extract --blocks PATH` names another."
    )


COLUMNS = ("model", "task", "size", "layers", "read", "ppl", "3-gram", "data")  # fits 80 characters


def show_bundled(console: Console | None = None) -> None:
    """Print every bundled model with its size, its held-out perplexity and the licence of its data."""
    from thinkalike.systems.bundled import cards

    console = console or Console()
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in ("model", "task", "data") else "right", no_wrap=True)
    for card in cards(revisions=True):
        table.add_row(*bundled_row(card))
    console.print(table)
    console.print(
        "\nsize: parameters; layers × width; read: tokens seen in training; ppl: perplexity on the bundled "
        "held-out text, and that of a Kneser–Ney 3-gram on the same tokens (masked models: on masked tokens, "
        "seen from both sides); data: their licence. Weights: Apache-2.0. More: docs/models.md",
        highlight=False,
    )


def bundled_row(card: Card) -> tuple[str, ...]:
    """One line of the table, by `COLUMNS`."""
    return (
        card.name,
        card.task,
        f"{card.parameters / 1e6:.2f} M",
        f"{card.layers}×{card.width}",
        f"{card.tokens_seen / 1e6:.1f} M",
        f"{card.perplexity:.1f}",
        f"{card.kneser_ney_perplexity:.1f}",
        card.data_licence,
    )
