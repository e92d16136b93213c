"""`thinkalike group` and `thinkalike outputs`: the same numbers as in Python, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr

import thinkalike as ta
from thinkalike.cli.boundary import run
from thinkalike.comparison import profile_group

RNG = np.random.default_rng(0)
SHARED = RNG.normal(size=(24, 4))
PEOPLE = SHARED @ RNG.normal(size=(6, 4, 9)) + RNG.normal(size=(6, 24, 9))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("people.npy", PEOPLE)
    np.savez("late.npz", late=SHARED)
    for k, one in enumerate(PEOPLE):
        np.save(f"s{k}.npy", one)
    table = pd.DataFrame({"size": np.where(SHARED[:, 0] > 0, "large", "small"), "hue": list("rgb") * 8})
    table.to_csv("items.csv", index=False)
    return tmp_path


def test_a_model_beside_subjects_of_one_file(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["group", "late.npz", "--subjects", "people.npy", "--permutations", "99", "--out", "run"]
    assert run(line) == 0
    said = capsys.readouterr().out
    assert "6 subjects, 24 items" in said
    found = pd.read_parquet(files / "run/group.parquet")
    expected = ta.compare_with_group(PEOPLE, {"late": {"late": SHARED}}, permutations=99).table()
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-5)
    assert pd.read_parquet(files / "run/subjects.parquet").shape == (6, 4)
    assert run(line) == 0
    assert "6 subjects, 24 items" in capsys.readouterr().out


def test_a_file_for_each_subject_and_steps(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [part for k in range(6) for part in ("--subjects", f"p{k}=s{k}.npy")]
    assert run(["group", "late.npz", *given, "--step", "zscore", "--permutations", "99", "--out", "run"]) == 0
    found = pd.read_parquet(files / "run/subjects.parquet")
    assert found["subject"].tolist() == [f"p{k}" for k in range(6)]
    expected = ta.compare_with_group(PEOPLE, {"late": {"late": SHARED}}, permutations=99, steps="zscore")
    np.testing.assert_allclose(found["score"], expected.scores[:, 0, 0], atol=1e-5)


def test_all_subjects_in_one_file_of_regions(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    savemat("people.mat", {"V1": PEOPLE, "IT": PEOPLE[:, :, :5], "note": "made up"})
    np.savez("people.npz", V1=PEOPLE, IT=PEOPLE[:, :, :5])
    tables = []
    for name in ("people.mat", "people.npz"):
        line = ["group", "late.npz", "--subjects", name, "--permutations", "99", "--out", f"run-{name}"]
        assert run(line) == 0
        tables.append(pd.read_parquet(files / f"run-{name}/group.parquet"))
    pd.testing.assert_frame_equal(*tables)
    assert tables[0]["region"].tolist() == ["V1", "IT"]
    expected = ta.compare_with_group(PEOPLE, {"late": {"late": SHARED}}, permutations=99).table()
    assert tables[0]["score"][0] == pytest.approx(expected["score"][0], abs=1e-5)
    np.savez("unlike.npz", V1=PEOPLE, IT=PEOPLE[:4])
    assert run(["group", "late.npz", "--subjects", "unlike.npz", "--out", "run"]) == 2
    assert "unlike.npz have 4, 6 subjects" in " ".join(capsys.readouterr().err.split())


def test_an_rdm_as_the_model_and_as_a_subject(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("rdm.npy", squareform(pdist(SHARED)))
    line = ["group", "rdm.npy", "--subjects", "people.npy", "--permutations", "99", "--out", "run"]
    assert run(line) == 0
    found = pd.read_parquet(files / "run/subjects.parquet")
    expected = [spearmanr(pdist(X), pdist(SHARED)).statistic for X in PEOPLE]
    np.testing.assert_allclose(found["score"], expected, atol=1e-5)
    given = ["--subjects", "rdm.npy", "--subjects", "s1.npy"]
    assert run(["group", "late.npz", *given, "--permutations", "99", "--out", "again"]) == 0
    found = pd.read_parquet(files / "again/subjects.parquet")
    assert found["score"].tolist() == pytest.approx([1.0, expected[1]], abs=1e-5)


def test_a_measure_without_a_range_over_items(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["group", "late.npz", "--subjects", "people.npy", "--measure", "procrustes", "--out", "run"]
    assert run([*line, "--permutations", "19"]) == 0
    said = capsys.readouterr().out
    assert "procrustes (95 % over subjects)" in said
    assert "procrustes has no range over other items" in " ".join(said.split())


def test_the_profile_of_a_group(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["group", "--subjects", "people.npy", "--stimuli", "items.csv", "--out", "run"]) == 0
    found = pd.read_parquet(files / "run/group.parquet")
    expected = profile_group(PEOPLE, pd.read_csv("items.csv")).table()
    np.testing.assert_allclose(found["importance"], expected["importance"], atol=1e-6)
    assert "importance (95 % over both)" in capsys.readouterr().out


def test_clusters_in_time(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = []
    for s in range(8):
        times = {
            f"t{t}": RNG.normal(size=(24, 9)) + (3 <= t < 6) * SHARED @ RNG.normal(size=(4, 9))
            for t in range(8)
        }
        np.savez(f"times{s}.npz", **times)
        given += ["--subjects", f"times{s}.npz"]
    assert run(["group", "late.npz", *given, "--permutations", "19", "--clusters", "--out", "run"]) == 0
    assert "late:late is better than chance from t" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["late.npz"], "No subjects were given: give --subjects FILE"),
        (["--subjects", "people.npy"], "A profile of the group needs the features of the items"),
        (["late.npz", "--subjects", "nowhere.npy"], "nowhere.npy is no file of arrays that is there"),
        (["--subjects", "people.npy", "--stimuli", "items.csv", "--measure", "cka"], "only with models"),
        (["late.npz", "--subjects", "s0.npy", "--subjects", "V1=people.npy"], "shape (6, 24, 9)"),
        (["late.npz", "--subjects", "people.npy", "--measure", "ckaa"], "Did you mean 'cka'"),
        (
            ["late.npz", "--subjects", "people.npy", "--over", "zzz"],
            "over is 'zzz': expected one of subjects",
        ),
        (
            ["late.npz", "--subjects", "people.npy", "--drop", "hue"],
            "--drop has a meaning only with --stimuli",
        ),
    ],
)
def test_what_is_refused(
    files: Path, capsys: pytest.CaptureFixture[str], line: list[str], message: str
) -> None:
    assert run(["group", *line, "--out", "run"]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(
        "\n\n".join(f"The dog sees {k} cats and the bird sees it." for k in range(40))
    )
    return tmp_path


def test_outputs_over_text(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = ["nano-gelu-3l", "nano-solu-3l"]
    line = ["outputs", *models, "--text", "text.txt", "--length", "16", "--max-passages", "4", "--out", "run"]
    assert run(line) == 0
    assert "64 tokens; standard errors over 4 passages" in capsys.readouterr().out
    found = pd.read_parquet(text / "run/outputs.parquet")
    expected = ta.compare_outputs(models, "text.txt", length=16, max_passages=4).to_frame()
    pd.testing.assert_frame_equal(found, expected, rtol=1e-6)


def test_outputs_of_other_vocabularies_are_refused(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["outputs", "nano-gpt2", "nano-bert", "--text", "text.txt", "--out", "run"]) == 2
    assert "nano-bert is a masked model" in " ".join(capsys.readouterr().err.split())
    assert not (text / "run").exists()
