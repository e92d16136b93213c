"""Latents of a sparse autoencoder as the layers of a comparison: by options of `compare`, and by stores."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import thinkalike as ta
from tests import planted_models as planted
from thinkalike.cli.boundary import run
from thinkalike.errors import InvalidInput, StoreError

pytestmark = pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")
LATENT = 7341
STIMULI = planted.stimuli(30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two versions of a model, an autoencoder in which one latent carries number, and the words."""
    root = tmp_path_factory.mktemp("latents")
    for name, block in (("base", 1), ("tuned", 2)):
        planted.with_a_head(block, 0).save_pretrained(root / name)
        planted.tokenizer().save_pretrained(root / name)
    sae = planted.with_a_latent(LATENT)
    tensors = {"W_enc": sae.weights, "b_enc": sae.bias, "b_dec": sae.centre}
    save_file({name: torch.from_numpy(array) for name, array in tensors.items()}, root / "sae.safetensors")
    STIMULI.save(root / "words.csv")
    return root


@pytest.fixture(autouse=True)
def cached(folder, monkeypatch):
    monkeypatch.setenv("THINKALIKE_CACHE", str(folder / "cache"))
    monkeypatch.chdir(folder)


def compared(folder, *, best=None, latents=None, **options):
    models = {"base": str(folder / "base"), "tuned": str(folder / "tuned")}
    extraction = {"autoencoder": str(folder / "sae.safetensors"), "layer": 0}
    extraction |= {"best": best} if latents is None else {"latents": latents}
    return ta.compare(models, STIMULI, extraction=extraction, resamples=0, **options)


def test_the_planted_latent_is_found_by_its_name(folder, tmp_path):
    found = compared(folder, best="number", out=tmp_path / "run")
    for profile in found.profiles.values():
        table = profile.table()
        assert table["number"].idxmax() == f"0.l{LATENT}"
        assert table.loc[f"0.l{LATENT}"].idxmax() == "number"
        worth = profile.metadata["worth"]
        assert worth["latent"][0] == LATENT
        assert worth["held_out"][0] > 0.9
    n_rows = sum(len(profile.layers) for profile in found.profiles.values())
    assert found.matrices["features"].values.shape == found.matrices["rsa"].values.shape == (n_rows, n_rows)
    explained = found.explain("base", f"0.l{LATENT}", "tuned", f"0.l{LATENT}")
    assert explained.features[int(np.argmax(explained.contributions))] == "number"
    again = compared(folder, best="number", out=tmp_path / "run")
    np.testing.assert_array_equal(again.matrices["rsa"].values, found.matrices["rsa"].values)


def test_these_latents_are_what_ta_latents_gives(folder):
    found = compared(folder, latents=[LATENT, 3])
    states = ta.extract(str(folder / "base"), STIMULI)
    expected = ta.latents(states, folder / "sae.safetensors", layer=0).activations([LATENT, 3])
    assert found.activations is not None
    assert found.activations["base"].layers == (f"0.l{LATENT}", "0.l3")
    for layer in expected.layers:
        np.testing.assert_array_equal(found.activations["base"][layer], expected[layer])


def test_a_folder_of_other_latents_is_refused(folder, tmp_path):
    compared(folder, latents=[LATENT, 3], out=tmp_path / "run")
    with pytest.raises(StoreError, match=r"holds another run"):
        compared(folder, latents=[LATENT, 5], out=tmp_path / "run")


def test_vectors_that_were_not_kept(folder, tmp_path):
    first = compared(folder, latents=[LATENT, 3], out=tmp_path / "run", keep="profiles")
    again = compared(folder, latents=[LATENT, 3], out=tmp_path / "run", keep="profiles")
    np.testing.assert_array_equal(first.matrices["rsa"].values, again.matrices["rsa"].values)


def test_random_weights_have_no_latents(folder):
    with pytest.raises(InvalidInput, match="no autoencoder was trained on"):
        compared(folder, best="number", controls="untrained")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": 3}, "layer says something of an autoencoder"),
        ({"autoencoder": "sae.safetensors"}, "say which, with layer="),
        ({"autoencoder": "sae.safetensors", "layer": 0}, r"latents=\[12, 77\], or best='FEATURE'"),
        ({"autoencoder": "sae.safetensors", "layer": 0, "latents": [16384]}, "from 0 to 16,383"),
        ({"autoencoder": "sae.safetensors", "layer": 9, "best": "number"}, "no layer '9' in base"),
        (
            {"autoencoder": "sae.safetensors", "layer": 0, "best": "number", "site": "mlp"},
            "needs site='residual'",
        ),
        (
            {"autoencoder": "sae.safetensors", "layer": 0, "best": "number", "pooling": "mean"},
            "not the mean of latents",
        ),
    ],
)
def test_what_is_refused(folder, options, message):
    with pytest.raises(InvalidInput, match=message):
        ta.compare(
            {"base": str(folder / "base"), "tuned": str(folder / "tuned")}, STIMULI, extraction=options
        )


def test_what_it_will_take(folder):
    options = {"autoencoder": str(folder / "sae.safetensors"), "layer": 0, "latents": [LATENT, 3]}
    planned = ta.plan([str(folder / "base"), str(folder / "tuned")], STIMULI, extraction=options, resamples=0)
    tasks = dict(planned.to_frame()[["step", "tasks"]].itertuples(index=False))
    assert tasks["looking at layers"] == 4


def test_other_analyses_read_the_same_latents(folder):
    tried = compared(folder, latents=[LATENT, 3]).robustness()
    assert len(tried.analyses) > 5
    assert any("mean of latents" in why for why in tried.left_out.values())


def test_the_command_writes_a_report(folder, tmp_path, capsys):
    line = [
        "compare",
        "base",
        "tuned",
        "--stimuli",
        "words.csv",
        "--resamples",
        "0",
        "--out",
        str(tmp_path / "run"),
    ]
    line += ["--autoencoder", "sae.safetensors", "--layer", "0", "--best", "number"]
    assert run(line) == 0
    said = capsys.readouterr().out
    assert "base: 10 of the 16,384 latents of layer 0" in said
    assert "η² elsewhere" in said
    assert f"0.l{LATENT}" in (tmp_path / "run" / "index.html").read_text()


def test_stores_of_latents_go_everywhere(folder, tmp_path, capsys):
    """What `extract --autoencoder` wrote is taken by compare, profile and similarity."""
    for name in ("base", "tuned"):
        line = ["extract", name, "--stimuli", "words.csv", "--autoencoder", "sae.safetensors", "--layer", "0"]
        line += ["--latents", f"{LATENT},3", "--out", str(tmp_path / f"{name}.zarr")]
        assert run(line) == 0
        assert run(line) == 0  # again, the very same
        assert run([*line[:-3], "5", "--out", line[-1]]) == 2  # something else is never written over it
    capsys.readouterr()
    stores = [str(tmp_path / f"{name}.zarr") for name in ("base", "tuned")]
    line = ["--stimuli", "words.csv", "--resamples", "0"]
    assert run(["compare", *stores, *line, "--out", str(tmp_path / "run")]) == 0
    assert run(["profile", stores[0], *line]) == 0
    assert f"0.l{LATENT}" in capsys.readouterr().out
    found = ta.comparison.Comparison.load(tmp_path / "run")
    straight = compared(folder, latents=[LATENT, 3])
    np.testing.assert_array_equal(found.matrices["rsa"].values, straight.matrices["rsa"].values)
    opened = [ta.Activations.open(store, system=store[-9:]) for store in stores]
    assert ta.similarity(opened, measure="cka").values.shape == (4, 4)
