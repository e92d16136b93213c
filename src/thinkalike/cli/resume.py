"""`thinkalike resume`: go on with a run that was stopped, as it was called."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from thinkalike.cli.application import app
from thinkalike.cli.config import call_of, commands_of
from thinkalike.errors import InvalidInput


@app.command()
def resume(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Of a run that was stopped, in whatever way.")],
) -> None:
    """Go on with a run that was stopped: what is there of it is kept, the rest is done."""
    assert context.parent is not None
    others = [name for name in commands_of(context.parent) if name != context.info_name]
    place, arguments = call_of(folder, others)
    try:
        os.chdir(place)
    except OSError:
        raise InvalidInput(
            f"The run in {folder} was called from {place}, which is not there any more: give the command "
            "once more, with --out for the folder where it is now."
        ) from None
    app(arguments, prog_name="thinkalike")
