"""Ctrl-C: one line and exit code 130 at any moment, also while libraries load.

A `KeyboardInterrupt` that lands in the middle of an import, or in a callback from native code, is lost, comes
out as another error, or aborts the process. So an import is left at once: every file is written whole or not
at all, and nothing is lost. Elsewhere the exception is raised, so that what is open is closed in order.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
LINE = "interrupted: what was finished is kept, and the same command resumes\n"
SHOW_CURSOR = "\x1b[?25h"
PATIENCE = 5.0
"""Seconds for closing what is open; then it is left as it is"""

_asked = False


def handle() -> None:
    """From now on, Ctrl-C is ours (where we are the main thread: elsewhere there are no signals)."""
    try:
        signal.signal(signal.SIGINT, _interrupt)
    except ValueError:
        return
    # Last of all the interpreter takes handlers away, and Ctrl-C would end the process without a word.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _leave_now)
        atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)


def was_asked() -> bool:
    """Whether Ctrl-C came: whatever is raised after that is its echo."""
    return _asked


def leave() -> None:
    """One line, and out; native threads get no chance to complain."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            continue  # a closed pipe, or the very print that was interrupted
    os.write(2, ((SHOW_CURSOR if os.isatty(2) else "") + LINE).encode())
    os._exit(INTERRUPTED)


def finish() -> None:
    """The work is done: while the interpreter shuts down there is nothing left to close."""
    if _asked:  # the exception was lost in native code
        leave()
    if signal.getsignal(signal.SIGINT) is _interrupt:
        signal.signal(signal.SIGINT, _leave_now)


def _leave_now(number: int, frame: FrameType | None) -> None:
    leave()


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _asked
    if _asked or _is_importing(frame):
        leave()
    _asked = True
    sys.unraisablehook = lambda ignored: None
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
