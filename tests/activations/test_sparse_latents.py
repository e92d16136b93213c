"""Sparse autoencoders are read as their authors run them, and their latents stay sparse."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from scipy.stats import f_oneway
from torch.nn import functional as F

import thinkalike as ta
from tests import planted_models as planted
from thinkalike.activations.autoencoders import SparseAutoencoder, load_autoencoder
from thinkalike.activations.sparse_latents import between_levels
from thinkalike.errors import InvalidInput, ModelError, UnknownName

N_UNITS, N_LATENTS = 12, 40
SIZES = {"W_enc": (N_UNITS, N_LATENTS), "b_enc": (N_LATENTS,), "b_dec": (N_UNITS,), "threshold": (N_LATENTS,)}


def tensors(*names):
    rng = torch.Generator().manual_seed(0)
    return {name: torch.randn(SIZES[name], generator=rng) for name in names}


def saved(folder, made, config=None):
    folder.mkdir(exist_ok=True)
    save_file(made, folder / "sae.safetensors")
    if config is not None:
        (folder / "cfg.json").write_text(json.dumps(config))
    return folder


STATES = torch.randn(30, N_UNITS, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("centred", [True, False])
def test_saelens_standard(tmp_path, centred):
    made = tensors("W_enc", "b_enc", "b_dec")
    sae = load_autoencoder(saved(tmp_path / "sae", made, {"apply_b_dec_to_input": centred}))
    x = STATES - made["b_dec"] if centred else STATES
    expected = F.relu(x @ made["W_enc"] + made["b_enc"])
    np.testing.assert_allclose(sae.encode(STATES.numpy()), expected, atol=1e-5)


def test_saelens_jumprelu(tmp_path):
    made = tensors("W_enc", "b_enc", "b_dec", "threshold")
    sae = load_autoencoder(saved(tmp_path / "sae", made, {"architecture": "jumprelu"}))
    raw = (STATES - made["b_dec"]) @ made["W_enc"] + made["b_enc"]
    expected = F.relu(raw) * (raw > made["threshold"])
    np.testing.assert_allclose(sae.encode(STATES.numpy()), expected, atol=1e-5)


def top(raw, k):
    chosen = raw.topk(k, dim=-1)
    return torch.zeros_like(raw).scatter(-1, chosen.indices, F.relu(chosen.values))


def test_saelens_topk(tmp_path):
    made = tensors("W_enc", "b_enc", "b_dec")
    sae = load_autoencoder(saved(tmp_path / "sae", made, {"architecture": "topk", "k": 5}))
    expected = top((STATES - made["b_dec"]) @ made["W_enc"] + made["b_enc"], 5)
    np.testing.assert_allclose(sae.encode(STATES.numpy()), expected, atol=1e-5)


def test_sparsify(tmp_path):
    made = tensors("W_enc", "b_enc", "b_dec")
    layout = {
        "encoder.weight": made["W_enc"].T.contiguous(),
        "encoder.bias": made["b_enc"],
        "b_dec": made["b_dec"],
    }
    folder = saved(tmp_path / "sae", layout, {"d_in": N_UNITS, "k": 4, "activation": "topk"})
    sae = load_autoencoder(folder / "sae.safetensors")
    expected = top(F.linear(STATES - made["b_dec"], layout["encoder.weight"], made["b_enc"]), 4)
    np.testing.assert_allclose(sae.encode(STATES.numpy()), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("names", "config", "message"),
    [
        (("b_enc", "b_dec"), {}, r"holds b_dec, b_enc: neither W_enc \(SAELens\) nor encoder.weight"),
        (("W_enc", "b_dec"), {}, "lacks b_enc"),
        (("W_enc", "b_enc", "b_dec"), {"architecture": "gated"}, "cannot read .architecture 'gated'"),
        (("W_enc", "b_enc", "b_dec"), {"architecture": "topk"}, "does not say k"),
        (("W_enc", "b_enc", "b_dec"), {"architecture": "jumprelu"}, "lacks threshold"),
        (("W_enc", "b_enc", "b_dec"), {"normalize_activations": "layer_norm"}, "'layer_norm'"),
        (("W_enc", "b_enc", "b_dec"), [1], "holds no settings of an autoencoder"),
        (("W_enc", "b_enc", "b_dec"), {"activation_fn_kwargs": "k=3"}, "holds no settings of an autoencoder"),
        (("W_enc", "b_enc", "b_dec"), {"architecture": "topk", "k": 0}, "k of .*=0: give a whole number"),
        (("W_enc", "b_enc", "b_dec"), {"architecture": "topk", "k": "x"}, "='x': give a whole number"),
    ],
)
def test_files_that_are_no_autoencoder_of_ours(tmp_path, names, config, message):
    with pytest.raises((ModelError, InvalidInput), match=message):
        load_autoencoder(saved(tmp_path / "sae", tensors(*names), config))


def test_damaged_and_missing_files(tmp_path):
    with pytest.raises(InvalidInput, match=r"There is nothing at .*: give the safetensors file"):
        load_autoencoder(tmp_path / "nowhere")
    (tmp_path / "sae.safetensors").write_bytes(b"not this")
    with pytest.raises(ModelError, match=r"cannot be read as safetensors \(.*\): give the weights"):
        load_autoencoder(tmp_path)
    folder = saved(tmp_path / "sae", tensors("W_enc", "b_enc", "b_dec"))
    (folder / "cfg.json").write_text("{")
    with pytest.raises(InvalidInput, match=r"cfg\.json is not JSON"):
        load_autoencoder(folder)
    layout = {"encoder.weight": torch.ones(4, 3), "encoder.bias": torch.ones(4), "b_dec": torch.ones(3)}
    with pytest.raises(ModelError, match="that says k"):
        load_autoencoder(saved(tmp_path / "other", layout))
    with pytest.raises(ModelError, match=r"weights of autoencoder have shape \(3,\)"):
        SparseAutoencoder(np.ones(3, "f4"), np.ones(5, "f4"), np.ones(3, "f4"))
    with pytest.raises(ModelError, match="bias of autoencoder hold values that are not finite"):
        SparseAutoencoder(np.ones((3, 4), "f4"), np.full(4, np.nan, "f4"), np.ones(3, "f4"))
    with pytest.raises(ModelError, match=r"bias of autoencoder has shape \(5,\)"):
        SparseAutoencoder(np.ones((3, 4), "f4"), np.ones(5, "f4"), np.ones(3, "f4"))


def activations(n_items=30, **metadata):
    rows = np.random.default_rng(2).normal(size=(n_items, N_UNITS)).astype(np.float32)
    return ta.Activations.from_arrays({0: rows, 1: 2 * rows}, system="mine", metadata=metadata)


def autoencoder():
    made = {name: tensor.numpy() for name, tensor in tensors("W_enc", "b_enc", "b_dec").items()}
    return SparseAutoencoder(made["W_enc"], made["b_enc"], made["b_dec"], k=3)


def test_latents_are_columns_of_what_the_autoencoder_gives():
    acts, sae = activations(300), autoencoder()
    found = ta.latents(acts, sae, layer=1)
    dense = sae.encode(acts[1])
    # Read in chunks of rows: a product of other rows may round the last digit another way.
    np.testing.assert_array_equal(found.values.toarray() > 0, dense > 0)
    np.testing.assert_allclose(found.values.toarray(), dense, rtol=1e-6)
    np.testing.assert_array_equal(found.counts, (dense > 0).sum(axis=0))
    chosen = found.activations([7, 3])
    assert chosen.layers == ("1.l7", "1.l3")
    np.testing.assert_array_equal(chosen["1.l3"], found.values.toarray()[:, [3]])
    assert "300 items × 40 latents, 3.0 active" in repr(found)


def test_between_levels_is_that_of_analysis_of_variance():
    """F = (η² / (g − 1)) / ((1 − η²) / (n − g))."""
    dense = autoencoder().encode(activations(200)[0])
    codes = np.random.default_rng(3).integers(0, 3, size=200)
    from scipy import sparse

    found = between_levels(sparse.csc_array(dense), codes)
    for column in range(N_LATENTS):
        values = dense[:, column]
        if np.ptp(values) == 0:
            assert found[column] == 0
            continue
        F_value = f_oneway(*(values[codes == level] for level in range(3))).statistic
        eta = found[column]
        assert (eta / 2) / ((1 - eta) / 197) == pytest.approx(F_value, rel=1e-5)


def test_held_out_values_of_noise_are_small():
    """The best of many latents looks good where it was chosen, and is worth nothing elsewhere."""
    stimuli = planted.stimuli(60)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(len(stimuli), planted.WIDTH)).astype(np.float32)
    acts = ta.Activations.from_arrays({0: noise}, system="noise", stimuli=stimuli)
    weights = rng.normal(size=(planted.WIDTH, 2000)).astype(np.float32)
    sae = SparseAutoencoder(weights, np.full(2000, -8.0, np.float32), np.zeros(planted.WIDTH, np.float32))
    best = ta.latents(acts, sae, layer=0).best(stimuli, "number", most=20)
    expected = 1 / (len(stimuli) / 2 - 1)  # of η² with two levels, by chance
    assert best["chosen_on"].mean() > 5 * expected
    assert best["held_out"].mean() < 3 * expected


def test_no_dense_copy_is_made():
    """16,384 latents of 3,000 items would be 197 MB; a tenth of that is enough for all that is done."""
    n_items, n_latents, n_units = 3000, 16384, 32
    rng = np.random.default_rng(0)
    acts = ta.Activations.from_arrays({0: rng.normal(size=(n_items, n_units))}, system="wide")
    weights = rng.normal(size=(n_units, n_latents)).astype(np.float32)
    sae = SparseAutoencoder(weights, np.zeros(n_latents, "f4"), np.zeros(n_units, "f4"), k=16)
    tracemalloc.start()
    found = ta.latents(acts, sae, layer=0)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.values.nnz == 16 * n_items
    dense = n_items * n_latents * 4
    assert held < dense / 50
    assert peak < dense / 2  # 256 rows at a time, in the encoder's few arrays


@pytest.mark.parametrize(
    ("about", "layer", "message"),
    [
        ({"site": "mlp"}, 0, "needs site='residual'"),
        ({"pooling": "mean"}, 0, "not the mean of latents"),
        ({}, 7, "no layer '7' in mine"),
    ],
)
def test_activations_that_cannot_be_encoded(about, layer, message):
    with pytest.raises(InvalidInput, match=message):
        ta.latents(activations(**about), autoencoder(), layer=layer)


def test_an_autoencoder_of_another_width():
    sae = SparseAutoencoder(np.ones((5, 9), "f4"), np.zeros(9, "f4"), np.zeros(5, "f4"))
    with pytest.raises(InvalidInput, match="reads 5 units, but layer 0 of mine has 12"):
        ta.latents(activations(), sae, layer=0)


def test_latents_that_are_not_there():
    found = ta.latents(activations(), autoencoder(), layer=0)
    with pytest.raises(InvalidInput, match="latent=40"):
        found.activations([40])
    silent = int(np.flatnonzero(found.counts == 0)[0])
    with pytest.raises(InvalidInput, match=rf"Latent {silent} is active in no item.*\(--best\)"):
        found.activations([silent])
    with pytest.raises(InvalidInput, match="No latents were chosen"):
        found.activations([])
    dead = SparseAutoencoder(
        np.ones((N_UNITS, 4), "f4"), np.full(4, -1e6, np.float32), np.zeros(N_UNITS, "f4")
    )
    with pytest.raises(InvalidInput, match="No latent of autoencoder is active"):
        ta.latents(activations(), dead, layer=0)


def test_features_that_have_no_levels():
    stimuli = planted.stimuli(10)
    acts = ta.Activations.from_arrays(
        {0: np.random.default_rng(0).normal(size=(len(stimuli), N_UNITS))}, system="mine", stimuli=stimuli
    )
    found = ta.latents(acts, autoencoder(), layer=0)
    with pytest.raises(UnknownName, match=r"no feature 'nummer'. Did you mean 'number'"):
        found.best(stimuli, "nummer")
    longer = ta.Stimuli.from_table(
        pd.DataFrame({"item": list(stimuli.items.index), "length": np.arange(len(stimuli)) * 1.5})
    )
    with pytest.raises(InvalidInput, match="'length' is numeric"):
        ta.latents(ta.Activations.from_arrays({0: acts[0]}, system="mine"), autoencoder(), layer=0).best(
            longer, "length"
        )
