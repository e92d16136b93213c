"""Activations that others made."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
import torch
import zarr

import thinkalike as ta
from thinkalike.errors import InvalidInput, MissingExtra, StoreError


@pytest.fixture
def xarray():
    return pytest.importorskip("xarray")


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return {
        "V1": rng.normal(size=(5, 3)).astype(np.float32),
        "IT": rng.normal(size=(5, 4)).astype(np.float32),
    }


def check(found, arrays, system):
    assert found.system == system
    assert found.layers == tuple(arrays)
    for layer, array in arrays.items():
        np.testing.assert_array_equal(found[layer], array)


def test_npz(arrays, tmp_path):
    np.savez(tmp_path / "monkey.npz", **arrays)
    check(ta.Activations.open(tmp_path / "monkey.npz"), arrays, "monkey")


def test_npy(arrays, tmp_path):
    np.save(tmp_path / "V1.npy", arrays["V1"])
    check(ta.Activations.open(str(tmp_path / "V1.npy"), system="monkey"), {"V1": arrays["V1"]}, "monkey")


def test_a_folder_of_npy_counts_its_layers(arrays, tmp_path):
    for layer in (10, 9, 0):
        np.save(tmp_path / f"{layer}.npy", arrays["V1"] + layer)
    found = ta.Activations.open(tmp_path, system="net")
    check(found, {layer: arrays["V1"] + np.float32(layer) for layer in (0, 9, 10)}, "net")


def test_any_zarr_group(arrays, tmp_path):
    group = zarr.create_group(tmp_path / "net.zarr")
    for layer in (10, 2):
        group.create_array(str(layer), data=arrays["IT"] * layer)
    found = ta.Activations.open(tmp_path / "net.zarr")
    check(found, {layer: arrays["IT"] * np.float32(layer) for layer in (2, 10)}, "net")


def test_rows_named_by_stimuli(arrays, tmp_path):
    np.savez(tmp_path / "monkey.npz", **arrays)
    stimuli = ta.Stimuli(pd.DataFrame({"size": np.arange(5.0)}, index=list("abcde")))
    found = ta.Activations.open(tmp_path / "monkey.npz", stimuli=stimuli)
    assert found.item_names == tuple("abcde")
    assert found.stimuli_digest == stimuli.digest


def test_pickles_are_not_read(tmp_path):
    np.save(tmp_path / "evil.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(StoreError, match="cannot be read as arrays of numbers"):
        ta.Activations.open(tmp_path / "evil.npy")


@pytest.mark.parametrize("other", ["00", "٠"])
def test_two_names_of_one_layer_are_refused(arrays, tmp_path, other):
    layers = {"0": arrays["V1"], other: arrays["IT"]}
    np.savez(tmp_path / "a.npz", **layers)
    (tmp_path / "folder").mkdir()
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    for name, array in layers.items():
        np.save(tmp_path / "folder" / f"{name}.npy", array)
        group.create_array(name, data=array)
    for place in ("a.npz", "folder", "a.zarr"):
        with pytest.raises(InvalidInput, match="are both layer 0: rename one"):
            ta.Activations.open(tmp_path / place)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("zarr.json", b"null"),
        ("V1/zarr.json", b"null"),
        ("V1/zarr.json", b"{}"),
        ("V1/c/0/0", b""),
        ("V1/c/0/0", bytes(50)),
    ],
)
def test_damaged_zarr_groups_of_others(arrays, tmp_path, file, content):
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    for name, array in arrays.items():
        group.create_array(name, data=array)
    (tmp_path / "a.zarr" / file).write_bytes(content)
    with pytest.raises(StoreError, match=r"a.zarr is damaged"):
        ta.Activations.open(tmp_path / "a.zarr")


def test_a_damaged_compressed_array(arrays, tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x=arrays["V1"])
    data = bytearray((tmp_path / "a.npz").read_bytes())
    for place in range(100, 180):
        data[place] ^= 0xFF
    (tmp_path / "a.npz").write_bytes(bytes(data))
    with pytest.raises(StoreError, match="cannot be read as arrays of numbers"):
        ta.Activations.open(tmp_path / "a.npz")


def test_files_that_are_something_else(tmp_path):
    (tmp_path / "a.npz").write_text("no zip")
    with pytest.raises(StoreError, match="cannot be read"):
        ta.Activations.open(tmp_path / "a.npz")
    np.savez(tmp_path / "whole.npz", a=np.ones((50, 50)))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:3000])
    with pytest.raises(StoreError, match=r"cut.npz cannot be read as arrays"):
        ta.Activations.open(tmp_path / "cut.npz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match=r"neither a Zarr group nor .npy files"):
        ta.Activations.open(tmp_path / "empty")


def test_xarray_dataset(arrays, xarray):
    data = xarray.Dataset(
        {"V1": (("time", "item"), arrays["V1"].T), "IT": (("item", "unit"), arrays["IT"])},
        coords={"item": list("abcde")},
        attrs={"system": "monkey"},
    )
    found = ta.Activations.from_xarray(data)
    check(found, arrays, "monkey")
    assert found.item_names == tuple("abcde")


def test_xarray_array_with_and_without_layers(arrays, xarray):
    cube = np.stack([arrays["V1"], arrays["V1"] * 2])
    data = xarray.DataArray(cube, dims=("depth", "trial", "x"), coords={"depth": [3, 7]}, name="net")
    found = ta.Activations.from_xarray(data, item_dim="trial", layer_dim="depth")
    check(found, {3: arrays["V1"], 7: arrays["V1"] * 2}, "net")
    flat = ta.Activations.from_xarray(data, item_dim="trial")
    np.testing.assert_array_equal(flat["net"], cube.transpose(1, 0, 2).reshape(5, 6))
    with pytest.raises(InvalidInput, match="has the dimensions depth, trial, x and no 'item'"):
        ta.Activations.from_xarray(data)


def test_xarray_there_and_back(arrays, xarray):
    made = ta.Activations.from_arrays({0: arrays["V1"], "final_norm": arrays["IT"]}, system="net")
    data = made.to_xarray()
    assert data["0"].dims == ("item", "unit_0")
    found = ta.Activations.from_xarray(data)
    assert found.system == "net"
    np.testing.assert_array_equal(found["final_norm"], arrays["IT"])


def test_labelled_rows_are_put_in_the_order_of_the_stimuli(arrays, xarray):
    stimuli = ta.Stimuli(pd.DataFrame({"f": [0.0, 1.0, 2.0, 3.0, 4.0]}, index=list("abcde")))
    turned = [3, 1, 4, 0, 2]
    rows = {"dims": ("item", "unit"), "name": "V1"}
    data = xarray.DataArray(arrays["V1"][turned], coords={"item": ["abcde"[k] for k in turned]}, **rows)
    found = ta.Activations.from_xarray(data, stimuli=stimuli)
    np.testing.assert_array_equal(found["V1"], arrays["V1"])
    assert found.item_names == tuple("abcde")
    counted = xarray.DataArray(arrays["V1"], coords={"item": range(5)}, **rows)
    np.testing.assert_array_equal(ta.Activations.from_xarray(counted, stimuli=stimuli)["V1"], arrays["V1"])
    foreign = xarray.DataArray(arrays["V1"], coords={"item": list("abcdz")}, **rows)
    with pytest.raises(InvalidInput, match=r"no row labelled 'e' \(1 of the 5 stimuli are missing"):
        ta.Activations.from_xarray(foreign, stimuli=stimuli)
    with pytest.raises(InvalidInput, match="has 4 rows but 5 items"):
        ta.Activations.from_xarray(data[:4], stimuli=stimuli)


def test_without_xarray(arrays, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'thinkalike\[xarray\]'"):
        ta.Activations.from_xarray(arrays)
    with pytest.raises(MissingExtra, match="xarray"):
        ta.Activations.from_arrays(arrays).to_xarray()


@pytest.fixture
def lens_cache():
    """As TransformerLens names what it keeps, of shape (batch, position, units)."""
    rng = torch.Generator().manual_seed(0)
    names = ["hook_embed", "blocks.0.hook_resid_pre", "blocks.0.attn.hook_z", "blocks.0.hook_resid_post"]
    names += ["blocks.1.hook_resid_post", "ln_final.hook_normalized"]
    return {name: torch.randn(4, 6, 3, generator=rng) for name in names}


def test_transformer_lens(lens_cache):
    found = ta.Activations.from_cache(lens_cache, system="gelu-2l")
    assert found.layers == (0, 1, 2)
    np.testing.assert_array_equal(found[0], lens_cache["blocks.0.hook_resid_pre"][:, -1])
    np.testing.assert_array_equal(found[2], lens_cache["blocks.1.hook_resid_post"][:, -1])


def test_positions(lens_cache):
    post = lens_cache["blocks.0.hook_resid_post"].numpy()
    at = ta.Activations.from_cache(lens_cache, position=[0, 1, 2, 5])
    np.testing.assert_array_equal(at[1], post[np.arange(4), [0, 1, 2, 5]])
    np.testing.assert_allclose(
        ta.Activations.from_cache(lens_cache, position="mean")[1], post.mean(1), atol=1e-6
    )


def test_nnsight_and_any_other_mapping():
    class Saved:
        def __init__(self, value):
            self.value = value

    states = torch.randn(4, 3, requires_grad=True)
    found = ta.Activations.from_cache({"model.layers.3": Saved(states)}, items=list("abcd"))
    np.testing.assert_array_equal(found["model.layers.3"], states.detach())
    named = ta.Activations.from_cache({"x": states, "y": states}, names={1: "y"})
    assert named.layers == (1,)
    assert ta.Activations.from_cache({"x": states, "y": states}, names=["y"]).layers == ("y",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["nope"]}, "the cache has no 'nope'. It has hook_embed"),
        ({"position": 6}, "has 6 positions; position 6 is not among them"),
        ({"position": -7}, "position -7"),
        ({"position": "max"}, "'max' was given"),
        ({"position": [1, 2]}, "items, but 2 positions were given"),
    ],
)
def test_caches_that_do_not_fit(lens_cache, options, message):
    with pytest.raises(InvalidInput, match=message):
        ta.Activations.from_cache(lens_cache, **options)


def test_a_cache_of_other_shapes():
    with pytest.raises(InvalidInput, match=r"'x' has shape \(2, 2, 2, 2\)"):
        ta.Activations.from_cache({"x": torch.ones(2, 2, 2, 2)})
