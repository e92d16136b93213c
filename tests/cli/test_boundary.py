"""The end of the command line: one line for every error, the right exit code, Ctrl-C at any moment."""

from __future__ import annotations

import errno
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from thinkalike.cli.boundary import run
from thinkalike.cli.failures import BY_CLASS, BY_NUMBER, told
from thinkalike.errors import InvalidInput

HOMES = {
    "pandas": "pandas.errors",
    "zarr": "zarr.errors",
    "pyarrow": "pyarrow.lib",
    "huggingface_hub": "huggingface_hub.errors",
    "botocore": "botocore.exceptions",
}
"""Where a package keeps its errors, if not at its root"""


def fails_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command fails so."""

    def fail(*args: object, **options: object) -> None:
        raise error

    monkeypatch.setattr("thinkalike.cli.commands.app", fail)


def test_python_m_thinkalike() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "thinkalike", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("thinkalike ")
    usage = subprocess.run([sys.executable, "-m", "thinkalike", "expalin"], capture_output=True, text=True)
    assert usage.returncode == 2
    assert usage.stderr.startswith("Usage: thinkalike ")


@pytest.mark.parametrize("number", BY_NUMBER)
def test_errors_of_the_system(number: int, monkeypatch, capsys) -> None:
    fails_with(OSError(number, os.strerror(number), "there/it"), monkeypatch)
    assert run(["demo"]) == 2
    line = capsys.readouterr().err
    assert line.startswith("error: ")
    assert "(there/it)" in line
    assert line.count("\n") == 1


def test_an_error_of_the_system_that_is_not_in_the_table() -> None:
    assert told(OSError(errno.EXDEV, "Cross-device link")) == (
        "error: The system refused: [Errno 18] Cross-device link.",
        2,
    )


@pytest.mark.parametrize("key", BY_CLASS)
def test_errors_of_libraries(key: str) -> None:
    package, name = key.split(".")
    if package in ("httpx", "httpx2"):  # the hub's client needs one of them, by its version
        known: type[BaseException] = type(name, (Exception,), {"__module__": package})
    else:
        known = getattr(importlib.import_module(HOMES.get(package, package)), name)
    error = known.__new__(known)
    error.args = ("what\nit says",)
    line, code = told(error)
    assert code == 2
    assert line.startswith("error: " + BY_CLASS[key].partition("{")[0])
    assert "\n" not in line


def test_a_subclass_is_found_by_its_parent() -> None:
    class Smaller(MemoryError):
        pass

    assert told(Smaller("3 GB"))[0].startswith("error: Memory ran out: ")


def test_our_own_errors_are_their_message() -> None:
    assert told(InvalidInput("Got 3: give 4.")) == ("error: Got 3: give 4.", 2)


def test_anything_else_is_a_bug(monkeypatch, capsys) -> None:
    fails_with(KeyError("features"), monkeypatch)
    assert run(["demo"]) == 70
    line = capsys.readouterr().err
    assert line.startswith("bug: KeyError: 'features'. This is not your mistake")
    assert "--debug" in line
    assert line.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--debug", "demo"], ["demo", "--debug"]])
def test_debug_shows_it_wherever_it_stands(arguments: list[str], monkeypatch) -> None:
    fails_with(KeyError("features"), monkeypatch)
    with pytest.raises(KeyError):
        run(arguments)


def test_debug_may_follow_a_command(capsys) -> None:
    with pytest.raises(InvalidInput, match=r"There is no file nothing\.csv"):
        run(["stimuli", "--check", "nothing.csv", "--debug"])


CTRL_C = "import os, signal, sys\ndef ctrl_c(*a, **b): os.kill(os.getpid(), signal.SIGINT)\n"
MAIN = "sys.argv = ['thinkalike', {arguments}]\nfrom thinkalike.cli import main\n"
MOMENTS = {
    "while an import runs": (
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == '{module}':\n"
        "            ctrl_c()\n"
        "sys.meta_path.insert(0, Finder())\n" + MAIN + "main()"
    ),
    "in the work": MAIN
    + "import thinkalike.stimuli\nthinkalike.stimuli.Stimuli.from_grammar = ctrl_c\nmain()",
    "swallowed and turned into another error": MAIN
    + "import thinkalike.stimuli\n"
    + "def work(*a, **b):\n"
    + "    try:\n        ctrl_c()\n"
    + "    except KeyboardInterrupt:\n        raise SystemError('returned a result with an exception set')\n"
    + "thinkalike.stimuli.Stimuli.from_grammar = work\nmain()",
    "again and again": MAIN
    + "import thinkalike.stimuli\n"
    + "def work(*a, **b):\n"
    + "    while True:\n        try:\n            ctrl_c()\n"
    + "        except KeyboardInterrupt:\n            pass\n"
    + "thinkalike.stimuli.Stimuli.from_grammar = work\nmain()",
    "while the interpreter shuts down": MAIN
    + "import atexit, thinkalike.cli.commands as commands\n"
    + "commands.app = lambda *a, **b: atexit.register(ctrl_c)\nmain()",
}


def test_at_the_very_end_ctrl_c_changes_nothing(tmp_path: Path) -> None:
    """The interpreter has taken its handlers away by then: the signal alone would end the process."""
    script = (
        f"{CTRL_C}import atexit\natexit.register(ctrl_c)\n" + MAIN.format(arguments="'models'") + "main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "nano-bert" in done.stdout


def interrupted(script: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CTRL_C + script], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stderr == "interrupted: what was finished is kept, and the same command resumes\n"
    assert done.returncode == 130


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_is_one_line(moment: str, tmp_path: Path) -> None:
    script = MOMENTS[moment].replace("{arguments}", "'stimuli', '-n', '5'").replace("{module}", "numpy")
    interrupted(script, tmp_path)


@pytest.mark.parametrize("module", ["typer", "pandas", "numba", "torch"])
def test_ctrl_c_during_heavy_imports(module: str, tmp_path: Path) -> None:
    arguments = "'compare', 'nano-bert', 'nano-gpt2', '--sentences', '20', '--resamples', '0'"
    script = MOMENTS["while an import runs"].replace("{arguments}", arguments).replace("{module}", module)
    interrupted(script, tmp_path)
