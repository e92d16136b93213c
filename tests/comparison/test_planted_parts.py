"""One head, expert, latent or state that carries number is found by its name."""

from __future__ import annotations

import numpy as np
import pytest

import thinkalike as ta
from tests import planted_models as planted

STIMULI = planted.stimuli()


def read(model, site, system):
    return ta.extract(model, STIMULI, processor=planted.tokenizer(), site=site, system=system)


def most_of(profile, feature):
    """The layer in which a feature matters most, and by how many times the next."""
    column = profile.table()[feature].sort_values(ascending=False)
    return column.index[0], column.iloc[0] / max(column.iloc[1], 1e-9)


def main_reason(a, layer_a, b, layer_b):
    """The feature that `explain` gives most weight to in what two layers share."""
    explained = ta.explain(a, layer_a, b, layer_b)
    assert explained.a == (a.system, layer_a)
    assert f"{a.system}:{layer_a}" in str(explained)
    assert f"{b.system}:{layer_b}" in str(explained)
    return explained.features[int(np.argmax(explained.contributions))]


def test_the_head_that_carries_number():
    one = ta.profile(read(planted.with_a_head(2, 1), "heads", "one"), STIMULI)
    other = ta.profile(read(planted.with_a_head(1, 3, seed=1), "heads", "other"), STIMULI)
    for profile, name in ((one, "2.h1"), (other, "1.h3")):
        found, ratio = most_of(profile, "number")
        assert found == name
        assert ratio > 3
        assert profile.table().loc[name].idxmax() == "number"
    assert main_reason(one, "2.h1", other, "1.h3") == "number"
    assert main_reason(one, "2.h0", other, "1.h1") != "number"  # heads beside them


def test_the_expert_that_carries_number():
    profile = ta.profile(read(planted.with_an_expert(2, 3), "experts", "mixture"), STIMULI)
    found, ratio = most_of(profile, "number")
    assert found == "2.e3"
    assert ratio > 1.5  # the weights of two chosen experts sum to 1, so that others go down with it
    assert profile.table().loc["2.e3"].idxmax() == "number"
    other = ta.profile(read(planted.with_an_expert(1, 0, seed=1), "experts", "other"), STIMULI)
    assert most_of(other, "number")[0] == "1.e0"
    assert main_reason(profile, "2.e3", other, "1.e0") == "number"
    router = ta.profile(read(planted.with_an_expert(1, 0), "router", "mixture"), STIMULI)
    assert most_of(router, "number")[0] == 1


def test_the_state_that_carries_number():
    profiles = []
    for block, seed in ((1, 0), (2, 1)):
        model = planted.with_a_state(block, seed=seed)
        profiles.append(ta.profile(read(model, "state", f"mamba {block}"), STIMULI))
        found, ratio = most_of(profiles[-1], "number")
        assert found == block
        assert ratio > 3
    assert main_reason(profiles[0], 1, profiles[1], 2) == "number"
    assert main_reason(profiles[0], 2, profiles[1], 1) != "number"  # the blocks without


def test_the_latent_that_carries_number():
    acts = read(planted.with_a_head(1, 0), "residual", "one")
    latents = ta.latents(acts, planted.with_a_latent(7341), layer=0)
    best = latents.best(STIMULI, "number", most=5)
    assert best["layer"].iloc[0] == "0.l7341"
    assert best["held_out"].iloc[0] > 0.9
    assert (best["held_out"].iloc[1:] < 0.5).all()
    profile = ta.profile(latents.activations(best["latent"]), STIMULI)
    assert most_of(profile, "number")[0] == "0.l7341"
    again = read(planted.with_a_head(1, 0, seed=1), "residual", "other")
    others = ta.latents(again, planted.with_a_latent(12, seed=1), layer=0)
    other = ta.profile(others.activations([12]), STIMULI)
    assert main_reason(profile, "0.l7341", other, "0.l12") == "number"


@pytest.mark.parametrize("feature", ["tense", "person"])
def test_other_features_are_not_found_where_number_is(feature):
    profile = ta.profile(read(planted.with_a_head(2, 1), "heads", "one"), STIMULI)
    assert most_of(profile, feature)[0] != "2.h1"
