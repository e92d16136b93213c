"""Activations in memory and on disk: what goes in comes out, and what is damaged says so."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import zarr

import thinkalike as ta
from thinkalike.activations.reader import damaged_chunks, open_store
from thinkalike.activations.writer import Writer, owning_store
from thinkalike.errors import InvalidInput, StoreError, UnknownName


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return {"V1": rng.normal(size=(5, 3)), "IT": rng.normal(size=(5, 4))}


@pytest.fixture
def saved(arrays, tmp_path):
    path = tmp_path / "monkey.zarr"
    ta.Activations.from_arrays(arrays, system="monkey").save(path)
    return path


def stimuli_of(n, **features):
    return ta.Stimuli(pd.DataFrame({"size": np.arange(n, dtype=float), **features}))


def test_from_arrays(arrays):
    found = ta.Activations.from_arrays(arrays, system="monkey")
    assert found.system == "monkey"
    assert found.layers == ("V1", "IT")
    assert list(found) == ["V1", "IT"]
    assert len(found) == 2
    assert "V1" in found
    assert 0 not in found
    assert found.n_units == (3, 4)
    assert found.item_names == ("0", "1", "2", "3", "4")
    assert found.stimuli_digest is None
    assert found["IT"].dtype == np.float32
    np.testing.assert_allclose(found["IT"], arrays["IT"], rtol=1e-6)
    assert repr(found) == "Activations(monkey: 2 layers × 5 items × 3–4 units)"


def test_tensors_are_arrays(arrays):
    tensors = {0: torch.tensor(arrays["V1"], dtype=torch.bfloat16, requires_grad=True)}
    np.testing.assert_allclose(ta.Activations.from_arrays(tensors)[0], arrays["V1"], atol=0.02)


def test_rows_are_named_by_items_or_stimuli(arrays):
    stimuli = stimuli_of(5)
    found = ta.Activations.from_arrays(arrays, stimuli=stimuli)
    assert found.item_names == tuple(stimuli.items.index)
    assert found.stimuli_digest == stimuli.digest
    assert ta.Activations.from_arrays(arrays, items=list("abcde")).item_names == tuple("abcde")


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({}, {}, "arrays has no named layers"),
        ({"a": np.ones(3)}, {}, r"Layer 'a' has shape \(3,\): expected \(n_items, n_units\)"),
        ({"a": np.ones((0, 3))}, {}, r"shape \(0, 3\)"),
        ({"a": [["x"]]}, {}, "Layer 'a' is not an array of real numbers"),
        ({"a": np.ones((2, 3)), "b": np.ones((4, 3))}, {}, "Layer 'b' has 4 rows, the others 2"),
        ({"a": np.ones((2, 3))}, {"items": ["x"]}, "has 2 rows but 1 items"),
        ({"a": np.ones((2, 3))}, {"items": ["x", "x"]}, "not unique"),
        ({"a": np.ones((2, 3))}, {"items": ["x", "y"], "stimuli": stimuli_of(2)}, "not both"),
        ({"a": np.ones((2, 3))}, {"stimuli": stimuli_of(3)}, "has 2 rows but 3 items"),
        (
            {"a": [[1.0], [np.nan], [np.inf]]},
            {"items": list("xyz")},
            r"layer 'a' for item 'y' \(2 of 3 items\)",
        ),
    ],
)
def test_arrays_that_are_no_activations(arrays, options, message):
    with pytest.raises(InvalidInput, match=message):
        ta.Activations.from_arrays(arrays, **options)


def test_unknown_layer(arrays):
    with pytest.raises(UnknownName, match=r"There is no layer 'V2' in monkey. Known: V1, IT"):
        ta.Activations.from_arrays(arrays, system="monkey")["V2"]


def test_checking_the_stimuli(arrays):
    named, bare = (
        ta.Activations.from_arrays(arrays, stimuli=stimuli_of(5)),
        ta.Activations.from_arrays(arrays),
    )
    named.check_stimuli(stimuli_of(5))
    bare.check_stimuli(stimuli_of(5))
    with pytest.raises(StoreError, match="was shown other stimuli"):
        named.check_stimuli(stimuli_of(5, other=1.0))
    with pytest.raises(StoreError, match="has 5 rows but the stimuli have 6 items"):
        bare.check_stimuli(stimuli_of(6))


def test_rows_in_another_order_than_the_stimuli(arrays):
    stimuli = stimuli_of(5)
    names = [str(item) for item in stimuli.items.index]
    ta.Activations.from_arrays(arrays, items=names).check_stimuli(stimuli)
    turned = ta.Activations.from_arrays(arrays, items=names[::-1])
    with pytest.raises(StoreError, match="rows in another order than the stimuli: row 0 is"):
        turned.check_stimuli(stimuli)
    foreign = ta.Activations.from_arrays(arrays, items=["another", *names[1:]])
    foreign.check_stimuli(stimuli)  # these stimuli have no names to hold against it
    stimuli = ta.Stimuli(stimuli.features.set_axis(list("abcde")))
    with pytest.raises(StoreError, match="has other items than the stimuli: row 0 is 'another'"):
        foreign.check_stimuli(stimuli)


def test_rows_of_two_systems_in_different_orders(arrays):
    names = list("vwxyz")
    one = ta.Activations.from_arrays(arrays, system="one", items=names)
    two = ta.Activations.from_arrays(arrays, system="two", items=names[::-1])
    with pytest.raises(InvalidInput, match=r"row 0 is 'v' in the first and 'z' in the second: sort"):
        ta.similarity([one, two], measure="cka")
    counted = ta.Activations.from_arrays(arrays, system="counted")
    assert ta.similarity([one, counted], measure="cka").values[0, 2] == pytest.approx(1)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((5, 2)) + 1j, "real numbers .dtype complex128"),
        ([["1", "2"]] * 5, "real numbers .dtype <U1"),
        (np.ma.array(np.ones((5, 2)), mask=np.eye(5, 2)), "masked array with 2 values hidden"),
        (np.arange(10.0).reshape(5, 2) + 1e9, "differ by 8 beside values of 1e.09, and float32"),
        (np.arange(10.0).reshape(5, 2) * 1e300, "float32, in which activations are kept, would blur"),
    ],
)
def test_arrays_that_would_be_read_as_something_else(array, message):
    with pytest.raises(InvalidInput, match=message):
        ta.Activations.from_arrays({"V1": array})


def test_saved_and_opened(arrays, tmp_path):
    stimuli = stimuli_of(5)
    made = ta.Activations.from_arrays(arrays, system="monkey", stimuli=stimuli, metadata={"lab": "ours"})
    assert made.save(tmp_path / "m.zarr") == tmp_path / "m.zarr"
    found = ta.Activations.open(tmp_path / "m.zarr", stimuli=stimuli)
    assert (found.system, found.layers, found.item_names) == (made.system, made.layers, made.item_names)
    assert found.stimuli_digest == stimuli.digest
    assert found.metadata["lab"] == "ours"
    for layer in made:
        np.testing.assert_array_equal(found[layer], made[layer])
    with pytest.raises(StoreError, match="shown other stimuli"):
        ta.Activations.open(tmp_path / "m.zarr", stimuli=stimuli_of(5, other=1.0))


def test_any_zarr_reader_reads_it(saved, arrays):
    group = zarr.open_group(saved, mode="r")
    np.testing.assert_allclose(group["layers/1"][:], arrays["IT"], rtol=1e-6)
    assert list(group["items"][:]) == list("01234")
    assert group.attrs["thinkalike"]["layers"] == ["V1", "IT"]


def test_a_mapping_from_layers_to_vectors(arrays):
    made = ta.Activations.from_arrays(arrays, system="monkey")
    assert list(made.keys()) == list(made) == list(arrays)
    assert len(made) == 2
    assert made.n_items == 5
    for layer, vectors in made.items():
        np.testing.assert_array_equal(vectors, made[layer])
    as_dict = dict(made)
    assert list(as_dict) == ["V1", "IT"]
    np.testing.assert_array_equal(as_dict["IT"], arrays["IT"].astype(np.float32))
    assert "V1" in made
    assert made.get("V9") is None
    again = ta.Activations.from_arrays(made, system="again", items=made.item_names)
    np.testing.assert_array_equal(again["V1"], made["V1"])
    assert made == made  # and not by comparing arrays
    assert made != again
    assert len({made, again}) == 2


def test_object_stores(arrays):
    made = ta.Activations.from_arrays(arrays, system="monkey")
    made.save("memory://bucket/monkey.zarr")
    found = ta.Activations.open("memory://bucket/monkey.zarr")
    np.testing.assert_array_equal(found["V1"], made["V1"])
    with pytest.raises(StoreError, match=r"no Zarr group at memory://bucket/other.zarr"):
        ta.Activations.open("memory://bucket/other.zarr")


def test_chunks_of_an_object_store_do_not_share_their_memory():
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    store = writer("memory://bucket/chunks.zarr")
    store.write(0, {0: rows[:2]})
    store.write(1, {0: rows[2:]})
    np.testing.assert_array_equal(
        zarr.open_group("memory://bucket/chunks.zarr", mode="r")["layers/0"][:], rows
    )


def test_saving_never_overwrites(saved, arrays, tmp_path):
    with pytest.raises(StoreError, match=r"There are activations at .* already"):
        ta.Activations.from_arrays({k: v + 1 for k, v in arrays.items()}).save(saved)
    before = {path: path.read_bytes() for path in saved.rglob("*") if path.is_file()}
    assert ta.Activations.from_arrays(arrays).save(saved) == saved  # the very same is there already
    assert {path: path.read_bytes() for path in saved.rglob("*") if path.is_file()} == before
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("all of it")
    with pytest.raises(StoreError, match="a folder with something else in it"):
        ta.Activations.from_arrays(arrays).save(tmp_path / "full")


# Damage


def test_a_lost_chunk(saved):
    (saved / "layers/1/c/0/0").unlink()
    found = open_store(saved)
    assert found["V1"].shape == (5, 3)
    with pytest.raises(StoreError, match="damaged: rows of layer 'IT' are lost"):
        found["IT"]


def test_a_changed_byte(saved):
    chunk = saved / "layers/0/c/0/0"
    content = bytearray(chunk.read_bytes())
    content[5] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(StoreError, match=r"is damaged .*checksum.* delete it and extract again"):
        open_store(saved)["V1"]


def test_a_cut_off_chunk(saved):
    chunk = saved / "layers/0/c/0/0"
    chunk.write_bytes(chunk.read_bytes()[:7])
    with pytest.raises(StoreError, match="is damaged"):
        open_store(saved)["V1"]


def read_all(path):
    found = open_store(path)
    return {layer: found[layer] for layer in found.layers}


STATIC = ["zarr.json", "layers/zarr.json", "layers/0/zarr.json", "done/zarr.json", "done/seals.json"]
STATIC += ["positions/c/0", "items/c/0", "items/zarr.json", "positions/zarr.json"]


@pytest.mark.parametrize("name", STATIC)
def test_damage_to_what_describes_the_layers(saved, name):
    whole = (saved / name).read_bytes()
    damages = [whole[:-1], whole[: len(whole) // 2], b"", b"{", b"[" * 50_000, whole + b" ", None]
    damages += [
        whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :] for k in range(0, len(whole), 1 + len(whole) // 40)
    ]
    for damaged in damages:
        (saved / name).unlink() if damaged is None else (saved / name).write_bytes(damaged)
        with pytest.raises(StoreError, match=r"delete .* extract again|no store|no Zarr group"):
            open_store(saved)
        (saved / name).write_bytes(whole)
    open_store(saved)


@pytest.mark.parametrize("name", ["layers/0/c/0/0", "layers/1/c/0/0", "done/c/0/0"])
def test_damage_to_any_byte_of_a_chunk(saved, name):
    whole = (saved / name).read_bytes()
    for k in range(0, len(whole), 1 + len(whole) // 40):
        (saved / name).write_bytes(whole[:k] + bytes([whole[k] ^ 16]) + whole[k + 1 :])
        with pytest.raises(StoreError, match=r"is damaged .* delete it and extract again"):
            read_all(saved)


def test_damaged_chunks_are_found(saved):
    chunk = saved / "layers/1/c/0/0"
    whole = chunk.read_bytes()
    for damaged in (whole[:-3], b"", whole[:9] + b"x" + whole[10:], None):
        chunk.unlink() if damaged is None else chunk.write_bytes(damaged)
        assert damaged_chunks(saved) == [0]
        chunk.write_bytes(whole)
    assert damaged_chunks(saved) == []


def test_another_format(saved):
    zarr.open_group(str(saved), mode="r+").attrs["thinkalike"] = {"format": 99}
    (saved / "done/seals.json").unlink()
    with pytest.raises(StoreError, match="has format 99"):
        open_store(saved)


def test_a_store_that_is_not_complete(saved):
    (saved / "done/c/0/0").unlink()
    with pytest.raises(StoreError, match=r"not complete \(0 of 1 chunks are there\)"):
        open_store(saved)


def test_nothing_there(tmp_path):
    with pytest.raises(StoreError, match="There is nothing at"):
        ta.Activations.open(tmp_path / "nowhere")
    with pytest.raises(StoreError, match="no store of activations at"):
        open_store(tmp_path / "nowhere")


# A disk that does not take it


def attributes():
    return {
        "key": "k",
        "shown": "s",
        "system": "m",
        "layers": [0],
        "stimuli_digest": None,
        "metadata": {"pooling": "last"},
    }


def writer(path, **changes):
    return Writer(
        path,
        attributes={**attributes(), **changes},
        items=["a", "b", "c"],
        positions=np.array([2, 0, 1]),
        n_units=[4],
        chunk_rows=2,
    )


def fail_with(code):
    async def set_(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    return set_


def test_a_full_disk(tmp_path, monkeypatch):
    path = tmp_path / "m.zarr"
    store = writer(path)
    store.write(0, {0: np.ones((2, 4), np.float32)})
    with monkeypatch.context() as full:
        full.setattr("zarr.storage.LocalStore.set", fail_with(errno.ENOSPC))
        with pytest.raises(StoreError, match=r"The disk is full: .* What was finished is kept"):
            store.write(1, {0: np.full((1, 4), 2.0, np.float32)})
    assert store.is_done(0)
    assert not store.is_done(1)
    again = writer(path)
    assert again.is_done(0)
    again.write(1, {0: np.full((1, 4), 2.0, np.float32)})
    np.testing.assert_array_equal(open_store(path)[0][:, 0], [1, 2, 1])
    assert not list(path.rglob("*.partial"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_disk_that_is_really_full(tmp_path):
    store = writer(tmp_path / "m.zarr")
    chunk = tmp_path / "m.zarr/layers/0/c/0"
    chunk.parent.mkdir(parents=True, exist_ok=True)
    real_open = Path.open

    def open_full(self, mode="r", *args, **kwargs):
        return real_open(Path("/dev/full") if self.suffix == ".partial" else self, mode, *args, **kwargs)

    with pytest.MonkeyPatch.context() as full:
        full.setattr(Path, "open", open_full)
        with pytest.raises(StoreError, match="The disk is full"):
            store.write(0, {0: np.ones((2, 4), np.float32)})


def test_a_disk_that_may_not_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr("zarr.storage.LocalStore.set", fail_with(errno.EACCES))
    with pytest.raises(StoreError, match="cannot be written: Permission denied"):
        writer(tmp_path / "m.zarr")


def test_leftovers_of_killed_processes_are_swept(tmp_path):
    writer(tmp_path / "m.zarr")
    left = tmp_path / "m.zarr/layers/x.1.partial"
    left.write_bytes(b"half")
    with owning_store(tmp_path / "m.zarr", attributes()):
        assert not left.exists()


def test_killed_while_writing_the_very_first_file(tmp_path):
    path = tmp_path / "m.zarr"
    path.mkdir()
    (path / "zarr.1234.partial").write_bytes(b"half")
    writer(path).write(0, {0: np.ones((2, 4), np.float32)})


def test_a_store_of_something_else(tmp_path):
    path = tmp_path / "m.zarr"
    writer(path)
    writer(path)
    with pytest.raises(StoreError, match="was made from other stimuli"):
        writer(path, key="other", shown="other")
    with pytest.raises(StoreError, match=r"in another way \(different: pooling\)"):
        writer(path, key="other", metadata={"pooling": "mean"})
    with pytest.raises(StoreError, match=r"different: the model's files"):
        writer(path, key="other")
    zarr.create_group(tmp_path / "foreign.zarr")
    with pytest.raises(StoreError, match="not a store of activations of ours"):
        writer(tmp_path / "foreign.zarr")


def test_a_store_of_another_shape(tmp_path):
    path = tmp_path / "m.zarr"
    writer(path)
    with pytest.raises(StoreError, match="items differs in its shape"):
        Writer(path, attributes=attributes(), items=["a"], positions=np.array([0]), n_units=[4], chunk_rows=2)
    with pytest.raises(StoreError, match="layers/0 differs in its chunks"):
        Writer(
            path,
            attributes=attributes(),
            items=["a", "b", "c"],
            positions=np.array([2, 0, 1]),
            n_units=[4],
            chunk_rows=3,
        )
