"""Where the command line ends: every error becomes one line here, and an exit code.

0 done, 2 something given or found cannot be worked with, 70 a bug of ours, 130 Ctrl-C.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from thinkalike.cli import interrupts

DEBUG = "--debug"


def main() -> None:
    """The command line, to the end of the process."""
    interrupts.handle()  # before anything that takes time to import
    code = run(sys.argv[1:])
    interrupts.finish()
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code. With --debug, wherever it stands, errors are raised as they are."""
    try:
        from thinkalike.cli.commands import app
        from thinkalike.cli.config import in_front

        app(in_front([a for a in arguments if a != DEBUG]), prog_name="thinkalike")
    except SystemExit as stop:
        if stop.code == interrupts.INTERRUPTED:  # what typer makes of Ctrl-C
            interrupts.leave()
        return stop.code if isinstance(stop.code, int) else 0
    except BaseException as error:
        if interrupts.was_asked() or isinstance(error, KeyboardInterrupt):
            interrupts.leave()
        if DEBUG in arguments:
            raise
        from thinkalike.cli.failures import told

        line, code = told(error)
        print(line, file=sys.stderr)
        return code
    return 0
