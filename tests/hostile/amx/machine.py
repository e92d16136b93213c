"""A machine whose processor announces AMX and does not let it run, made of one that has no AMX.

Some hypervisors make such machines. Nothing is pretended to our own code: torch's library asks, is told what
such a processor says, makes code for its matrix unit, and runs it on a processor that has none. For that
(1) the instructions by which the library asks the processor are breakpoints in a copy of it; `announce.c`,
loaded before, answers them, and says yes where the system is asked for permission;
(2) /proc/cpuinfo names the flags.
Both are mounted over the real ones, in a namespace of mounts that ends with the command.
"""

from __future__ import annotations

import bisect
import contextlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from thinkalike.machine import CPUINFO

SOURCE = Path(__file__).with_name("announce.c")
ASKING = {"cpuid": b"\x0f\xa2", "xgetbv": b"\x0f\x01\xd0"}
BREAKPOINT = b"\xcc"
NOP = b"\x90"
ANNOUNCED = "amx_bf16 amx_tile amx_int8 avx512_fp16 avx_vnni"
NEEDED = "avx512_bf16"
"""What remains to be used where AMX is not: without it the machine would be another one"""


@dataclass(frozen=True)
class Machine:
    """Files that stand for real ones, and a library that is loaded before any other."""

    mounts: dict[Path, Path]
    preload: Path

    def command(self, command: Sequence[str | Path]) -> list[str]:
        """A command, to be run on this machine."""
        steps = [["mount", "--bind", made, real] for made, real in self.mounts.items()]
        steps.append(["exec", "env", f"LD_PRELOAD={self.preload}", *command])
        return [*NAMESPACE, "sh", "-ec", "\n".join(shlex.join(map(str, step)) for step in steps)]


NAMESPACE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
"""Where the mounts of a command are its own; who is not root may be in one as root"""


def why_not() -> str | None:
    """Why this machine cannot be made into one; None if it can be."""
    flags = CPUINFO.read_text().split() if CPUINFO.exists() else []
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return "not Linux on x86-64"
    if "amx_tile" in flags:
        return "this processor has AMX"
    if NEEDED not in flags:
        return f"this processor has no {NEEDED}"
    missing = [tool for tool in ("cc", "nm", "objdump", "unshare", "mount") if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    mounted = [*NAMESPACE, "mount", "--bind", "/dev/null", str(CPUINFO)]
    if subprocess.run(mounted, capture_output=True, check=False).returncode:
        return "no mounts in a namespace of our own: neither root, nor allowed to be one there"
    return None


@contextlib.contextmanager
def amx_announced() -> Iterator[Machine]:
    """Make the machine; half a gigabyte in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="amx-") as folder:
        yield _make(Path(folder))


def _make(folder: Path) -> Machine:
    preload = folder / "announce.so"
    subprocess.run(
        ["cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", preload, SOURCE, "-ldl"], check=True
    )
    cpuinfo = folder / "cpuinfo"
    cpuinfo.write_text(re.sub(r"(?m)^flags.*", rf"\g<0> {ANNOUNCED}", CPUINFO.read_text()))
    mounts = {cpuinfo: CPUINFO}
    for library in _torch_libraries():
        copy = folder / library.name
        _let_it_ask(library, copy)
        mounts[copy] = library
    return Machine(mounts, preload)


def _torch_libraries() -> list[Path]:
    found = importlib.util.find_spec("torch")
    assert found is not None
    assert found.origin is not None
    return [Path(found.origin).parent / "lib" / name for name in ("libtorch_cpu.so", "libc10.so")]


def _let_it_ask(library: Path, copy: Path) -> None:
    """Copy a library; what asked the processor in it is a breakpoint."""
    places = asking(library)
    assert places, f"{library} has no symbols that say where it asks the processor"
    shutil.copyfile(library, copy)
    with copy.open("r+b") as file:
        for place in places:
            file.seek(place)
            file.write(BREAKPOINT)


def asking(library: Path) -> list[int]:
    """Where in a library's file instructions ask the processor.

    Their bytes also occur within other instructions and in data, so every function that holds them is
    disassembled from its beginning. Code lies in these files where it lies in memory.
    """
    text = library.read_bytes()
    functions = _functions(library)
    starts = [start for start, _ in functions]
    held: dict[int, tuple[int, int]] = {}
    for code in ASKING.values():
        for match in re.finditer(re.escape(code), text):
            place = bisect.bisect(starts, match.start()) - 1
            if place >= 0 and match.start() < functions[place][1]:
                held[place] = functions[place]
    return sorted(_disassembled(text, list(held.values())))


def _functions(library: Path) -> list[tuple[int, int]]:
    """Where each begins and ends."""
    named = subprocess.run(
        ["nm", "--defined-only", "--print-size", "--numeric-sort", library],
        check=True,
        capture_output=True,
        text=True,
    )
    rows = (line.split(maxsplit=3) for line in named.stdout.splitlines())
    return [
        (int(row[0], 16), int(row[0], 16) + int(row[1], 16))
        for row in rows
        if len(row) == 4 and row[2] in "tTwWi"
    ]


def _disassembled(text: bytes, functions: list[tuple[int, int]]) -> Iterator[int]:
    """Where instructions in some functions ask the processor; all functions in one listing."""
    pieces, shifts, length = [], [], 0
    for start, end in functions:
        shifts.append((length, start - length))
        pieces.append(text[start:end] + 32 * NOP)
        length += len(pieces[-1])
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(pieces))
        file.flush()
        listed = subprocess.run(
            ["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", file.name],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    begins = [begin for begin, _ in shifts]
    for line in listed.splitlines():
        columns = line.split("\t")
        if len(columns) == 3 and columns[2].strip() in ASKING:
            at = int(columns[0].strip(" :"), 16)
            yield at + shifts[bisect.bisect(begins, at) - 1][1]
