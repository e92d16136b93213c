"""`thinkalike cka`: from models and a text to tables and figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from thinkalike.errors import InvalidInput

PARAGRAPHS = [f"Paragraph {k} says that the old woman sings of {k * 7} princes." for k in range(30)]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "corpus.txt"
    path.write_text("\n\n".join(PARAGRAPHS))
    return path


def test_tables_settings_and_figures_are_written(
    run: Callable[..., Any], tiny_models: dict[str, Path], text: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    models = [tiny_models["tiny-bert"], f"decoder={tiny_models['tiny-gpt2']}"]
    result = run("cka", *models, "--text", text, "--length", 32, "--precision", 0.2, "--out", out)
    assert result.exit_code == 0
    table = pd.read_parquet(out / "cka.parquet")
    assert len(table) == 36
    assert table["value"].between(-1, 1 + 1e-9).all()
    about = json.loads((out / "settings.json").read_text())
    assert about["systems"] == ["tiny-bert", "decoder"]
    assert about["stopped"] == "precision"
    assert about["settings"]["precision"] == 0.2
    for name in ("cka.png", "convergence.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")
    assert (out / "cka.svg").read_text().startswith("<svg")
    assert not (out / "unfinished.npz").exists()
    assert "tiny-bert, decoder" in result.stdout
    assert "tokens in" in result.stdout
    assert "as precise as asked" in result.stdout
    assert str(out) in result.stdout.replace("\n", "")


def test_mixed_words_of_one_model(
    run: Callable[..., Any], tiny_models: dict[str, Path], text: Path, tmp_path: Path
) -> None:
    options = ["--level", "word", "--batch", "tokens", "--batch-size", 50, "--max-batches", 3]
    result = run("cka", tiny_models["tiny-gpt2"], "--text", text, *options, "--out", tmp_path / "out")
    assert "words in 3 batches" in result.stdout
    assert "all batches done" in result.stdout
    assert json.loads((tmp_path / "out" / "settings.json").read_text())["settings"]["level"] == "word"


def test_cautions_are_printed(run: Callable[..., Any], tiny_models: dict[str, Path], tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("One paragraph alone, but of some length, for tiny models to read.")
    result = run("cka", tiny_models["tiny-gpt2"], "--text", short, "--length", 16, "--out", tmp_path / "out")
    assert "too few for a jackknife" in " ".join(result.stdout.split())


def test_errors_are_errors(run: Callable[..., Any], tiny_models: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is no text at"):
        run("cka", tiny_models["tiny-gpt2"], "--text", tmp_path / "nothing.txt", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
