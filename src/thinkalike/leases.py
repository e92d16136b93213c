"""One owner of a folder at an address, where no lock of a system reaches.

The owner puts an object there on condition that there is none, and renews it while it lives. Who finds one
waits. An owner is dead if it was a process of this machine that is no more, or if its object was not renewed
for a minute by the clock of the one who waits (clocks of machines are never compared). Then the object is
replaced on condition that it is still the same. S3 offers both conditions; where a store offers none of the
second, two that wait for the same dead owner could both begin, and would write the same bytes.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from time import monotonic as clock
from typing import Any

from thinkalike.addresses import filesystem, reaching, store_errors
from thinkalike.errors import StoreError
from thinkalike.types import Json

LEASE_SECONDS = 60.0
BEAT_SECONDS = 10.0

HOST = re.sub(r"\W", "_", socket.gethostname())[:40]


class Lease:
    """The right to write below an address.

    Parameters
    ----------
    path : of the object, such as s3://BUCKET/RUN/owner.lock.
    """

    def __init__(self, path: Path) -> None:
        self.address = path
        self.files, self.name = filesystem(path)
        self.own: dict[str, Any] = {
            "owner": secrets.token_hex(8),
            "host": HOST,
            "process": os.getpid(),
            "beat": 0,
        }
        self._tag: str | None = None
        self._seen: tuple[bytes, float] = (b"", 0.0)
        self._lost = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def acquired(self) -> bool:
        """Whether it is ours now; if it is another's, ask again later."""
        with reaching(self.address):
            if not (self._put(mode="create") or self._inherited()):
                return False
        self._thread = threading.Thread(target=self._renew, daemon=True, name=f"lease of {self.address}")
        self._thread.start()
        return True

    def release(self) -> None:
        """Give it up; raises if it was lost to another in between."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        with suppress(*store_errors()):  # then it ends by itself
            self._lost = self._lost or not self._is_ours(self._content())
            if not self._lost:
                self.files.rm_file(self.name)
        if self._lost:
            raise StoreError(
                f"Another process took over {self.address.parent}, because this one could not be seen for "
                f"{LEASE_SECONDS:.0f} seconds. Nothing is lost: the same call goes on with what is there."
            )

    def _put(self, **condition: str) -> bool:
        """Whether the object could be put under this condition."""
        try:
            answer = self.files.pipe_file(self.name, json.dumps(self.own).encode(), **condition)
        except OSError:
            content = self._content()
            if content is None:  # nothing that the condition could have refused
                raise
            if not self._is_ours(content):  # an answer may get lost, and the library ask again
                return False
            answer = None
        self._tag = (answer or {}).get("ETag") if isinstance(answer, dict) else None
        return True

    def _inherited(self) -> bool:
        """Whether the present owner is dead, and we could take its place."""
        tag = self._current_tag()
        content = self._content()
        if content is None:
            return False  # it is free by now: ask again
        if content != self._seen[0]:
            self._seen = (content, clock())
        silent = clock() - self._seen[1]
        if silent < LEASE_SECONDS and not _is_dead(content):
            return False
        taken = self._put(**({} if tag is None else {"IfMatch": tag}))
        return taken and self._is_ours(self._content())

    def _renew(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            self.own["beat"] += 1
            with suppress(*store_errors()):  # the next beat may come through
                tag = self._tag or self._current_tag()
                if not self._is_ours(self._content()) or not self._put(
                    **({} if tag is None else {"IfMatch": tag})
                ):
                    self._lost = True
                    return

    def _content(self) -> bytes | None:
        try:
            return bytes(self.files.cat_file(self.name))
        except FileNotFoundError:
            return None

    def _current_tag(self) -> str | None:
        try:
            found = self.files.info(self.name).get("ETag")
        except FileNotFoundError:
            return None
        return None if found is None else str(found)

    def _is_ours(self, content: bytes | None) -> bool:
        return content is not None and _read(content).get("owner") == self.own["owner"]


def _read(content: bytes) -> Json:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_dead(content: bytes) -> bool:
    """Whether the owner was a process of this machine that is no more."""
    found = _read(content)
    return found.get("host") == HOST and not lives(str(found.get("process")))


def lives(process: str) -> bool:
    """Whether a process of this machine is still there, as far as can be told."""
    if sys.platform == "win32" or not process.isdecimal():  # there no question can be asked without harm
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
