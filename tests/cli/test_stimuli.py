"""`thinkalike stimuli`: makes, reads and checks; an error is one line and exit code 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from thinkalike.cli import app, main
from thinkalike.stimuli import Stimuli

CONLLU = """# text = She saw him
1\tShe\t_\tPRON\t_\tGender=Fem\t2\t_\t_\t_
2\tsaw\t_\tVERB\t_\t_\t0\t_\t_\t_
3\thim\t_\tPRON\t_\tGender=Masc\t2\t_\t_\t_
"""


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["stimuli", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What `main` prints on stderr when the command fails."""
    monkeypatch.setattr(sys, "argv", ["thinkalike", "stimuli", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_sentences_are_made_and_written(tmp_path: Path) -> None:
    path = tmp_path / "words.parquet"
    output = run("--sentences", 40, "--seed", 3, "--out", path)
    made = Stimuli.from_table(path)
    assert made == Stimuli.from_grammar(40, 3)
    assert f"{len(made)} items in 40 sentences, 8 features, digest {made.digest[:12]}" in output
    assert f"Wrote {path}." in output
    assert made.sentences.iloc[0] in output


def test_every_option_reaches_the_library(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    options = ["--grammar", "clauses", "--items", "words", "--capital", "--full-stop", "--zipf", "--balance"]
    run("-n", 20, *options, "--out", path)
    expected = Stimuli.from_grammar(
        20, 0, grammar="clauses", items="words", capital=True, full_stop=True, balance=True, controls=["zipf"]
    )
    assert Stimuli.from_table(path) == expected


def test_a_grammar_can_be_copied_and_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    output = run("--grammar", "salle2024", "--copy-grammar", folder)
    assert output == f"Wrote {folder / 'salle2024.toml'}.\nWrote {folder / 'lexicon_english.toml'}.\n"
    lexicon = folder / "lexicon_english.toml"
    lexicon.write_text(lexicon.read_text("utf-8").replace("Mary", "Zoe "), encoding="utf-8")
    made = run("-n", 2000, "--grammar", folder / "salle2024.toml", "--out", tmp_path / "w.csv")
    assert "2,000 sentences" in made
    words = set(Stimuli.from_table(tmp_path / "w.csv").items["word"])
    assert "Zoe" in words
    assert "Mary" not in words
    assert "exists already and is not overwritten" in failure(
        monkeypatch, capsys, "--grammar", "salle2024", "--copy-grammar", folder
    )


def test_a_treebank(tmp_path: Path) -> None:
    source, path = tmp_path / "tb.conllu", tmp_path / "tb.tsv"
    source.write_text(CONLLU, encoding="utf-8")
    assert "3 items in 1 sentence," in run("--conllu", source, "--out", path)
    assert Stimuli.from_table(path) == Stimuli.from_conllu(source)
    assert "part_of_speech" in run("--check", source)


def test_check_prints_the_diagnostics_as_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{k},{'a' if k else 'z'},{'pq'[k % 2]},one,{k % 5}" for k in range(200)]
    path.write_text("\n".join(["item,letter,pair,same,number", *rows]), encoding="utf-8")
    output = run("--check", path)
    header, *lines = output.splitlines()[1:]
    assert header.split()[:5] == ["feature", "kind", "levels", "missing", "variance"]
    table = {line.split()[0]: line.split()[1:] for line in lines[:4]}
    assert table["letter"][:3] == ["nominal", "2", "0%"]
    assert table["number"][:3] == ["numeric", "5", "0%"]
    assert table["same"] == ["nominal", "1", "0%", "–", "–"]
    correlations = Stimuli.from_table(path).correlations()
    assert table["pair"][3] == f"{correlations.variance_inflation[1]:.2f}"
    assert "same does not vary: it can explain nothing." in output
    assert "letter is 'z' in 1 of 200 items only" in output


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<svg"), (".html", b"<!DOCTYPE")]
)
def test_a_figure(tmp_path: Path, suffix: str, start: bytes) -> None:
    path = tmp_path / "deep" / f"figure{suffix}"
    run("-n", 20, "--figure", path)
    content = path.read_bytes()
    assert content.lstrip().startswith(start)
    assert b"https://cdn" not in content  # a page needs no network


def test_errors_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.csv"
    empty.touch()
    assert failure(monkeypatch, capsys, "--check", empty).startswith(
        f"error: {empty}, line 1: the file is empty"
    )
    assert "Did you mean 'clauses'?" in failure(monkeypatch, capsys, "--grammar", "clause")
    both = failure(monkeypatch, capsys, "--check", empty, "--conllu", empty)
    assert both == "error: --check and --conllu both name the file to read: give one of them.\n"
    figure = failure(monkeypatch, capsys, "-n", 5, "--figure", tmp_path / "f.gif")
    assert figure.endswith("figures are drawn as .png, .svg, .pdf, .html.\n")
    assert "ends in '.txt'" in failure(monkeypatch, capsys, "-n", 5, "--out", tmp_path / "f.txt")


def test_no_torch_is_loaded() -> None:
    code = (
        "import sys; from thinkalike.stimuli import Stimuli; Stimuli.from_grammar(5).correlations().plot()\n"
    )
    code += "print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
