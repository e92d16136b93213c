"""The fingerprints that the package carries are those of its models."""

from __future__ import annotations

import numpy as np

import thinkalike as ta
from thinkalike.systems import bundled
from training.fingerprints import facts_of


def test_the_bundled_atlas_is_of_the_bundled_models() -> None:
    for stimuli in ("words-1", "sentences-1"):
        assert set(ta.Atlas(stimuli=stimuli).names) == set(bundled.names(revisions=True))
    assert facts_of(bundled.card("nano-gelu-3l-seed1"))["family"] == "nano-gelu"
    assert facts_of(bundled.card("nano-pythia-64@step250"))["family"] == "nano-pythia"


def test_one_made_anew_is_the_one_that_is_kept() -> None:
    kept = ta.Atlas(stimuli="sentences-1")["nano-pythia-64"]
    card = bundled.card("nano-pythia-64")
    made = ta.fingerprint("nano-pythia-64", "sentences-1", facts=facts_of(card))
    assert dict(made.facts) == dict(kept.facts)
    np.testing.assert_allclose(made.profile.importance, kept.profile.importance, atol=1e-6)
    assert (made.sketch.ranks == kept.sketch.ranks).mean() > 0.999
    assert (made.sketch.gram == kept.sketch.gram).mean() > 0.999
