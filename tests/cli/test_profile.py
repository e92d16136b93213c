"""`thinkalike profile`: one model, layer by layer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from thinkalike.cli import app
from thinkalike.comparison import Profile


def test_a_profile_is_shown_written_and_drawn(
    tiny_models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THINKALIKE_CACHE", str(tmp_path / "cache"))
    out, figure = tmp_path / "bert", tmp_path / "bert.svg"
    arguments = ["profile", str(tiny_models["tiny-bert"]), "--sentences", "40", "--resamples", "3"]
    result = CliRunner().invoke(
        app, [*arguments, "--out", str(out), "--figure", str(figure)], catch_exceptions=False
    )
    assert "tiny-bert: what its layers are organised by" in result.stdout
    assert " to " in result.stdout  # the interval of ρ
    assert "· 3 resamples are few for a range of 95 %" in result.stdout
    made = Profile.load(out)
    assert made.system == "tiny-bert"
    assert made.layers == (0, 1, 2)
    assert made.replicates is not None
    top = made.features[int(made.mean_importance[0].argmax())].replace("_", " ")
    assert top in result.stdout
    assert figure.read_text(encoding="utf-8").startswith("<svg")
    again = CliRunner().invoke(app, [*arguments, "--out", str(out)], catch_exceptions=False)
    assert "· 3 resamples are few for a range of 95 %" in again.stdout


def test_what_was_extracted_once_is_profiled_with_some_of_the_features(
    tmp_path: Path, tiny_models: dict[str, Path], run: Callable[..., Any]
) -> None:
    words, store = str(tmp_path / "words.csv"), str(tmp_path / "store")
    assert run("stimuli", "-n", "12", "--out", words).exit_code == 0
    assert run("extract", str(tiny_models["tiny-gpt2"]), "--stimuli", words, "--out", store).exit_code == 0
    done = run("profile", store, "--stimuli", words, "--features", "number,word_position", "--resamples", "0")
    assert done.exit_code == 0, done.output
    assert "tense" not in done.output
