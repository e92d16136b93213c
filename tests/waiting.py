"""Waiting for a state, the only way in which tests wait: how fast the machine is must not decide anything."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

HANGS = 300.0
"""Seconds after which what is waited for will not come: far beyond what a busy machine needs"""

PAUSE = """
import os, time
def pause_until(path):
    while not os.path.exists(path):
        time.sleep(0.01)
"""
"""For scripts that tests start: stand still until a file is there"""


def until(condition: Callable[[], object], *processes: subprocess.Popen[bytes]) -> None:
    """Come back when `condition` holds; none of the `processes` may end before."""
    end = time.monotonic() + HANGS
    while not condition():
        assert all(process.poll() is None for process in processes), "it has ended before"
        assert time.monotonic() < end, "it did not get there"
        time.sleep(0.01)


def until_there(path: Path, *processes: subprocess.Popen[bytes]) -> None:
    """Come back when a file is there."""
    until(path.exists, *processes)
