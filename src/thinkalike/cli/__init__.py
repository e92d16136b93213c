"""The command line: the library's own verbs.

Each command is a module that registers itself with the app; its heavy imports wait until it runs.
"""

from __future__ import annotations

import sys

import typer

from thinkalike.cli import cka as _cka  # noqa: F401
from thinkalike.cli import compare as _compare  # noqa: F401
from thinkalike.cli import demo as _demo  # noqa: F401
from thinkalike.cli import explain as _explain  # noqa: F401
from thinkalike.cli import extract as _extract  # noqa: F401
from thinkalike.cli import models as _models  # noqa: F401
from thinkalike.cli import profile as _profile  # noqa: F401
from thinkalike.cli import report as _report  # noqa: F401
from thinkalike.cli import reproduce as _reproduce  # noqa: F401
from thinkalike.cli import stimuli as _stimuli  # noqa: F401
from thinkalike.cli import stitch as _stitch  # noqa: F401
from thinkalike.cli.app import app
from thinkalike.errors import ThinkalikeError

__all__ = ["app", "main"]

INTERRUPTED = 130  # what typer makes of Ctrl-C


def main() -> None:
    """Run the command line; an error of ours becomes one line and exit code 2."""
    try:
        app()
    except ThinkalikeError as error:
        if "--debug" in sys.argv:
            raise
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            typer.echo("interrupted: what was finished is kept, and the same command resumes", err=True)
        raise
