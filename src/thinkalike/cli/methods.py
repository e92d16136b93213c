"""`thinkalike methods`: sentences for the methods section of a paper."""

from __future__ import annotations

from typing import Annotated

import typer

from thinkalike.cli.application import app


@app.command()
def methods(
    directory: Annotated[str, typer.Argument(help="A run directory, as `compare` and `demo` write it.")],
) -> None:
    """Print what a run did as a text for the methods section of a paper, with what to cite."""
    from thinkalike.comparison.comparison import Comparison
    from thinkalike.report.methods_text import methods_text

    typer.echo(methods_text(Comparison.load(directory)), nl=False)
