"""`thinkalike models` lists the bundled models with size, perplexity and licence."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from thinkalike.cli.models import COLUMNS, bundled_row, show_bundled
from thinkalike.systems import bundled


def test_every_model_and_revision_has_a_line_with_its_facts() -> None:
    out = StringIO()
    show_bundled(Console(file=out, width=80))
    lines = out.getvalue().splitlines()
    assert lines[0].split() == list(COLUMNS)
    assert "…" not in out.getvalue()
    for card in bundled.cards(revisions=True):
        (line,) = (line for line in lines if line.startswith(f"{card.name} "))
        assert f"{card.perplexity:.1f}" in line
        assert f"{card.parameters / 1e6:.2f} M" in line
        assert "public domain" in line


def test_a_row_fills_the_columns() -> None:
    row = dict(zip(COLUMNS, bundled_row(bundled.card("nano-bert")), strict=True))
    assert row["model"] == "nano-bert"
    assert row["task"] == "masked"
    assert row["layers"] == "6×128"
