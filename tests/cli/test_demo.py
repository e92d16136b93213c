"""`thinkalike demo`: the bundled models, or what to do without them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from thinkalike.cli import app, demo
from thinkalike.comparison import Comparison
from thinkalike.errors import ModelError


def test_the_demo_compares_its_models(
    tiny_models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With tiny models in place of the bundled ones."""
    names = tuple(str(folder) for folder in tiny_models.values())
    monkeypatch.setattr(demo, "MODELS", names)
    monkeypatch.setattr("thinkalike.systems.bundled.names", lambda: names)
    arguments = ["demo", "--out", str(tmp_path / "demo"), "--sentences", "40", "--resamples", "3"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    first, *_ = result.stderr.splitlines()
    assert re.fullmatch(
        r"Comparing .* on \d+ words of 40 sentences, offline: under 3 minutes on two cores\.", first
    )
    assert "Report:" in result.stdout
    words = re.search(r"on (\d+) words", first)
    assert words is not None
    log = (tmp_path / "demo" / "log.txt").read_text(encoding="utf-8")
    assert f"(and 10 untrained copies of each) × {words[1]} items: " in log  # the same figures
    made = Comparison.load(tmp_path / "demo")
    assert made.systems == names
    assert made.controls is not None
    assert (tmp_path / "demo" / "index.html").exists()


def test_a_missing_model_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("thinkalike.systems.bundled.names", lambda: ("nano-bert",))
    with pytest.raises(ModelError, match="The bundled model nano-gpt2 is not in this installation"):
        CliRunner().invoke(app, ["demo", "--out", str(tmp_path)], catch_exceptions=False)


def test_the_three_of_the_paper() -> None:
    assert demo.MODELS == ("nano-bert", "nano-gpt2", "nano-mamba")
