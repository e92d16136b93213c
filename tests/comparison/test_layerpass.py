"""A layer is read once for everything that a comparison says of it, and the features are coded once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thinkalike as ta
from thinkalike.activations import Activations
from thinkalike.comparison import compare, profile
from thinkalike.stimuli import feature_coding


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, Any]]:
    """How often each layer of each system is read."""
    found: Counter[tuple[str, Any]] = Counter()
    read = Activations.__getitem__

    def count(self: Activations, layer: Any) -> Any:
        found[self.system, layer] += 1
        return read(self, layer)

    monkeypatch.setattr(Activations, "__getitem__", count)
    return found


def shown() -> tuple[ta.Stimuli, list[Activations]]:
    stimuli = ta.Stimuli.from_grammar(n_sentences=40, seed=0)
    rng = np.random.default_rng(0)
    made = [
        Activations.from_arrays(
            {layer: rng.normal(size=(len(stimuli), 6)).astype(np.float32) for layer in range(n_layers)},
            system=name,
            stimuli=stimuli,
        )
        for name, n_layers in (("a", 2), ("b", 3))
    ]
    return stimuli, made


@pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")
@pytest.mark.parametrize("resamples", [0, 3])
def test_a_layer_is_read_once(reads: Counter[tuple[str, Any]], resamples: int) -> None:
    stimuli, systems = shown()
    compare(systems, stimuli, measures=["cka", "procrustes"], resamples=resamples)
    assert reads == {("a", 0): 1, ("a", 1): 1, ("b", 0): 1, ("b", 1): 1, ("b", 2): 1}


@pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")
def test_a_layer_of_a_store_is_read_once(reads: Counter[tuple[str, Any]], tmp_path: Path) -> None:
    stimuli, systems = shown()
    stores = [ta.Activations.open(one.save(tmp_path / f"{one.system}.zarr")) for one in systems]
    reads.clear()
    compare(stores, stimuli)
    assert set(reads.values()) == {1}
    assert len(reads) == 5


@pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")
def test_features_are_coded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    coded = []
    code = feature_coding._code

    def note(column: Any, *options: Any) -> Any:
        coded.append(column.name)
        return code(column, *options)

    monkeypatch.setattr(feature_coding, "_code", note)
    stimuli, systems = shown()
    compare(systems, stimuli, resamples=2)
    assert sorted(coded) == sorted(stimuli.features)


@pytest.mark.filterwarnings("ignore::thinkalike.comparison.cautions.CautionWarning")
def test_the_pass_gives_what_each_part_gives_alone() -> None:
    stimuli, systems = shown()
    together = compare(systems, stimuli, measures=["cka"], resamples=3)
    for one in systems:
        alone, made = profile(one, stimuli, resamples=3), together.profiles[one.system]
        np.testing.assert_array_equal(made.importance, alone.importance)
        assert made.replicates is not None
        assert alone.replicates is not None
        np.testing.assert_array_equal(made.replicates.importance, alone.replicates.importance)
    for measure in ("rsa", "cka"):
        np.testing.assert_allclose(
            together.matrices[measure].values, ta.similarity(systems, measure=measure).values, atol=1e-12
        )
