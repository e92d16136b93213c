"""Machines that announce what they cannot do, and where compiled loops are kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import thinkalike
from thinkalike import machine
from thinkalike.errors import ModelError
from thinkalike.machine import (
    WAITING,
    WITHOUT_AMX,
    available_memory,
    free_disk,
    keep_off_amx,
    kernels_directory,
)
from thinkalike.systems.system import LoadOptions, open_system

ISA, MKL = WITHOUT_AMX
FLAGS = "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu vme avx512_bf16 {} xsave\n"


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests say of the processor is forgotten afterwards."""
    monkeypatch.setattr(machine, "_amx_may_run", False)


def environment_on(tmp_path: Path, flag: str, **before: str) -> dict[str, str]:
    (tmp_path / "cpuinfo").write_text(FLAGS.format(flag))
    environment = dict(before)
    keep_off_amx(environment, tmp_path / "cpuinfo")
    return environment


def test_amx_is_left_alone_where_it_is_announced(tmp_path: Path) -> None:
    assert environment_on(tmp_path, "amx_bf16 amx_tile amx_int8") == {
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512_E3",
    }


def test_nothing_changes_where_it_is_not_announced(tmp_path: Path) -> None:
    assert environment_on(tmp_path, "avx512_fp16") == {}
    environment: dict[str, str] = {}
    keep_off_amx(environment, tmp_path / "no such file")
    assert environment == {}


@pytest.mark.parametrize(
    "given",
    [
        {ISA: "DEFAULT"},
        {ISA: "avx512_core_amx"},
        {MKL: "AVX512_E4"},
        {ISA: "AVX2", MKL: "avx2"},
    ],  # MKL: capitals
    ids=str,
)
def test_the_user_decides(given: dict[str, str], tmp_path: Path) -> None:
    assert environment_on(tmp_path, "amx_tile", **given) == given


@pytest.mark.parametrize("given", [{ISA: "avx2"}, {MKL: "AVX2"}, {ISA: "SSE41", MKL: "AVX512_E2"}], ids=str)
def test_a_user_who_limits_one_library_does_not_free_the_other(given: dict[str, str], tmp_path: Path) -> None:
    assert environment_on(tmp_path, "amx_tile", **given) == {**WITHOUT_AMX, **given}


def threads_wait(**before: str) -> str:
    """How OpenMP says that its threads wait, in a process that imports us and then torch."""
    environment = {k: v for k, v in os.environ.items() if k != WAITING}
    done = subprocess.run(
        [sys.executable, "-c", "import thinkalike, torch"],
        env=environment | {"OMP_DISPLAY_ENV": "TRUE"} | before,
        capture_output=True,
        text=True,
        check=True,
    )
    said = [line for line in done.stderr.splitlines() if WAITING in line]
    if not said:
        pytest.skip("this OpenMP does not say how its threads wait")
    return said[0].split("'")[1]


def test_threads_wait_asleep_unless_the_user_says_otherwise() -> None:
    assert threads_wait() == "PASSIVE"
    assert threads_wait(**{WAITING: "ACTIVE"}) == "ACTIVE"


PRODUCT = """
import os, pathlib, sys
import torch
from thinkalike import machine
# below AVX-512, so that any recent processor shows that it obeys
machine.WITHOUT_AMX = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
os.environ.pop("ONEDNN_MAX_CPU_ISA", None)  # set by the import where AMX is announced indeed
machine.keep_off_amx(os.environ, pathlib.Path(sys.argv[1]))
x = torch.ones(64, 64, dtype=torch.bfloat16)
assert (x @ x)[0, 0] == 64
"""


