"""Ctrl-C at any moment of a real process, imports included: one line, exit code 130."""

from __future__ import annotations

import os
import random
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.hostile.jobs import JOBS, prepare
from tests.hostile.shell import QUIET, ROOT
from tests.hostile.verdicts import Case, fresh

COMMANDS = ("compare", "stitch --fit task", "cka", "extract")
READY = "HOSTILE_READY"
SITE = f"""
import os
os.write(int(os.environ["{READY}"]), b".")
"""


def command() -> list[str]:
    if any(ROOT.glob("src/thinkalike/__main__.py")):
        return [sys.executable, "-m", "thinkalike"]
    return [sys.executable, "-c", "from thinkalike.cli import main; main()"]


def import_seconds(folder: Path) -> float:
    """How long a command takes that does little beyond its imports."""
    prepare(folder)
    start = time.monotonic()
    environment = {
        **os.environ,
        **QUIET,
        "PYTHONPATH": str(ROOT / "src"),
        "THINKALIKE_CACHE": str(folder / "cache"),
    }
    job = next(job for job in JOBS if job.name == "extract")
    subprocess.run([*command(), *job.arguments], cwd=folder, env=environment, check=True, capture_output=True)
    return time.monotonic() - start


def try_interrupt(folder: Path, seed: int, number: int, early: float) -> Case:
    """Send SIGINT at a random moment after Python itself has started; most within the imports."""
    rng = random.Random(f"{seed} interrupt {number}")
    name = COMMANDS[number % len(COMMANDS)]
    job = next(job for job in JOBS if job.name == name)
    place = fresh(folder, f"{number}-{name}")
    prepare(place)
    (place / "site").mkdir()
    (place / "site" / "sitecustomize.py").write_text(SITE)
    ready, told = os.pipe()
    environment = {
        **os.environ,
        **QUIET,
        "PYTHONPATH": os.pathsep.join([str(place / "site"), str(ROOT / "src")]),
        "THINKALIKE_CACHE": str(place / "cache"),
        READY: str(told),
    }
    moment = rng.uniform(0.03, early) if number % 3 else rng.uniform(early, 2 * early)
    words = [*command(), *job.arguments]
    process = subprocess.Popen(
        words,
        cwd=place,
        env=environment,
        pass_fds=[told],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(told)
    select.select([ready], [], [], 60)
    os.close(ready)
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    try:
        _, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Case(
            f"{name}, Ctrl-C after {moment:.2f} s", "bad", "goes on for two minutes", shlex.join(words)
        )
    label = f"{name}, Ctrl-C after {moment:.2f} s"
    lines = [line for line in err.splitlines() if line.strip()]
    if process.returncode == 0:
        return Case(label, "right", "it had ended")
    if process.returncode == 130 and len(lines) == 1 and lines[0].startswith("interrupted"):
        return Case(label, "clear", lines[0])
    reason = f"exit {process.returncode}, {len(lines)} lines: {' / '.join(lines[-2:])[:300]}"
    return Case(label, "bad", reason, shlex.join(words))
