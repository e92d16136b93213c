"""`thinkalike stitch`: from two models and a text to tables and figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from thinkalike.errors import InvalidInput
from thinkalike.stitching import StitchResult

PARAGRAPHS = [f"Paragraph {k} says that the old woman sings of {k * 7} princes." for k in range(60)]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "corpus.txt"
    path.write_text("\n\n".join(PARAGRAPHS))
    return path


@pytest.fixture(scope="module")
def two(tiny_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two causal models with one tokenizer."""
    return [tiny_models["tiny-gpt2"], tiny_models["tiny-mamba"]]


def test_both_ways_with_tables_and_figures(
    run: Callable[..., Any], two: list[Path], text: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = run("stitch", *two, "--text", text, "--length", 32, "--both-ways", "--out", out)
    assert result.exit_code == 0
    there = out / "tiny-gpt2-to-tiny-mamba"
    table = pd.read_parquet(there / "stitching.parquet")
    assert set(table["role"]) == {"pair", "self", "untrained"}
    assert len(table) == 9
    assert (out / "tiny-mamba-to-tiny-gpt2" / "stitching.json").exists()
    differences = pd.read_csv(there / "asymmetry.csv")["difference"]
    assert len(differences) == 3
    more = "more" if differences.mean() > 0 else "less"
    assert f"costs {abs(differences.mean()):.3f} nats {more} than" in " ".join(result.stdout.split())
    assert (there / "penalty.png").read_bytes().startswith(b"\x89PNG")
    assert (there / "penalty.svg").read_text().startswith("<svg")
    assert "tiny-gpt2 → tiny-mamba: affine, least-squares" in result.stdout
    assert "paired over documents" in " ".join(result.stdout.split())
    assert "0 → 0" in result.stdout


def test_task_loss_of_chosen_pairs(
    run: Callable[..., Any], two: list[Path], text: Path, tmp_path: Path
) -> None:
    options = ["--fit", "task", "--steps", 10, "--optimizer", "adamw", "--batch-tokens", 128, "--no-ceiling"]
    layers = ["--layers", "1:1,1:2,0:2", "--kind", "orthogonal"]
    result = run("stitch", *two, "--text", text, "--length", 32, *options, *layers, "--out", tmp_path)
    assert result.exit_code == 0
    folder = tmp_path / "tiny-gpt2-to-tiny-mamba"
    found = StitchResult.load(folder)
    pairs = [tuple(stitch) for stitch in found.stitches[:3]]
    assert pairs == [("pair", 1, 1), ("pair", 1, 2), ("pair", 0, 2)]
    assert (found.kind, found.fit) == ("orthogonal", "task")
    assert "nan" not in result.stdout
    assert found.settings["task_fit"]["optimizer"] == "adamw"
    assert (folder / "curves.png").exists()
    assert not (folder / "unfinished.npz").exists()
    assert "mismatch of depth" in " ".join(result.stdout.split())


def test_a_model_with_itself(run: Callable[..., Any], two: list[Path], text: Path, tmp_path: Path) -> None:
    result = run(
        "stitch", two[0], two[0], "--text", text, "--kind", "identity", "--layers", "0,2", "--out", tmp_path
    )
    frame = StitchResult.load(tmp_path / "tiny-gpt2-to-tiny-gpt2").to_frame()
    assert list(frame["layer_top"]) == [0, 2]
    assert frame["penalty"].abs().max() < 1e-5
    assert result.exit_code == 0


def test_errors_are_errors(run: Callable[..., Any], two: list[Path], text: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"Layer '1\.h0' cannot be stitched.*ta\.similarity"):
        run("stitch", *two, "--text", text, "--layers", "1:1.h0", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(InvalidInput, match=r"--layers '0;2': write all, grid, numbers"):
        run("stitch", *two, "--text", text, "--layers", "0;2", "--out", tmp_path / "out")
    with pytest.raises(InvalidInput, match="write all, grid"):
        run("stitch", *two, "--text", text, "--layers", "0:1:2", "--out", tmp_path / "out")
    with pytest.raises(InvalidInput, match="There is no text at"):
        run("stitch", *two, "--text", tmp_path / "nothing.txt", "--out", tmp_path / "out")
    table = tmp_path / "table.csv"
    table.write_text("sentence,label\na,0\n")
    with pytest.raises(InvalidInput, match="has no column 'text', only sentence, label"):
        run("stitch", *two, "--text", table, "--out", tmp_path / "out")
    table.write_text("text,label\na,yes\n")
    with pytest.raises(InvalidInput, match="are not whole numbers"):
        run("stitch", *two, "--text", table, "--out", tmp_path / "out")
    table.write_text("text,second,label\na,b,0\n")
    with pytest.raises(InvalidInput, match="are for sequence classifiers"):
        run("stitch", *two, "--text", table, "--out", tmp_path / "out")
    with pytest.raises(InvalidInput, match="cannot be read as a table"):
        run("stitch", *two, "--text", tmp_path / "none.csv", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_into_a_run_all_three_views_are_in_its_report(
    run: Callable[..., Any], tiny_models: dict[str, Path], text: Path, tmp_path: Path
) -> None:
    two = [f"a={tiny_models['tiny-gpt2']}", f"b={tiny_models['tiny-mamba']}"]
    out = tmp_path / "run"
    run("compare", *two, "--sentences", 40, "--resamples", 0, "--out", out)
    options = ["--text", text, "--length", 32, "--no-ceiling", "--run", out]
    result = run("stitch", *two, *options)
    assert len(StitchResult.load(out / "stitching" / "a-to-b").to_frame()) == 9  # the whole grid
    page = (out / "index.html").read_text(encoding="utf-8")
    for view in ("features", "rsa", "function", "lines"):
        assert f'data-chart="view-0-{view}"' in page
    assert str(out / "index.html") in result.stdout.replace("\n", "")
    with pytest.raises(InvalidInput, match=r"tiny-mamba is not in the run .* which has a, b"):
        run("stitch", two[0], tiny_models["tiny-mamba"], *options)
