"""A finished command repeated: seconds of the processor beyond those of the imports.

Goal: at most 1.5 s. `python -m benchmarks repeat` writes benchmarks/results/repeat.json. The time of the
processor is taken, imports of our own command line included on both sides, so that a busy machine matters
little; `first` is the same command before anything was done.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "repeat.json"
TWO = ("nano-gpt2", "nano-mamba")
COMMANDS = {
    "compare": ("compare", *TWO, "--out", "run"),
    "profile": ("profile", TWO[0], "--out", "profile"),
    "cka": ("cka", "nano-gelu-3l", "nano-solu-3l", "--text", "t.txt", "--max-batches", "8", "--out", "cka"),
}
IMPORTS = ("-c", "import thinkalike.cli.commands")


def main() -> None:
    from thinkalike.systems.bundled import sample_text

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "t.txt").write_text(
            sample_text().read_text(encoding="utf-8")[:100_000], encoding="utf-8"
        )
        found = {}
        for name, arguments in COMMANDS.items():
            command = ("-m", "thinkalike", *arguments)
            first, again = _seconds(folder, *command), _seconds(folder, *command)
            beyond = again - _seconds(folder, *IMPORTS)
            found[name] = {"first": first, "again": again, "beyond imports": round(beyond, 2)}
            print(f"{name}: {first:.1f} s, again {again:.2f} s, {beyond:.2f} s beyond the imports")
    RESULTS.write_text(json.dumps({"processor seconds": found}, indent=1) + "\n")


def _seconds(folder: str, *arguments: str) -> float:
    """Of the processor, for one process of Python and all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "THINKALIKE_CACHE": str(Path(folder, "cache"))}
    subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2)


if __name__ == "__main__":
    main()
