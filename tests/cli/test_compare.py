"""`thinkalike compare` on tiny random models: from folders to an answer, re-used and extended."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr, weightedtau

from thinkalike.activations import Activations
from thinkalike.cli.named import default_folder, parse_systems
from thinkalike.comparison import Comparison
from thinkalike.errors import InvalidInput, StoreError
from thinkalike.files import file_name

Run = Callable[..., Any]
OPTIONS = ("--sentences", "40", "--resamples", "3")


@pytest.fixture(autouse=True)
def no_cache_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("THINKALIKE_CACHE", str(tmp_path / "cache"))


def test_the_closing_words(finished: tuple[Path, str]) -> None:
    out, printed = finished
    made = Comparison.load(out)
    words = " ".join(printed.split())
    for sentence in made.answer:
        assert sentence in words
    assert "tiny-bert, decoder" in printed
    assert "To keep in mind:" in printed
    assert printed.strip().endswith(f"Report: {out / 'index.html'}")
    assert (out / "index.html").read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")


def test_untrained_copies_are_run_beside(finished: tuple[Path, str]) -> None:
    made = Comparison.load(finished[0])
    assert made.controls is not None
    copies = made.controls.profiles
    assert [p.system for p in copies["tiny-bert"]][:2] == ["tiny-bert:untrained", "tiny-bert:untrained:2"]
    assert len(copies["decoder"]) == 10
    assert (copies["decoder"][0].scores != copies["decoder"][1].scores).any()  # other weights
    block = made.matrices["features"].block_test("tiny-bert", "decoder")
    assert block is not None
    assert block.control == pytest.approx(made.controls.similarity.block_mean("tiny-bert", "decoder"))
    means = [
        np.mean([weightedtau(x, y).statistic for x in one.mean_importance for y in other.mean_importance])
        for one, other in zip(copies["tiny-bert"], copies["decoder"], strict=True)
    ]
    assert block.control == pytest.approx(np.mean(means))
    assert block.control_share == np.mean(np.array(means) >= block.mean)


def test_matrices_of_untrained_copies_stand_beside_those_of_the_trained(finished: tuple[Path, str]) -> None:
    """By hand from the vectors of the copies: RSA, τ_w, and how alike the two order the layers."""
    made = Comparison.load(finished[0])
    assert made.controls is not None
    assert made.controls.geometry is not None
    rhos, drawn = [], []
    for copies in zip(*made.controls.profiles.values(), strict=True):
        folders = [finished[0] / "systems" / file_name(one.system) for one in copies]
        stores = [Activations.open(folder / "activations.zarr") for folder in folders]
        rsa = spearmanr(np.stack([pdist(s[k]) for s in stores for k in s.layers], axis=1)).statistic
        importance = np.concatenate([one.mean_importance for one in copies])
        tau = np.array([[weightedtau(x, y).statistic for y in importance] for x in importance])
        upper = np.triu_indices(len(tau), k=1)
        rhos.append(spearmanr(tau[upper], rsa[upper]).statistic)
        drawn.append(rsa)
    np.testing.assert_allclose(made.controls.geometry.values, np.mean(drawn, axis=0), atol=0.005)  # a sample
    (found,) = made.agreements
    assert found.untrained == pytest.approx(np.mean(rhos), abs=0.05)  # few layers: one step is 0.02
    assert found.untrained_share == pytest.approx(np.mean(np.array(rhos) >= found.rho), abs=0.2)
    test = made.matrices["rsa"].geometry_test("tiny-bert", "decoder")
    assert test is not None
    first = len(made.profiles["tiny-bert"].layers)
    means = np.array([rsa[:first, first:].mean() for rsa in drawn])
    assert test.control == pytest.approx(means.mean(), abs=0.005)
    assert test.control_share == pytest.approx((means >= test.mean).mean(), abs=0.1)
    assert test.control == pytest.approx(made.controls.geometry.block_mean("tiny-bert", "decoder"))


def test_a_third_model_and_another_measure_extend_the_run(
    finished: tuple[Path, str],
    tiny_models: dict[str, Path],
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    from thinkalike.activations import extraction_run
    from thinkalike.comparison import layerpass

    extracted: list[str] = []
    profiled: list[str] = []

    def note(names: list[str], original: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
        def noting(*args: Any, **options: Any) -> Any:
            names.append(name(*args, **options))
            return original(*args, **options)

        return noting

    noted = note(extracted, extraction_run.run, lambda *a, **o: o["system"])
    monkeypatch.setattr(extraction_run, "run", noted)
    monkeypatch.setattr(
        layerpass,
        "collect_profile",
        note(profiled, layerpass.collect_profile, lambda one, *a, **o: one.system),
    )
    out = Path(shutil.copytree(finished[0], tmp_path / "run"))  # other tests look at the run of two
    three = [tiny_models["tiny-bert"], f"decoder={tiny_models['tiny-gpt2']}", tiny_models["tiny-mamba"]]
    result = run("compare", *three, *OPTIONS, "--measure", "cka", "--out", out, "--no-report")
    assert extracted == profiled == ["tiny-mamba"]
    assert "Report" not in result.stdout
    made = Comparison.load(out)
    assert made.systems == ("tiny-bert", "decoder", "tiny-mamba")
    assert list(made.matrices) == ["features", "rsa", "cka"]


def test_one_model_and_other_runs_are_refused(
    finished: tuple[Path, str], tiny_models: dict[str, Path], run: Run, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="Got only tiny-bert: a comparison needs two systems or more"):
        run("compare", tiny_models["tiny-bert"], "--out", tmp_path / "one", *OPTIONS)
    assert not (tmp_path / "one").exists()
    two = tiny_models["tiny-bert"], tiny_models["tiny-gpt2"]
    with pytest.raises(StoreError, match="holds another run"):
        run("compare", *two, "--sentences", "41", "--resamples", "3", "--out", finished[0])


def test_a_table_of_stimuli_and_the_preset_of_the_paper(
    tiny_models: dict[str, Path], run: Run, tmp_path: Path
) -> None:
    run("stimuli", "--sentences", "30", "--out", tmp_path / "words.csv")
    two = tiny_models["tiny-bert"], tiny_models["tiny-gpt2"]
    shown = ("--stimuli", tmp_path / "words.csv")
    run("compare", *two, *shown, "--preset", "salle2024", "--out", tmp_path / "run", "--no-report")
    made = Comparison.load(tmp_path / "run")
    assert made.settings["preset"] == "salle2024"
    assert made.profiles["tiny-bert"].replicates is None
    assert made.matrices["features"].low is None


def test_names_of_models(tmp_path: Path) -> None:
    (tmp_path / "bert").mkdir()
    named = parse_systems(["gpt2", "org/model@step1", str(tmp_path / "bert"), "mine=org/other"])
    assert named == {
        "gpt2": "gpt2",
        "org/model@step1": "org/model@step1",
        "bert": str(tmp_path / "bert"),
        "mine": "org/other",
    }
    assert default_folder({"gpt2": "gpt2", "org/model": "org/model"}) == Path("runs/gpt2_org-model")
    with pytest.raises(InvalidInput, match="gpt2 comes twice: give one of them another name with NAME=MODEL"):
        parse_systems(["gpt2", "gpt2"])
    with pytest.raises(InvalidInput, match="'x=' names no model"):
        parse_systems(["x="])


@pytest.mark.parametrize("command", ["compare", "profile", "extract"])
def test_a_dry_run_says_what_it_takes_and_writes_nothing(
    command: str, tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from thinkalike.stimuli import Stimuli

    monkeypatch.chdir(tmp_path)
    Stimuli.from_grammar(10, seed=0).save(tmp_path / "words.parquet")
    models = ["nano-gelu-3l", "nano-solu-3l"] if command == "compare" else ["nano-gelu-3l"]
    done = run(
        command, *models, "--stimuli", tmp_path / "words.parquet", "--out", tmp_path / "x", "--dry-run"
    )
    assert "reading models" in done.stdout
    assert "of memory" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["words.parquet"]
