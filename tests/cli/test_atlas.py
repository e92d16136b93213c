"""`thinkalike fingerprint` and `thinkalike atlas`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import thinkalike as ta
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.populations import Fingerprint

Run = Callable[..., Any]


def test_a_fingerprint_is_written_and_added(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "one.npz"
    said = run("fingerprint", "mine=nano-pythia-64", "--out", out, "--fact", "family=pythia").stdout
    assert "3 layers" in said
    assert Fingerprint.load(out).facts["family"] == "pythia"
    here = tmp_path / "atlas"
    assert f"Added mine to {here}: 3 layers." in run("atlas", "add", out, "--at", here).stdout
    ta.Atlas(here).add(ta.Atlas()["nano-gpt2"])
    assert "nano-gpt2" in run("atlas", "nearest", "mine", "--at", here).stdout


def test_the_bundled_atlas(run: Run, tmp_path: Path) -> None:
    listed = run("atlas", "list").stdout
    assert all(name in listed for name in ("nano-bert", "step250"))
    assert "nano-pythia-128" in run("atlas", "nearest", "nano-pythia-96", "-n", 2).stdout
    figure = tmp_path / "map.svg"
    assert "Stress" in run("atlas", "map", "--by", "rsa", "--figure", figure).stdout
    assert figure.read_text(encoding="utf-8").startswith("<svg")
    page = tmp_path / "page.html"
    assert "page.html" in run("atlas", "report", "--out", page).stdout
    assert f"{len(ta.Atlas())} models" in page.read_text(encoding="utf-8")
    table = tmp_path / "facts.csv"
    rows = "\n".join(f"{name},{'a' if 'pythia' in name else 'b'}" for name in ta.Atlas().names)
    table.write_text(f",house\n{rows}\n", encoding="utf-8")  # as pandas writes an index
    found = run("atlas", "why", "--facts", table).stdout
    assert "house" in found
    assert "vocabulary (the same in all models)." in " ".join(found.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "no action of an atlas 'frobnicate'"),
        (["add"], "Nothing was given to add"),
        (["add", "nano-gpt2"], "The bundled fingerprints stay as they are"),
        (["list", "nano-gpt2"], "list looks at all models of the atlas: leave out nano-gpt2"),
        (["nearest"], "nearest takes one model of the atlas"),
        (["list", "--by", "rsa"], "--by has a meaning only with nearest, map, why and report"),
        (["list", "-n", "3"], "--n has a meaning only with nearest"),
        (["nearest", "nano-gpt2", "--by", "cka"], "no distance between models 'cka'"),
        (["list", "--workers", "2"], "--workers has a meaning only with add"),
        (["why", "--facts", "nowhere.csv"], "There is no file nowhere.csv"),
        (["list", "--at", "nowhere"], "There is nothing in nowhere yet"),
        (["report", "--out", "x.pdf"], "x.pdf ends in '.pdf': a page is written as .html"),
        (["report", "--out", ""], "a page is written as .html"),
        (["map", "--figure", "x.txt"], "x.txt ends in '.txt': figures are drawn as"),
        (
            ["add", "nano-gpt2", "--at", "x", "--fact", "a=1", "--fact", "a=2"],
            "'a' is given twice, as 1 and as",
        ),
        (["add", "nano-gpt2", "--at", "x", "--fact", "a=1e400"], "'a=1e400' is larger than any number"),
        (["add", "nano-gpt2", "--at", "x", "--fact", "family"], "'family' is no fact: write NAME=VALUE"),
    ],
)
def test_what_is_refused(
    run: Run, arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((InvalidInput, UnknownName), match=message):
        run("atlas", *arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: the file is empty"),
        (bytes(range(256)), "is not UTF-8 text"),
        ("model,x\nnano-gpt2,é\n".encode("latin-1"), "is not UTF-8 text"),
        (b"model,x,x\nnano-gpt2,1,2\n", "line 1: the column 'x' stands there twice"),
        (b"model,\nnano-gpt2,1\n", "line 1: column 2 has no name"),
        (b"model,x\nnano-gpt2,1\nnano-bert,inf\nnano-mamba,3\n", "line 3: 'inf' is no finite number"),
        (b"model,x\nnano-gpt2,1\nnano-gpt2,2\n", "two rows of nano-gpt2"),
        (b"model,x\ngpt-5,1\n", "no model 'gpt-5' in this atlas"),
        (b"model,x\n", "line 1: there is a header but no row below it"),
        (b"model\nnano-gpt2\n", "has 1 models and 0 facts"),
    ],
)
def test_a_table_that_is_none(run: Run, tmp_path: Path, content: bytes, message: str) -> None:
    table = tmp_path / "facts.csv"
    table.write_bytes(content)
    for action in ("why", "report"):
        with pytest.raises((InvalidInput, UnknownName), match=message):
            run("atlas", action, "--facts", table)
