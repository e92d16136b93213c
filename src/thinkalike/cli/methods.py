"""`thinkalike methods`: sentences for the methods section of a paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from thinkalike.cli.application import app

if TYPE_CHECKING:
    from thinkalike.comparison.comparison import Comparison
    from thinkalike.comparison.group import GroupComparison
    from thinkalike.comparison.group_profile import GroupProfile


@app.command()
def methods(
    directory: Annotated[
        str, typer.Argument(help="A run directory, as `compare`, `demo` and `group` write it.")
    ],
) -> None:
    """Print what a run did as a text for the methods section of a paper, with what to cite."""
    from thinkalike.report.methods_text import methods_text

    typer.echo(methods_text(_result(directory)), nl=False)


def _result(directory: str) -> Comparison | GroupComparison | GroupProfile:
    """What `group` or `compare` wrote."""
    from thinkalike.addresses import place
    from thinkalike.comparison.comparison import Comparison
    from thinkalike.comparison.group import GroupComparison
    from thinkalike.comparison.group_profile import GroupProfile
    from thinkalike.saving import RESULT, kind_of_result

    file = place(directory) / RESULT
    if not file.exists():
        return Comparison.load(directory)
    if kind_of_result(file) == GroupProfile.__name__:
        return GroupProfile.load(directory)
    return GroupComparison.load(directory)
