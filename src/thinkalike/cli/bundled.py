"""The bundled models as a table in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from thinkalike.systems.bundled import Card

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
