"""`serve`: the page on this machine's own address, for whoever has the token that is in it."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from thinkalike.errors import InvalidInput, MissingExtra, StoreError, ThinkalikeError
from thinkalike.options import whole_number

if TYPE_CHECKING:
    from thinkalike.serving.exploring import RunExplorer
    from thinkalike.serving.pages import Explorer

HOST = "127.0.0.1"
LARGEST_PORT = 65_535
LONGEST_REQUEST = 64 * 1024
"""Bytes of an address and its headers"""


def serve(source: str | os.PathLike[str] | None = None, *, port: int = 0, open_page: bool = False) -> None:
    """Show a run or an atlas as a page to explore, on this machine only, until Ctrl-C.

    On the page one picks systems, layers, features, items and distances; matrices, maps and reasons follow
    at once. It reads and never writes. Only requests to this machine's own address that know the token in it
    are answered.

    Parameters
    ----------
    source : a run directory of `compare`, or an atlas (a folder or an address); the atlas of the bundled
        models when None.
    port : 0 for any that is free.
    open_page : whether to open it in the browser.

    Examples
    --------
    >>> import thinkalike as ta
    >>> ta.serve("no-such-run")
    Traceback (most recent call last):
    thinkalike.errors.StoreError: There is no run and no atlas in no-such-run: ...
    """
    with serving(source, port=port) as address:
        print(f"Explore at {address}\nThis machine only; Ctrl-C ends it.", flush=True)
        if open_page:
            import webbrowser

            webbrowser.open(address)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print("Ended.")


@contextmanager
def serving(source: str | os.PathLike[str] | None = None, *, port: int = 0) -> Iterator[str]:
    """The address of the page, which is there within the block."""
    try:
        import uvicorn

        from thinkalike.serving.exploring import RunExplorer
        from thinkalike.serving.pages import application
    except ModuleNotFoundError as error:
        raise MissingExtra.needed(error.name or "uvicorn", "serve") from None

    whole_number("port", port, 0, LARGEST_PORT)
    explorer = explorer_of(source)
    with _listening(port) as bound:
        app, path = application(explorer, port=bound.getsockname()[1])
        options = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            server_header=False,
            ws="none",
            h11_max_incomplete_event_size=LONGEST_REQUEST,
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(options)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        if isinstance(explorer, RunExplorer):
            threading.Thread(target=_prepare, args=(explorer,), daemon=True).start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield f"http://{HOST}:{bound.getsockname()[1]}{path}"
        finally:
            server.should_exit = True
            thread.join(timeout=10)


def _prepare(explorer: RunExplorer) -> None:
    """Ahead of the first question; what is wrong will be said when it is asked."""
    with suppress(ThinkalikeError):
        explorer.prepare()


def explorer_of(source: str | os.PathLike[str] | None) -> Explorer:
    """What is in a place: a run, or an atlas."""
    from thinkalike.populations.atlas import Atlas
    from thinkalike.serving.exploring import AtlasExplorer, RunExplorer

    if source is None:
        return AtlasExplorer(Atlas())
    if Path(source, "run.json").is_file():
        return RunExplorer.open(Path(source))
    if "://" in str(source) or Path(source).is_dir():
        atlas = Atlas(source)
        if len(atlas):
            return AtlasExplorer(atlas)
    raise StoreError(
        f"There is no run and no atlas in {source}: give a folder that thinkalike compare wrote, or the "
        "place of an atlas."
    )


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    """A socket on the loopback address, which no other machine reaches."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((HOST, port))
        except OSError as error:
            raise InvalidInput(
                f"Port {port} cannot be used ({error.strerror or error}): give another, or none for one that "
                "is free."
            ) from None
        yield bound
