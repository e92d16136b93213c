"""On a machine that announces AMX and forbids it nothing dies: bfloat16 works, or is refused in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.amx.machine import Machine, amx_announced, why_not
from thinkalike.machine import WITHOUT_AMX

pytestmark = pytest.mark.hostile

ISA, MKL = WITHOUT_AMX

PRODUCTS = """
import torch
x = torch.ones(1, 1, 64, 64, dtype=torch.bfloat16)
def product(): assert (x @ x)[0, 0, 0, 0] == 64
def attention(): assert (torch.nn.functional.scaled_dot_product_attention(x, x, x) == 1).all()
"""
IN_FORKS = """
import os
def end_of(function, **variables):
    process = os.fork()
    if process == 0:
        os.environ.update(variables)
        function()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
for function in product, attention:
    print(end_of(function), end_of(function, ONEDNN_MAX_CPU_ISA="AVX512_CORE_BF16"))
"""
EVERYWHERE = """
import subprocess, sys
import thinkalike
from thinkalike.parallel import Processes
products = sys.argv[1] + "product(); attention()"
exec(products)
subprocess.run([sys.executable, "-c", products], check=True)
pool = Processes(1)
pool.submit(exec, products, {}).result()
pool.close()
"""
EXTRACT = """
import sys
sys.argv = ["thinkalike", *"extract nano-gelu-3l --stimuli words.csv --out out --dtype bfloat16".split()]
from thinkalike.cli.boundary import main
main()
"""


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with amx_announced() as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "words.csv").write_text("text,x\nthe king sleeps,a\nthe queens sleep,b\n")
    return tmp_path


def run(machine: Machine, code: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in WITHOUT_AMX}
    return subprocess.run(
        machine.command([sys.executable, "-c", code, PRODUCTS]),
        env=environment | {"THINKALIKE_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"} | variables,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_us_products_in_bfloat16_die(machine: Machine, folder: Path) -> None:
    """By the signal by which a processor says that it does not know an instruction; so the machine is what it
    says. Where oneDNN is kept off AMX its products work, and MKL's, in attention, die."""
    died, lived = -signal.SIGILL, 0
    done = run(machine, PRODUCTS + IN_FORKS, folder)
    assert done.stdout.split() == [str(code) for code in (died, lived, died, died)], done.stderr


def test_with_us_they_work_here_in_workers_and_in_other_processes(machine: Machine, folder: Path) -> None:
    done = run(machine, EVERYWHERE, folder)
    assert done.returncode == 0, done.stderr


def test_a_command_in_bfloat16_works(machine: Machine, folder: Path) -> None:
    done = run(machine, EXTRACT, folder)
    assert done.returncode == 0, done.stderr
    assert "2 items" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("before", "variables"),
    [("import torch", {}), ("", {ISA: "DEFAULT"}), ("", {ISA: "AVX512_CORE_BF16", MKL: "AVX512_E4"})],
    ids=str,
)
def test_it_is_refused_in_one_line_where_amx_may_run(
    before: str, variables: dict[str, str], machine: Machine, folder: Path
) -> None:
    """Torch was imported first, or the user has allowed AMX."""
    done = run(machine, before + EXTRACT, folder, **variables)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: Products in bfloat16 end the process on this machine")
    assert done.stderr.count("\n") == 1
