"""Commands of thinkalike as processes that can be killed, limited, and read afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thinkalike.machine import kernels_directory

ROOT = Path(__file__).parents[2]
LIMIT = 20
"""Seconds of the processor after which a command hangs; a busy machine does not lengthen it"""
PATIENCE = 15
"""So many times that on the clock: a command that sleeps uses no processor"""
QUIET = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR") or kernels_directory(),
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "COLUMNS": "120",
    "PYTHONWARNINGS": "ignore",
}


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    arguments: tuple[str, ...]
    code: int
    """As a shell's, but negative for the signal that ended it"""
    out: str = field(repr=False)
    err: str = field(repr=False)
    seconds: float = 0.0
    processor: float = 0.0
    hung: bool = False
    killed: bool = False
    events: int = 0


class Shell:
    """Runs commands in forks of a server that has everything imported."""

    def __init__(self) -> None:
        environment = {**os.environ, **QUIET, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("forkserver.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self._lock = threading.Lock()
        self._notes = tempfile.TemporaryDirectory(prefix="hostile-")
        self._count = 0
        self.processor = 0.0
        """Seconds of all commands so far"""
        self._ask({})  # until it is there

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()
        self._notes.cleanup()

    def run(
        self,
        arguments: Sequence[str | Path],
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
        limit: int = LIMIT,
        after: float | None = None,
        sent: signal.Signals = signal.SIGKILL,
        fatal_event: int | None = None,
        largest_file: int | None = None,
        learn: bool = False,
    ) -> Done:
        """Run a command in `folder` to its end.

        Parameters
        ----------
        limit : seconds of the processor it may take.
        after, sent : send a signal after so many seconds.
        fatal_event : die of SIGKILL before this change to a file below `folder`, counted from 1.
        largest_file : bytes; to write more gives EFBIG.
        learn : count the changes, and let all later commands find what this one imported.
        """
        with self._lock:
            self._count += 1
            notes = Path(self._notes.name) / str(self._count)
        words = tuple(map(str, arguments))
        folder.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        pid = self._ask(
            {
                "run": {
                    "arguments": words,
                    "folder": str(folder),
                    "environment": {"THINKALIKE_CACHE": "cache", **(environment or {})},
                    "stdout": f"{notes}.out",
                    "stderr": f"{notes}.err",
                    "notes": f"{notes}.json" if learn else None,
                    "processor_seconds": limit,
                    "fatal_event": fatal_event,
                    "largest_file": largest_file,
                }
            }
        )["pid"]
        process = os.pidfd_open(pid)
        try:
            killed = False
            if after is not None and not _ended(process, after):
                killed = True
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, sent)
            hung = not _ended(process, PATIENCE * limit)
            if hung:
                os.kill(pid, signal.SIGKILL)
        finally:
            os.close(process)
        ended = self._ask({"wait": pid})
        self.processor += ended["processor"]
        events = 0
        if learn and Path(f"{notes}.json").exists():
            noted = json.loads(Path(f"{notes}.json").read_text())
            events = noted["events"]
            self._ask({"import": noted["modules"]})
        return Done(
            words,
            ended["code"],
            _text(f"{notes}.out"),
            _text(f"{notes}.err"),
            time.monotonic() - start,
            ended["processor"],
            hung or ended["code"] == -signal.SIGXCPU,
            killed or (fatal_event is not None and ended["code"] == -signal.SIGKILL),
            events,
        )

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with self._lock:
            self._server.stdin.write(json.dumps(request) + "\n")
            self._server.stdin.flush()
            answer = json.loads(self._server.stdout.readline())
        assert isinstance(answer, dict)
        return answer


def _ended(process: int, seconds: float) -> bool:
    """Whether the process ends within so many seconds."""
    waiter = select.poll()
    waiter.register(process, select.POLLIN)
    return bool(waiter.poll(seconds * 1000))


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
