"""What depends on the machine: where our caches lie, how threads wait, instructions that it may not run.

Light, since it is used before torch and Numba are loaded.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

from thinkalike.errors import ModelError

CACHE = "THINKALIKE_CACHE"
WITHOUT_AMX = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "MKL_ENABLE_INSTRUCTIONS": "AVX512_E3"}
"""The most that the libraries which multiply matrices for torch may use of a processor that announces AMX:
oneDNN, and MKL for attention in bfloat16"""
WAITING = "OMP_WAIT_POLICY"
CPUINFO = Path("/proc/cpuinfo")
MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


def cache_directory() -> str:
    """$THINKALIKE_CACHE, a path or an fsspec address; ~/.cache/thinkalike if it is not set."""
    return os.environ.get(CACHE) or str(Path.home() / ".cache" / "thinkalike")


def keep_off_amx(environment: MutableMapping[str, str] = os.environ, cpuinfo: Path = CPUINFO) -> None:
    """Keep torch off the AMX unit of the processor, unless the user has allowed it.

    Under some hypervisors the processor announces AMX, the system permits it, and the first product in
    bfloat16 still ends the process (SIGILL). What is lost is speed in bfloat16 on a CPU;
    `ONEDNN_MAX_CPU_ISA=DEFAULT` gives it back where AMX works. Both libraries look at their variable at
    their first product: where torch was imported before us it may be too late, and `check_half_precision`
    asks. Worker processes inherit the variables, and have them before their torch.
    """
    global _amx_may_run
    if _announces_amx(cpuinfo):
        if any(_allows_amx(name, environment[name]) for name in WITHOUT_AMX if name in environment):
            _amx_may_run = True
            return
        missing = WITHOUT_AMX.keys() - environment.keys()
        _amx_may_run = bool(missing) and "torch" in sys.modules
        for name in missing:
            environment[name] = WITHOUT_AMX[name]


def _allows_amx(name: str, instructions: str) -> bool:
    """Whether a value of a variable does; one that its library does not know sets no limit."""
    return not _FORBIDS_AMX[name].fullmatch(instructions)


_FORBIDS_AMX = {
    "ONEDNN_MAX_CPU_ISA": re.compile(r"(SSE|AVX)(?!.*AMX).*", re.IGNORECASE),
    "MKL_ENABLE_INSTRUCTIONS": re.compile(r"SSE4_2|AVX|AVX2(_E1)?|AVX512(_E[123])?"),
}


def wait_asleep(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let the threads of a matrix product sleep while they wait for one another, unless the user said how.

    By default they wait by turning in circles. On a machine with other work the one that they wait for then
    does not get its turn: reading a bundled model on two busy cores took 2.3 times as long
    (`python -m benchmarks.activations busy`). OpenMP looks at the variable when torch loads it.
    """
    environment.setdefault(WAITING, "PASSIVE")


_amx_may_run = False
"""Whether torch may use the AMX unit that this processor announces"""


def check_half_precision(dtype: str) -> None:
    """Refuse a precision whose products would end the process on this machine.

    Where AMX is announced and may be used, another process tries it first.
    """
    if _amx_may_run and dtype not in ("float32", "float64") and not _amx_works():
        settings = " and ".join(f"{name}={value}" for name, value in WITHOUT_AMX.items())
        raise ModelError(
            f"Products in {dtype} end the process on this machine: its processor announces AMX, and the "
            f"system does not let it run. Set {settings} before Python starts, or import thinkalike before "
            "torch; or take dtype='float32'."
        )


PRODUCT = """
import torch
x = torch.ones(1, 1, 64, 64, dtype=torch.bfloat16)
x @ x  # oneDNN's
torch.nn.functional.scaled_dot_product_attention(x, x, x)  # where oneDNN may not use AMX: MKL's
"""


@functools.cache
def _amx_works() -> bool:
    """Whether a process lives through products in bfloat16 that are limited by the user alone."""
    import subprocess

    environment = {name: value for name, value in os.environ.items() if WITHOUT_AMX.get(name) != value}
    tried = subprocess.run([sys.executable, "-c", PRODUCT], env=environment, capture_output=True, check=False)
    return tried.returncode >= 0  # below 0: ended by a signal


def _announces_amx(cpuinfo: Path) -> bool:
    """Whether the first processor's flags name it; the file has a paragraph for each, and they are alike."""
    try:
        with cpuinfo.open(encoding="utf-8", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:  # not Linux
        return False
    return "amx_tile" in flags.split()


def available_memory(meminfo: Path = MEMINFO, groups: Path = CGROUP) -> int | None:
    """Bytes that this process may still take, of the system and of its group; None if that is not known.

    Examples
    --------
    >>> from thinkalike.machine import available_memory
    >>> found = available_memory()
    >>> found is None or found > 0
    True
    """
    left = [_number_after("MemAvailable:", meminfo, 1024)]
    most, used = _number_after("", groups / "memory.max"), _number_after("", groups / "memory.current")
    if most is not None and used is not None:
        left.append(max(most - used, 0))
    known = [number for number in left if number is not None]
    return min(known) if known else None


def _number_after(name: str, file: Path, unit: int = 1) -> int | None:
    """The whole number behind a name in a file of the system; None if there is none."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    found = next((line.removeprefix(name).split() for line in lines if line.startswith(name)), [])
    return unit * int(found[0]) if found and found[0].isdecimal() else None


def free_disk(place: str | Path) -> int | None:
    """Bytes that are free where `place` is, or will be; None for an address."""
    if "://" in str(place):
        return None
    folder = Path(place).absolute()
    while not folder.exists():
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def compiled(**options: Any) -> Callable[[Callable[..., object]], Any]:
    """`numba.njit` with `options`, whose machine code is kept in our cache directory.

    `NUMBA_CACHE_DIR` goes before it. Where neither can be written to, nothing is kept: Numba alone would
    write into the package's folder. Parallel loops leave the threads of torch as they are.
    """
    import numba

    settings: Any = numba.config

    def decorate(function: Callable[..., object]) -> object:
        made = njit(function)
        if not options.get("parallel"):
            return made

        @functools.wraps(function)
        def call(*arguments: object) -> object:
            _start_threads_of_loops()
            return made(*arguments)

        return call

    def njit(function: Callable[..., object]) -> Callable[..., object]:
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


@functools.cache
def _start_threads_of_loops() -> None:
    """Have Numba set up its threads from a thread that then ends.

    Numba tells OpenMP how many threads it wants, and OpenMP keeps that number for the thread that said so.
    Torch asks the same OpenMP: in the main thread, models would from then on run on Numba's number of
    threads, round otherwise than before, and otherwise than on workers.
    """
    import numba

    aside = threading.Thread(target=numba.get_num_threads)  # it sets them up before it counts them
    aside.start()
    aside.join()


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
