"""`thinkalike serve`: a run or an atlas as a page to explore, on this machine only."""

from __future__ import annotations

from typing import Annotated

import typer

from thinkalike.cli.application import app
from thinkalike.cli.options import asked


@app.command()
def serve(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN|ATLAS]",
            help="A run directory of `compare`, or an atlas.",
            show_default="the atlas of the bundled models",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="The port of this machine.", show_default="any that is free"),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open-page", help="Open the page in the browser.")] = False,
) -> None:
    """Explore a run or an atlas in the browser: pick systems, layers, features, distances. Reads only."""
    from thinkalike.serving import serve as run

    run(source, open_page=open_page, **asked(port=port))
