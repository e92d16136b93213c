"""Run a command on a machine that announces AMX and forbids it: `python -m tests.hostile.amx -- pytest …`."""

from __future__ import annotations

import subprocess
import sys

from tests.hostile.amx.machine import amx_announced, why_not


def main(words: list[str]) -> int:
    command = words[1:] if words[:1] == ["--"] else words
    if not command:
        sys.exit("No command came. Expected: python -m tests.hostile.amx -- COMMAND …")
    reason = why_not()
    if reason is not None:
        sys.exit(f"Such a machine cannot be made here: {reason}.")
    with amx_announced() as machine:
        return subprocess.run(machine.command(command), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
