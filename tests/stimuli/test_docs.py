"""What `docs/stimuli.md` says is done here: files are written, code and commands run."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from thinkalike.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "stimuli.md"
SAMPLE = Path(__file__).parent / "data" / "sample.conllu"


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(SAMPLE, tmp_path)
    names: dict[str, object] = {}
    ran = {"files": 0, "python": 0, "commands": 0}
    for language, block in re.findall(
        r"^```(\w+)\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    ):
        file = re.match(r"# file: (\S+)\n", block)
        if file:
            (tmp_path / file[1]).write_text(block[file.end() :], encoding="utf-8")
            ran["files"] += 1
        elif language == "python":
            exec(compile(block, str(PAGE), "exec"), names)
            ran["python"] += 1
        elif language == "sh":
            for line in block.strip().split("\n"):
                program, *arguments = shlex.split(line)
                assert program == "thinkalike"
                result = CliRunner().invoke(app, arguments, catch_exceptions=False)
                assert result.exit_code == 0, line
                ran["commands"] += 1
    assert ran == {"files": 3, "python": 8, "commands": 5}
