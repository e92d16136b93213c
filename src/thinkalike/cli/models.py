"""`thinkalike models`: what is bundled, and what can be extracted."""

from __future__ import annotations

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
    from thinkalike.systems.architectures import ARCHITECTURES, SITES

    rows: dict[str, list[str]] = {
        kind: [] for kind in dict.fromkeys(row.kind for row in ARCHITECTURES.values())
    }
    for name, row in ARCHITECTURES.items():
        sites = " ".join(site for site in SITES if row.site_paths(site, None))
        blocks = f"{{encoder,decoder}}.{row.blocks}" if row.two_stacks else row.blocks
        rows[row.kind].append(f"  {name:<24}{blocks:<30}{sites}".rstrip())
    typer.echo(f"{'model_type':<26}{'blocks':<30}sites beside the residual stream")
    for kind, lines in rows.items():
        typer.echo("\n".join([f"\n{kind}", *lines]))
    typer.echo(
        "\nmodel_type is in a model's config.json. Of any other, the longest list of equal blocks"
        "\nis taken, with a warning; `thinkalike extract --blocks PATH` names another."
    )
