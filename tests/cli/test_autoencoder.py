"""`--autoencoder`: the latents of `ta.latents` in the terminal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import thinkalike as ta
from thinkalike.cli.boundary import run


@pytest.fixture
def sae(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THINKALIKE_CACHE", str(tmp_path / "cache"))
    rng = torch.Generator().manual_seed(0)
    made = {"W_enc": torch.randn(128, 300, generator=rng), "b_enc": torch.full((300,), -30.0)}
    save_file({**made, "b_dec": torch.zeros(128)}, tmp_path / "sae.safetensors")
    ta.Stimuli.from_grammar(40, seed=0).save("words.csv")
    return tmp_path / "sae.safetensors"


def test_extract_keeps_chosen_latents(sae: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stimuli = ta.Stimuli.load("words.csv")
    expected = ta.latents(ta.extract("nano-gpt2", stimuli), sae, layer=3)
    first, second = np.argsort(-expected.counts, kind="stable")[:2]
    line = ["extract", "nano-gpt2", "--stimuli", "words.csv", "--autoencoder", str(sae), "--layer", "3"]
    assert run([*line, "--latents", f"{first},{second}", "--out", "some.zarr"]) == 0
    found = ta.Activations.open("some.zarr")
    assert found.layers == (f"3.l{first}", f"3.l{second}")
    np.testing.assert_array_equal(found[f"3.l{first}"], expected.activations([first])[f"3.l{first}"])
    assert "2 of the 300 latents of layer 3" in capsys.readouterr().out
    assert run([*line, "--latents", "300", "--out", "other.zarr"]) == 2
    assert "from 0 to 299" in capsys.readouterr().err


def test_profile_of_the_best_latents(sae: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["profile", "nano-gpt2", "--stimuli", "words.csv", "--autoencoder", str(sae), "--layer", "3"]
    assert run([*line, "--best", "number", "--out", "found"]) == 0
    said = capsys.readouterr().out
    stimuli = ta.Stimuli.load("words.csv")
    best = ta.latents(ta.extract("nano-gpt2", stimuli), sae, layer=3).best(stimuli, "number")
    assert "η² elsewhere" in said
    assert all(label in said for label in best["layer"])
    assert ta.comparison.Profile.load("found").layers == tuple(best["layer"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--layer", "3"], "--layer has a meaning only with --autoencoder"),
        (["--autoencoder", "sae.safetensors", "--latents", "1"], "say which, with --layer"),
        (["--autoencoder", "sae.safetensors", "--layer", "3"], "Got neither --latents nor --best"),
        (
            ["--autoencoder", "sae.safetensors", "--layer", "3", "--latents", "1", "--best", "number"],
            "Got both --latents and --best: choose latents by number",
        ),
        (["--autoencoder", "nowhere", "--layer", "3", "--best", "number"], "There is nothing at nowhere"),
        (["--autoencoder", "sae.safetensors", "--layer", "3", "--latents", "x"], "Got --latents x"),
        (["--autoencoder", "sae.safetensors", "--layer", "3", "--best", "numbr"], "Did you mean 'number'"),
        (["--autoencoder", "sae.safetensors", "--layer", "99", "--best", "number"], "99"),
    ],
)
def test_what_is_refused(
    sae: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert run(["profile", "nano-gpt2", "--stimuli", "words.csv", *options]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_latents_need_a_place(sae: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["extract", "nano-gpt2", "--stimuli", "words.csv", "--autoencoder", str(sae), "--layer", "3"]
    assert run([*line, "--latents", "1"]) == 2
    assert "also give --out" in capsys.readouterr().err
