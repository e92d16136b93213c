"""`thinkalike models`: what is bundled, and what can be extracted."""

from __future__ import annotations

from textwrap import wrap
from typing import Annotated

import typer

from thinkalike.cli.application import app


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
        from thinkalike.cli.bundled import show_bundled

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
