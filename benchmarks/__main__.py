"""Run the benchmarks named on the command line, or all: every module of this package with a `main`."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks
from thinkalike.errors import UnknownName

NAMES = tuple(sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if not m.name.startswith("_")))


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        if name not in NAMES:
            raise UnknownName.among("benchmark", name, NAMES)
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
