"""What depends on the machine: where our caches lie, and instructions that it announces and may not run.

Light, since it is used before torch and Numba are loaded.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

from thinkalike.types import Option

CACHE = "THINKALIKE_CACHE"
ISA = "ONEDNN_MAX_CPU_ISA"
WITHOUT_AMX = "AVX512_CORE_BF16"
"""The most that oneDNN, which multiplies matrices for torch, may use of a processor that announces AMX"""
CPUINFO = Path("/proc/cpuinfo")


def cache_directory() -> str:
    """$THINKALIKE_CACHE, a path or an fsspec address; ~/.cache/thinkalike if it is not set."""
    return os.environ.get(CACHE) or str(Path.home() / ".cache" / "thinkalike")


def keep_off_amx(environment: MutableMapping[str, str] = os.environ, cpuinfo: Path = CPUINFO) -> None:
    """Keep oneDNN off the AMX unit of the processor, unless the user has said what it may use.

    Under some hypervisors the processor announces AMX, the system permits it, and the first product in
    bfloat16 still ends the process (SIGILL); nothing can be asked beforehand. What is lost is speed in
    bfloat16 on a CPU; `ONEDNN_MAX_CPU_ISA=DEFAULT` gives it back where AMX works. oneDNN looks at the
    variable at its first product, so that torch may have been imported before.
    """
    if ISA not in environment and _announces_amx(cpuinfo):
        environment[ISA] = WITHOUT_AMX


def _announces_amx(cpuinfo: Path) -> bool:
    """Whether the first processor's flags name it; the file has a paragraph for each, and they are alike."""
    try:
        with cpuinfo.open(encoding="utf-8", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:  # not Linux
        return False
    return "amx_tile" in flags.split()


def compiled(**options: Option) -> Callable[[Callable[..., object]], Any]:
    """`numba.njit` with `options`, whose machine code is kept in our cache directory.

    `NUMBA_CACHE_DIR` goes before it. Where neither can be written to, nothing is kept: Numba alone would
    write into the package's folder.
    """
    import numba

    settings: Any = numba.config

    def decorate(function: Callable[..., object]) -> object:
        given = settings.CACHE_DIR
        place = _writable(given or kernels_directory())
        if place is None:
            return numba.njit(**options)(function)
        settings.CACHE_DIR = place  # read by Numba when it decorates
        try:
            return numba.njit(cache=True, **options)(function)
        finally:
            settings.CACHE_DIR = given

    return decorate


def local_cache_directory() -> str:
    """The cache directory; where that is an address, the usual folder of this machine."""
    cache = cache_directory()
    return str(Path.home() / ".cache" / "thinkalike") if "://" in cache else cache


def kernels_directory() -> str:
    """Where compiled loops are kept: a folder of this machine."""
    return str(Path(local_cache_directory()) / "numba")


@functools.cache
def _writable(folder: str) -> str | None:
    try:
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder
