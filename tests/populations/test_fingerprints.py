"""Fingerprints: what they keep, what two of them say together, and what is refused."""

from __future__ import annotations

import json
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


STRANGE = {
    "another format": (lambda a, w: w.update(format=9), "a fingerprint of format 9, 3 was expected"),
    "other stimuli": (lambda a, w: w.update(stimuli_digest="0" * 64), "that this version does not have"),
    "escape codes": (lambda a, w: w.update(system="gpt\x1b[2J"), "words with control characters"),
    "codes in facts": (lambda a, w: w.update(facts={"family": ["\x07"]}), "control characters"),
    "other features": (lambda a, w: w.update(features=["a"]), "its features are not those of words-1"),
    "a layer that is none": (lambda a, w: w.update(layers=[0.5, 1, 2]), "0.5 names no layer"),
    "too many words": (lambda a, w: w.update(facts={"x": "y" * 300_000}), "more than 200,000 characters"),
    "another shape": (lambda a, w: a.update(importance=np.zeros((1, 2, 3))), "importance is float64"),
    "infinite": (lambda a, w: a.update(scores=a["scores"] + np.inf), "scores is float64"),
    "another kind": (lambda a, w: a.update(gram=a["gram"].astype(float)), "gram is float64"),
    "out of range": (lambda a, w: a.update(gram=np.full_like(a["gram"], 25)), "out of range"),
    "too large": (lambda a, w: a.update(more=np.zeros(10_000_000)), "bytes when unpacked, at most"),
}


@pytest.mark.parametrize("case", STRANGE)
def test_what_a_stranger_sends_is_checked(fingerprints: dict[str, Fingerprint], case: str) -> None:
    change, message = STRANGE[case]
    data = _changed(fingerprint_bytes(fingerprints["nano-pythia-64"]), change)
    with pytest.raises(DamagedFile, match=message):
        fingerprint_from(data, "theirs.npz")


def test_objects_are_not_loaded(fingerprints: dict[str, Fingerprint]) -> None:
    import io
    import zipfile

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