def test_onednn_obeys_also_when_torch_was_imported_first(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(FLAGS.format("amx_tile"))
    done = subprocess.run(
        [sys.executable, "-c", PRODUCT, tmp_path / "cpuinfo"],
        env={k: v for k, v in os.environ.items() if k not in WITHOUT_AMX} | {"ONEDNN_VERBOSE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "AVX-512" not in done.stdout
    assert "AMX" not in done.stdout


KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"


class TestWhereOneDNNMayHaveDecidedBefore:
    """torch was imported before thinkalike, as in this process: another one tries the product."""

    @pytest.fixture(autouse=True)
    def _tried_anew(self) -> Iterator[None]:
        assert "torch" in sys.modules
        tried = machine._amx_works
        tried.cache_clear()
        yield
        tried.cache_clear()

    @pytest.mark.parametrize("before", [{}, {ISA: "DEFAULT"}, {ISA: "avx512_core_amx"}], ids=str)
    def test_a_model_in_half_precision_is_refused_where_the_product_kills(
        self, before: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(machine, "PRODUCT", KILLED)
        environment_on(tmp_path, "amx_tile", **before)
        with pytest.raises(
            ModelError, match=r"bfloat16 end the process .*AMX.* import thinkalike before torch"
        ):
            open_system("nano-gelu-3l", LoadOptions(dtype="bfloat16", device="cpu"))
        open_system("nano-gelu-3l", LoadOptions(dtype="float32", device="cpu"))

    def test_it_is_taken_where_the_product_works(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(machine, "PRODUCT", f"import os; assert not {set(WITHOUT_AMX)} & set(os.environ)")
        environment_on(tmp_path, "amx_tile")
        open_system("nano-gelu-3l", LoadOptions(dtype="bfloat16", device="cpu"))

    @pytest.mark.parametrize("before", [{}, WITHOUT_AMX, {ISA: "AVX2", MKL: "AVX2"}], ids=str)
    def test_nothing_is_tried_where_it_is_not_needed(
        self, before: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(machine, "_amx_works", lambda: pytest.fail("another process was started"))
        environment_on(tmp_path, "amx_tile" if before else "avx512_bf16", **before)
        open_system("nano-gelu-3l", LoadOptions(dtype="bfloat16", device="cpu"))


WAYS_IN = {
    "import thinkalike": "import thinkalike as ta; ta.extract",
    "from a module of it": "from thinkalike.activations.extraction_run import run_extraction",
    "python -m thinkalike": "import runpy; runpy.run_module('thinkalike', run_name='__main__')",
    "a worker": """
from thinkalike.parallel import Processes
pool = Processes(1)
print("torch finds", *(pool.submit(os.getenv, name).result() for name in limits))
pool.close()
""",
}
ANNOUNCED = """
import io, os, pathlib, sys
sys.argv = ["thinkalike", "extract", "nano-gelu-3l", "--stimuli", "words.csv"]
opened = pathlib.Path.open
flags = "flags : fpu amx_tile\\n"
limits = ["ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS"]
def open_other(self, *a, **k):
    return io.StringIO(flags) if str(self) == "/proc/cpuinfo" else opened(self, *a, **k)
pathlib.Path.open = open_other
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print("torch finds", *(os.environ.get(name) for name in limits), flush=True)
            if os.environ.get("ENDS"):
                os._exit(0)
sys.meta_path.insert(0, Watch())
"""


@pytest.mark.parametrize("way", WAYS_IN)
def test_the_variables_are_set_before_torch_is_loaded(way: str, tmp_path: Path) -> None:
    (tmp_path / "words.csv").write_text("text,x\nthe king sleeps,a\nthe queens sleep,b\n")
    environment = {k: v for k, v in os.environ.items() if k not in WITHOUT_AMX} | {
        "ENDS": "" if way == "a worker" else "1"
    }
    done = subprocess.run(
        [sys.executable, "-c", ANNOUNCED + WAYS_IN[way]],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "torch finds AVX512_CORE_BF16 AVX512_E3" in done.stdout, done.stderr
    assert "torch finds None" not in done.stdout


UNSET = ("NUMBA_CACHE_DIR", "THINKALIKE_CACHE", "XDG_CACHE_HOME", "PYTHONPATH")
KERNEL = """
from thinkalike.pairs.kernels import condensed_pairs
assert condensed_pairs(3)[0].tolist() == [0, 0, 1]
"""


def compiled_files(tmp_path: Path, **variables: str) -> list[Path]:
    """Run a kernel of ours in a process whose package folder is a copy, and list what Numba has kept."""
    package = Path(thinkalike.__file__).parent
    if not (tmp_path / "src").exists():
        shutil.copytree(
            package, tmp_path / "src" / "thinkalike", ignore=shutil.ignore_patterns("__pycache__", "weights")
        )
    environment = {k: v for k, v in os.environ.items() if k not in UNSET}
    environment |= {"PYTHONPATH": str(tmp_path / "src"), "HOME": str(tmp_path / "home"), **variables}
    subprocess.run([sys.executable, "-c", KERNEL], env=environment, check=True, cwd=tmp_path)
    return sorted(tmp_path.rglob("*.nbi"))


def test_compiled_loops_lie_in_the_users_cache(tmp_path: Path) -> None:
    home = tmp_path / "home" / ".cache" / "thinkalike" / "numba"
    assert all(path.is_relative_to(home) for path in compiled_files(tmp_path))
    assert len(compiled_files(tmp_path)) > 0


@pytest.mark.parametrize("variable", ["THINKALIKE_CACHE", "NUMBA_CACHE_DIR"])
def test_compiled_loops_lie_where_the_user_says(tmp_path: Path, variable: str) -> None:
    kept = compiled_files(tmp_path, **{variable: str(tmp_path / "mine")})
    assert kept
    assert all(path.is_relative_to(tmp_path / "mine") for path in kept)


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert compiled_files(tmp_path, THINKALIKE_CACHE=str(tmp_path / "file" / "x")) == []


def test_compiled_loops_stay_here_when_the_cache_is_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKALIKE_CACHE", "s3://bucket/cache")
    assert kernels_directory() == str(Path.home() / ".cache" / "thinkalike" / "numba")


def test_memory_is_what_the_system_and_the_group_leave(tmp_path: Path) -> None:
    info = tmp_path / "meminfo"
    info.write_text("MemTotal: 9000 kB\nMemAvailable:   500 kB\n")
    assert available_memory(info, tmp_path) == 500 * 1024
    (tmp_path / "memory.max").write_text("300000\n")
    (tmp_path / "memory.current").write_text("100000\n")
    assert available_memory(info, tmp_path) == 200000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory(info, tmp_path) == 500 * 1024
    assert available_memory(tmp_path / "none", tmp_path / "none") is None


def test_disk_is_asked_for_where_a_new_folder_would_be(tmp_path: Path) -> None:
    assert free_disk(tmp_path / "not" / "there") == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.1)
    assert free_disk("s3://lab/run") is None


THREADS = """
import numpy as np
import torch
from thinkalike.inference.weighted_tau import relabelled_taus

before = torch.get_num_threads()
tied = np.array([[1.0, 1.0, 2.0], [3.0, 1.0, 1.0]])
list(relabelled_taus(tied, tied, np.array([[0, 1, 2], [2, 1, 0]])))
import numba
print(before, torch.get_num_threads(), numba.get_num_threads())
"""


def test_compiled_loops_leave_the_threads_of_torch_as_they_are() -> None:
    """Numba and torch share one OpenMP: models would be read on other threads after the first such loop."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", THREADS], env=environment, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["1", "1", "2"]
