"""Fingerprints: what they keep, what two of them say together, and what is refused."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import weightedtau

import thinkalike as ta
from thinkalike.activations import Activations
from thinkalike.errors import DamagedFile, InvalidInput, ThinkalikeError, UnknownName
from thinkalike.files import packed_arrays, unpacked_arrays, with_seal
from thinkalike.populations import Fingerprint, reference
from thinkalike.populations import reference_sets as sets
from thinkalike.populations.fingerprint_files import fingerprint_bytes, fingerprint_from
from thinkalike.populations.fingerprint_record import similarity_of
from thinkalike.populations.model_facts import positions_of

PAIR = ("nano-pythia-64", "nano-gelu-3l")


@pytest.mark.parametrize("name", ["words-1", "sentences-1"])
def test_a_reference_is_what_its_grammar_made_and_stays(name: str) -> None:
    assert reference(name).digest == sets.DIGESTS[name]


def test_an_unknown_reference_is_named() -> None:
    with pytest.raises(UnknownName, match=r"no set of reference stimuli 'words-2'.*words-1"):
        reference("words-2")


def test_a_changed_reference_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ta.Stimuli.from_grammar(20).save(tmp_path / "words-1.parquet")
    monkeypatch.setattr(sets, "FOLDER", tmp_path)
    sets.reference.cache_clear()
    with pytest.raises(DamagedFile, match=r"is not the words-1 of this version: install thinkalike again"):
        reference("words-1")
    sets.reference.cache_clear()


def test_tau_of_two_fingerprints_is_that_of_the_profiles(
    fingerprints: dict[str, Fingerprint], tmp_path: Path
) -> None:
    loaded = [Fingerprint.load(fingerprints[name].save(tmp_path / name)) for name in PAIR]
    found = similarity_of(loaded)
    for i, (a, la) in enumerate(found.rows):
        for j, (b, lb) in enumerate(found.rows):
            x, y = (fingerprints[s].profile.table().loc[layer].to_numpy() for s, layer in ((a, la), (b, lb)))
            if (np.unique(x).size, np.unique(y).size) == (len(x), len(y)):  # scipy breaks ties by place
                assert found.values[i, j] == pytest.approx(weightedtau(x, y).statistic, abs=1e-12)
    direct = ta.similarity([fingerprints[name].profile for name in PAIR])
    np.testing.assert_array_equal(found.values, direct.values)
    assert found.p_block is not None
    assert direct.p_block is not None
    np.testing.assert_array_equal(found.p_block, direct.p_block)
    np.testing.assert_allclose(found.low, direct.low, atol=2e-3)  # resamples are kept in single precision
    np.testing.assert_allclose(loaded[0].reliability, fingerprints[PAIR[0]].reliability, atol=1e-6)


@pytest.mark.parametrize("measure", ["rsa", "cka"])
def test_geometry_of_two_fingerprints_is_near_the_exact_one(
    activations: dict[str, Activations], fingerprints: dict[str, Fingerprint], measure: str
) -> None:
    found = similarity_of([fingerprints[name] for name in PAIR], measure=measure)
    exact = ta.similarity([activations[name] for name in PAIR], measure=measure)
    cells = np.triu_indices(len(found.rows), k=1)
    assert np.mean(np.abs(found.values - exact.values)[cells] <= 0.02) >= 0.95
    assert found.low is not None
    assert found.high is not None
    assert np.mean(((found.low <= exact.values) & (exact.values <= found.high))[cells]) >= 0.95
    np.testing.assert_allclose(np.diag(found.values), 1.0, atol=1e-6)


def test_size_of_a_layer(fingerprints: dict[str, Fingerprint]) -> None:
    for one in fingerprints.values():
        assert len(fingerprint_bytes(one)) <= 20_000 * len(one.layers)


def test_other_stimuli_are_refused(fingerprints: dict[str, Fingerprint]) -> None:
    first = fingerprints["nano-pythia-64"]
    other = replace(fingerprints["nano-gelu-3l"], reference="sentences-1")
    with pytest.raises(InvalidInput, match="was shown words-1 and nano-gelu-3l sentences-1: other stimuli"):
        first.similarity(other)
    with pytest.raises(InvalidInput, match="nano-pythia-64 comes twice"):
        first.similarity(first)
    with pytest.raises(UnknownName, match="no measure of fingerprints 'procrustes'"):
        first.similarity(fingerprints["nano-gelu-3l"], measure="procrustes")
    with pytest.raises(InvalidInput, match="no fingerprints"):
        similarity_of([])


def test_activations_of_other_items_are_refused() -> None:
    with pytest.raises(ThinkalikeError, match="1749"):
        ta.fingerprint({0: np.zeros((10, 3))})
    with pytest.raises(UnknownName, match="no option of extract 'poling'"):
        ta.fingerprint("nano-pythia-64", poling="mean")


def test_facts_come_from_the_configuration() -> None:
    from transformers import AutoConfig

    from thinkalike.populations.model_facts import model_facts
    from thinkalike.systems import bundled

    config = AutoConfig.from_pretrained(bundled.resolve("nano-bert"))
    facts = model_facts(config)
    card = bundled.card("nano-bert")
    assert (facts["depth"], facts["width"], facts["heads"]) == (card.layers, card.width, card.heads)
    assert (facts["architecture"], facts["norm"], facts["positions"]) == ("modernbert", "layer", "rotary")
    assert facts["parameters"] > 10_000


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"model_type": "mamba"}, "none"),
        ({"model_type": "llama", "rope_theta": 1e4}, "rotary"),
        ({"model_type": "bloom"}, "alibi"),
        ({"model_type": "t5", "relative_attention_num_buckets": 32}, "relative"),
        ({"model_type": "bert", "position_embedding_type": "relative_key"}, "relative_key"),
        ({"model_type": "gpt2", "n_positions": 1024}, "learned"),
        ({"model_type": "other"}, None),
    ],
)
def test_positions(config: dict[str, object], expected: str | None) -> None:
    assert positions_of(type("Config", (), config)()) == expected


def _changed(data: bytes, change: Callable[[dict[str, np.ndarray], dict[str, object]], None]) -> bytes:
    """The file of a stranger: changed, and sealed again."""
    arrays, about = unpacked_arrays(data)
    change(arrays, about)
    return with_seal(packed_arrays(arrays, about=about), last=True)


def _nested(depth: int) -> object:
    inner: object = "x"
    for _ in range(depth):
        inner = [inner]
    return inner


STRANGE = {
    "another format": (lambda a, w: w.update(format=9), "a fingerprint of format 9, 3 was expected"),
    "other stimuli": (lambda a, w: w.update(stimuli_digest="0" * 64), "that this version does not have"),
    "a list of stimuli": (lambda a, w: w.update(reference=["words-1"]), "that this version does not have"),
    "a path for stimuli": (lambda a, w: w.update(reference="../words-1"), "that this version does not have"),
    "escape codes": (lambda a, w: w.update(system="gpt\x1b[2J"), "words with control characters"),
    "text turned around": (lambda a, w: w.update(system="gpt\u202e2"), "words with control characters"),
    "codes in facts": (lambda a, w: w.update(facts={"family": ["\x07"]}), "control characters"),
    "no name": (lambda a, w: w.update(system=" "), "the name of the system is ' '"),
    "a list for a name": (lambda a, w: w.update(system=["a"]), "the name of the system is"),
    "a long name": (lambda a, w: w.update(system="x" * 5000), "1 to 200 characters"),
    "other features": (lambda a, w: w.update(features=["a"]), "its features are not those of words-1"),
    "features in another order": (lambda a, w: w["features"].reverse(), "its features are not those"),
    "a layer that is none": (lambda a, w: w.update(layers=[0.5, 1, 2]), "0.5 names no layer"),
    "a layer that is a truth": (lambda a, w: w.update(layers=[True, 1, 2]), "True names no layer"),
    "a layer below 0": (lambda a, w: w.update(layers=[-1, 1, 2]), "-1 names no layer"),
    "no layers": (lambda a, w: w.update(layers=[]), "a list of one or more was expected"),
    "layers as text": (lambda a, w: w.update(layers="012"), "a list of one or more was expected"),
    "a layer twice": (lambda a, w: w.update(layers=[0, 1, "1"]), "two layers of one name"),
    "too many words": (lambda a, w: w.update(versions={"x": "y" * 300_000}), "more than 200,000 characters"),
    "words in words": (lambda a, w: w.update(facts={"x": _nested(50)}), "nested more than 20 times"),
    "deep words": (lambda a, w: w.update(facts={"x": _nested(150)}), "nested more than 20 times"),
    "facts as a list": (lambda a, w: w.update(facts=[1]), "facts are a list"),
    "no facts": (lambda a, w: w.update(facts=None), "facts are a NoneType"),
    "a fact of many": (lambda a, w: w.update(facts={"depth": [1, 2]}), "the fact 'depth' is"),
    "a fact of names": (lambda a, w: w.update(facts={"depth": {"a": 1}}), "the fact 'depth' is"),
    "a huge fact": (lambda a, w: w.update(facts={"depth": 10**400}), "the fact 'depth' is"),
    "a long fact": (lambda a, w: w.update(facts={"depth": "x" * 2000}), "the fact 'depth' is"),
    "settings as text": (lambda a, w: w.update(settings="x"), "settings are a str"),
    "metadata as a list": (lambda a, w: w.update(metadata=[1]), "metadata are a list"),
    "no parts": (lambda a, w: w.update(parts=0), "0 parts of the sentences"),
    "parts as text": (lambda a, w: w.update(parts="x"), "'x' parts of the sentences"),
    "another shape": (lambda a, w: a.update(importance=np.zeros((1, 2, 3))), "importance is float64"),
    "no shape": (lambda a, w: a.update(scores=np.array(3.0)), "IndexError"),
    "no folds": (lambda a, w: a.update(scores=a["scores"][:, :0]), "importances of no folds"),
    "no resamples": (lambda a, w: a.update(halves=a["halves"][:0]), "halves is float32"),
    "no sketch": (lambda a, w: a.pop("gram"), "KeyError"),
    "infinite": (lambda a, w: a.update(scores=a["scores"] + np.inf), "scores has numbers beyond"),
    "not a number": (lambda a, w: a.update(importance=a["importance"] * np.nan), "without a number"),
    "a hole": (lambda a, w: a["resampled_importance"].__setitem__((0, 0, 0), np.nan), "without a number"),
    "half precision": (lambda a, w: a.update(scores=a["scores"].astype(np.float16)), "scores is float16"),
    "huge": (lambda a, w: a.update(scores=a["scores"] * 0 + 1e300), "scores has numbers beyond"),
    "texts for numbers": (lambda a, w: a.update(scores=a["scores"].astype(str)), "scores is <U32"),
    "complex numbers": (lambda a, w: a.update(scores=a["scores"].astype(complex)), "scores is complex128"),
    "another kind": (lambda a, w: a.update(gram=a["gram"].astype(float)), "gram is float64"),
    "out of range": (lambda a, w: a.update(gram=np.full_like(a["gram"], 25)), "out of range"),
    "too large": (lambda a, w: a.update(more=np.zeros(10_000_000)), "bytes when unpacked, at most"),
}


@pytest.mark.parametrize("case", STRANGE)
def test_what_a_stranger_sends_is_checked(fingerprints: dict[str, Fingerprint], case: str) -> None:
    change, message = STRANGE[case]
    data = _changed(fingerprint_bytes(fingerprints["nano-pythia-64"]), change)
    with pytest.raises(DamagedFile, match=message) as caught:
        fingerprint_from(data, "theirs.npz")
    assert len(str(caught.value)) < 400


def _zipped(files: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.comment = b"thinkalike-sha256:" + b"0" * 64
    return buffer.getvalue()


def _npy(shape: tuple[int, ...], body: bytes, kind: str = "<f8") -> bytes:
    """An .npy file with a header that says what it is told to."""
    header = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    header = header.ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body


DECEIVING = {
    "a header of a terabyte": lambda: _zipped({"scores.npy": _npy((10**12,), b"")}),
    "a header of two gigabytes": lambda: _zipped({"scores.npy": _npy((250_000_000,), b"")}),
    "a header below nothing": lambda: _zipped({"scores.npy": _npy((-1,), b"")}),
    "a header of brackets": lambda: _zipped(
        {"scores.npy": b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little") + b"[" * 9000}
    ),
    "objects": lambda: _zipped({"scores.npy": _npy((1,), b"\x80\x04.", "|O")}),
    "no array": lambda: _zipped({"scores.npy": b"hello"}),
    "a path": lambda: _zipped({"../../scores": _npy((1,), b"\0" * 8)}),
    "a bomb": lambda: _zipped({"scores.npy": _npy((10**8,), bytes(10**8), "|u1")}),
    "a bomb that lies": lambda: _zipped({"scores.npy": _npy((10**8,), bytes(10**8), "|u1")}).replace(
        (10**8 + 129).to_bytes(4, "little"), (200).to_bytes(4, "little")
    ),
    "packed otherwise": lambda: _zipped({"scores.npy": _npy((1,), b"\0" * 8)}, zipfile.ZIP_LZMA),
    "encrypted": lambda: _zipped({"scores.npy": _npy((1,), b"\0" * 8)}).replace(
        b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"
    ),
    "a torn packing": lambda: _torn(_zipped({"scores.npy": _npy((4000,), bytes(range(250)) * 128)})),
    "words in brackets": lambda: _zipped(
        {"about.npy": _npy((), ("[" * 90_000).encode("utf-32-le"), "<U90000")}
    ),
    "words that are a list": lambda: _zipped({"about.npy": _npy((), "[1]".encode("utf-32-le"), "<U3")}),
    "nothing": lambda: _zipped({}),
}
"""Archives that mislead those who unpack them, with a right seal"""


def _torn(data: bytes) -> bytes:
    return data[:60] + b"\xff" * 20 + data[80:]


@pytest.mark.parametrize("case", DECEIVING)
def test_an_archive_that_misleads_is_refused_in_one_line(case: str) -> None:
    data = with_seal(DECEIVING[case](), last=True)
    tracemalloc.start()
    with pytest.raises(DamagedFile, match=r"does not hold what belongs there") as caught:
        fingerprint_from(data, "theirs.npz")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert most < 20_000_000


def test_what_cannot_be_read_again_is_not_written(fingerprints: dict[str, Fingerprint]) -> None:
    made = replace(fingerprints["nano-pythia-64"], facts={"data": ["pile", "books"]})
    with pytest.raises(InvalidInput, match=r"cannot be written: the fact 'data' is \['pile', 'books'\]"):
        fingerprint_bytes(made)


def test_objects_are_not_loaded(fingerprints: dict[str, Fingerprint]) -> None:
    data = fingerprint_bytes(fingerprints["nano-pythia-64"])
    _, about = unpacked_arrays(data)
    buffer = io.BytesIO()
    np.savez(buffer, about=np.array(json.dumps(about)), scores=np.array([{"a": 1}], dtype=object))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = b"thinkalike-sha256:" + b"0" * 64
    with pytest.raises(DamagedFile, match="does not hold what belongs there"):
        fingerprint_from(with_seal(buffer.getvalue(), last=True), "theirs.npz")


def test_a_changed_byte_is_seen(fingerprints: dict[str, Fingerprint], tmp_path: Path) -> None:
    path = fingerprints["nano-pythia-64"].save(tmp_path / "one")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedFile, match="is damaged, or is no fingerprint: ask for it again"):
        Fingerprint.load(path)
    with pytest.raises(DamagedFile, match="is missing"):
        Fingerprint.load(tmp_path / "none.npz")


@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_noise_takes_no_more_and_comes_back_as_it_was(n_layers: int) -> None:
    """Nothing packs noise, and its layers foretell nothing of one another: the largest that layers can be."""
    rng = np.random.default_rng(0)
    made = ta.fingerprint(
        {k: rng.normal(size=(500, 12)) for k in range(n_layers)}, "sentences-1", name="noise"
    )
    real = ta.Atlas(stimuli="sentences-1")["nano-bert"]  # whose words are many
    made = replace(made, facts=real.facts, profile=replace(made.profile, metadata=real.profile.metadata))
    data = fingerprint_bytes(made)
    assert len(data) < 20_000 * len(made.layers)
    again = fingerprint_from(data, "noise.npz").sketch
    for field in ("ranks", "gram", "together"):
        np.testing.assert_array_equal(getattr(again, field), getattr(made.sketch, field))


def test_a_fingerprint_does_not_say_where_things_lie(
    fingerprints: dict[str, Fingerprint], tmp_path: Path
) -> None:
    """It is published: no folder of the machine that made it."""
    made = fingerprints["nano-pythia-64"]
    assert "/" not in json.dumps(dict(made.profile.metadata))
    np.save(tmp_path / "mine.npy", np.random.default_rng(0).normal(size=(500, 4)))
    of_a_file = ta.fingerprint(tmp_path / "mine.npy", "sentences-1")
    assert str(tmp_path) not in str(unpacked_arrays(fingerprint_bytes(of_a_file))[1])


def test_ranks_of_all_layers_come_back_whatever_they_are(fingerprints: dict[str, Fingerprint]) -> None:
    """They are kept as what the layers do not foretell: also where these foretell nothing."""
    made = fingerprints["nano-pythia-64"]
    rng = np.random.default_rng(0)
    other = rng.integers(0, 16, made.sketch.together.shape).astype(np.uint8)
    odd = replace(made, sketch=replace(made.sketch, together=other))
    np.testing.assert_array_equal(fingerprint_from(fingerprint_bytes(odd), "x").sketch.together, other)
