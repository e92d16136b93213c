"""The fingerprints that the package carries are those of its models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import thinkalike as ta
from thinkalike.errors import UnknownName
from thinkalike.systems import bundled
from training.fingerprints import facts_of, write_fingerprints


def test_the_bundled_atlas_is_of_the_bundled_models() -> None:
    for stimuli in ("words-1", "sentences-1"):
        assert set(ta.Atlas(stimuli=stimuli).names) == set(bundled.names(revisions=True))
    assert facts_of(bundled.card("nano-gelu-3l-seed1"))["family"] == "nano-gelu"
    assert facts_of(bundled.card("nano-pythia-64@step250"))["family"] == "nano-pythia"
    gpt2 = bundled.card("nano-gpt2")
    for other in ("nopos", "rotary", "seed1"):
        known = facts_of(replace(gpt2, name=f"nano-gpt2-{other}"))
        assert known["family"] == "nano-gpt2"
        assert known.get("positions") == ("none" if other == "nopos" else None)


def test_one_of_an_unknown_model_is_refused() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'nano-gpt2'"):
        write_fingerprints(["nano-gtp2"])


def test_one_made_anew_is_the_one_that_is_kept() -> None:
    kept = ta.Atlas(stimuli="sentences-1")["nano-pythia-64"]
    card = bundled.card("nano-pythia-64")
    made = ta.fingerprint("nano-pythia-64", "sentences-1", facts=facts_of(card))
    assert dict(made.facts) == dict(kept.facts)
    np.testing.assert_allclose(made.profile.importance, kept.profile.importance, atol=1e-6)
    assert (made.sketch.ranks == kept.sketch.ranks).mean() > 0.999
    assert (made.sketch.gram == kept.sketch.gram).mean() > 0.999
