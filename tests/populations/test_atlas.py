"""The atlas: a folder or an object store of fingerprints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thinkalike as ta
from thinkalike.errors import DamagedFile, InvalidInput, UnknownName
from thinkalike.files import packed_arrays, unpacked_arrays, with_seal
from thinkalike.populations.atlas_store import AtlasStore
from thinkalike.populations.fingerprint_files import fingerprint_bytes
from thinkalike.systems.bundled import names

SOME = ("nano-pythia-64", "nano-pythia-96", "nano-gpt2")


def named(fingerprint: ta.Fingerprint, name: str) -> ta.Fingerprint:
    return replace(fingerprint, profile=replace(fingerprint.profile, system=name))


@pytest.fixture(params=["folder", "memory"])
def atlas(request: pytest.FixtureRequest, tmp_path: Path) -> ta.Atlas:
    """Three models, in a folder and in an object store."""
    address = tmp_path / "atlas" if request.param == "folder" else f"memory://{tmp_path.name}/atlas"
    made = ta.Atlas(address)
    for one in ta.Atlas().fingerprints(SOME):
        made.add(one)
    return made


@pytest.mark.parametrize("stimuli", ["words-1", "sentences-1"])
def test_the_bundled_models_are_there_and_small(stimuli: str) -> None:
    atlas = ta.Atlas(stimuli=stimuli)
    n = len(names(revisions=True))
    assert len(atlas) == n
    for one in atlas.fingerprints():
        assert len(fingerprint_bytes(one)) <= 20_000 * len(one.layers), one.name
    assert repr(atlas) == f"Atlas(bundled models: {n} models on {stimuli})"
    with pytest.raises(InvalidInput, match="The bundled fingerprints stay as they are: name a folder"):
        atlas.add("nano-gpt2")
    with pytest.raises(InvalidInput, match="stay as they are"):
        atlas.remove("nano-gpt2")


def test_nearest_is_the_best_of_all_pairs() -> None:
    atlas = ta.Atlas()
    every = atlas.distances()
    for name in atlas.names[::5]:
        found, expected = atlas.nearest(name, 3), every.nearest(name, 3)
        assert found["model"].tolist() == expected["model"].tolist()
        np.testing.assert_allclose(found["distance"], expected["distance"], atol=1e-9)
    assert atlas.nearest("nano-gpt2", 2, by="warped")["model"].tolist() == (
        atlas.distances(by="warped").nearest("nano-gpt2", 2)["model"].tolist()
    )


def test_adding_removing_and_finding(atlas: ta.Atlas) -> None:
    assert atlas.names == sorted(SOME)
    again = ta.Atlas(atlas.store.address)
    assert again.nearest("nano-pythia-64", 1)["model"].item() in SOME
    other = named(ta.Atlas()["nano-bert"], "org/bert")
    again.add(other)
    assert "org/bert" in atlas.names  # the index of the first is old, and it knows
    assert atlas["org/bert"].name == "org/bert"
    atlas.remove("org/bert")
    assert again.names == sorted(SOME)
    np.testing.assert_array_equal(
        atlas["nano-gpt2"].profile.importance, ta.Atlas()["nano-gpt2"].profile.importance
    )


def test_adding_one_reads_one(atlas: ta.Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index knows the others: an atlas that is opened anew reads only what came since."""
    assert atlas.names == sorted(SOME)
    atlas.add(named(ta.Atlas()["nano-bert"], "new"))
    opened = ta.Atlas(atlas.store.address)
    read: list[Path] = []
    plain = AtlasStore.read
    monkeypatch.setattr(AtlasStore, "read", lambda self, path: (read.append(path), plain(self, path))[1])
    assert opened.names == sorted([*SOME, "new"])
    assert [path.name for path in read] == ["words-1.index.npz", "new.npz"]
    read.clear()
    assert opened.names == ta.Atlas(atlas.store.address).names
    assert [path.name for path in read] == ["words-1.index.npz"]


def test_a_model_that_was_replaced_is_read_again(atlas: ta.Atlas) -> None:
    before = atlas.nearest("nano-pythia-64", 2).set_index("model")["distance"]
    other = ta.Atlas(atlas.store.address)
    other.add(named(ta.Atlas()["nano-bert"], "nano-gpt2"))
    after = atlas.nearest("nano-pythia-64", 2).set_index("model")["distance"]
    assert after["nano-pythia-96"] == before["nano-pythia-96"]
    assert after["nano-gpt2"] != before["nano-gpt2"]


def test_a_model_of_no_atlas_has_neighbours(atlas: ta.Atlas) -> None:
    found = atlas.nearest(named(ta.Atlas()["nano-pythia-64"], "mine"), 1)
    assert found["model"].item() == "nano-pythia-64"


def test_a_file_is_added(atlas: ta.Atlas, tmp_path: Path) -> None:
    path = named(ta.Atlas()["nano-bert"], "theirs").save(tmp_path / "theirs")
    atlas.add(path)
    assert "theirs" in atlas.names
    with pytest.raises(InvalidInput, match="facts= is for models, and this is a fingerprint already"):
        atlas.add(path, facts={})


def test_a_damaged_index_is_made_anew(atlas: ta.Atlas) -> None:
    before = atlas.nearest("nano-gpt2", 2)
    atlas.store.write(atlas.store.index("words-1"), b"nonsense")
    pd.testing.assert_frame_equal(ta.Atlas(atlas.store.address).nearest("nano-gpt2", 2), before)


@pytest.mark.parametrize(
    "change",
    [
        lambda names, vectors: (names, vectors[:, :3]),
        lambda names, vectors: (names, vectors * np.float32(np.nan)),
        lambda names, vectors: (names, vectors.astype(np.float64)),
        lambda names, vectors: (names, vectors[0, 0]),
        lambda names, vectors: ([f"{name}\x1b[2J" for name in names], vectors),
        lambda names, vectors: ([1, 2, 3], vectors),
    ],
)
def test_the_index_of_a_stranger_is_not_believed(tmp_path: Path, change: Any) -> None:
    """An atlas may be theirs too. What an index of the right seal cannot be is made anew."""
    atlas = ta.Atlas(tmp_path / "atlas")
    for one in ta.Atlas().fingerprints(SOME):
        atlas.add(one)
    expected = atlas.nearest("nano-gpt2", 2)
    place = atlas.store.index("words-1")
    arrays, about = unpacked_arrays(place.read_bytes())
    names, vectors = change(about["names"], arrays["vectors"])
    packed = packed_arrays({"vectors": np.asarray(vectors)}, about={**about, "names": names})
    place.write_bytes(with_seal(packed, last=True))
    opened = ta.Atlas(atlas.store.address)
    assert opened.names == sorted(SOME)
    pd.testing.assert_frame_equal(opened.nearest("nano-gpt2", 2), expected)


def test_a_file_that_was_put_there_by_hand(tmp_path: Path) -> None:
    atlas = ta.Atlas(tmp_path / "atlas")
    one = ta.Atlas()["nano-gpt2"]
    atlas.add(one)
    one.save(tmp_path / "atlas" / "words-1" / "mine")
    with pytest.raises(DamagedFile, match=r"mine\.npz holds nano-gpt2 on words-1, which belongs elsewhere"):
        assert ta.Atlas(tmp_path / "atlas").names


def test_what_is_refused(atlas: ta.Atlas, tmp_path: Path) -> None:
    other = ta.Atlas(stimuli="sentences-1")["nano-gpt2"]
    with pytest.raises(InvalidInput, match="was shown sentences-1, and this atlas is of words-1: open"):
        atlas.add(other)
    with pytest.raises(InvalidInput, match="other stimuli, other numbers"):
        atlas.nearest(other)
    with pytest.raises(UnknownName, match=r"no model 'nano-gtp2' in this atlas. Did you mean 'nano-gpt2'"):
        atlas["nano-gtp2"]
    with pytest.raises(UnknownName, match="no set of reference stimuli"):
        ta.Atlas(stimuli="words-9")
    with pytest.raises(InvalidInput, match="nonsense://x is an address of no kind that is known"):
        ta.Atlas("nonsense://x")
    empty = ta.Atlas(tmp_path / "empty")
    assert (len(empty), empty.names) == (0, [])
    constant = ta.Atlas()["nano-gpt2"]
    profile = replace(constant.profile, importance=constant.profile.importance * np.nan)
    with pytest.raises(InvalidInput, match="has a layer without importances"):
        atlas.add(replace(constant, profile=profile))
    atlas.store.write(atlas.store.path("words-1", "bad"), b"nonsense")
    with pytest.raises(DamagedFile, match="is damaged, or is no fingerprint"):
        ta.Atlas(atlas.store.address)["bad"]


def test_facts_and_a_table_of_ones_own() -> None:
    atlas = ta.Atlas()
    facts = atlas.facts(pd.DataFrame({"corpus": {"nano-gpt2": "web"}}))
    assert facts.loc["nano-gpt2", "corpus"] == "web"
    assert facts.loc["nano-pythia-64", "depth"] == 2
    with pytest.raises(UnknownName, match="no model 'gpt3' in this atlas"):
        atlas.facts(pd.DataFrame({"corpus": {"gpt3": "web"}}))
    with pytest.raises(InvalidInput, match="two rows of nano-gpt2: give each model one"):
        atlas.facts(pd.DataFrame({"corpus": ["web", "books"]}, index=["nano-gpt2", "nano-gpt2"]))
    with pytest.raises(InvalidInput, match="has 0 models and 1 facts: give a row for each model"):
        atlas.facts(pd.DataFrame({"corpus": []}))
    with pytest.raises(InvalidInput, match="has 1 models and 0 facts: give a row for each model"):
        atlas.facts(pd.DataFrame(index=["nano-gpt2"]))


def test_an_atlas_on_s3(bucket: str) -> None:
    """A server of that protocol on loopback: adding, finding, replacing, removing, by two who opened it."""
    atlas, bundled = ta.Atlas(bucket), ta.Atlas()
    for name in SOME:
        atlas.add(bundled[name])
    other = ta.Atlas(bucket)
    assert other.names == sorted(SOME)
    other.add(named(bundled["nano-bert"], "nano-gpt2"))
    expected = bundled.nearest(named(bundled["nano-bert"], "nobody"), len(bundled)).set_index("model")[
        "distance"
    ]
    found = atlas.nearest("nano-gpt2", 2).set_index("model")["distance"]
    for name in found.index:
        assert found[name] == pytest.approx(expected[name])
    atlas.remove("nano-gpt2")
    assert other.names == ["nano-pythia-64", "nano-pythia-96"]
