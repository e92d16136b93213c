"""`diff` and `trace`: a planted change is named and located, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import thinkalike as ta
from benchmarks.calibration.changes import WORLDS
from thinkalike.errors import InvalidInput
from thinkalike.many_tests import holm
from thinkalike.populations.diffing import parted_strengths, plan_changes, strength_changes
from thinkalike.stimuli import Stimuli


@pytest.fixture(scope="module")
def stimuli() -> Stimuli:
    return ta.Stimuli.from_grammar(100, seed=0, grammar="salle2024")


def test_a_planted_change_is_named_and_located(stimuli: Stimuli) -> None:
    base, tuned = WORLDS[0].states(stimuli, np.random.default_rng(0))
    found = ta.diff(base, tuned, stimuli, resamples=4)
    changed = found.changed()
    assert {(row.layer, row.feature) for row in changed.itertuples()} == {(3, "tense"), (4, "tense")}
    assert (changed["low"] > 0).all()
    assert str(found) == "From base to tuned tense (layers 3–4) gained strength."
    moved = found.layers.set_index("layer")
    assert moved.loc[[3, 4], "rsa"].max() < moved.loc[[0, 1, 2, 5], "rsa"].min()
    assert moved.loc[[3, 4], "cka"].max() < moved.loc[[0, 1, 2, 5], "cka"].min()


def test_without_a_change_none_is_named(stimuli: Stimuli) -> None:
    base, tuned = WORLDS[0].states(stimuli, np.random.default_rng(1), gain=0.0)
    found = ta.diff(base, tuned, stimuli, resamples=4)
    assert found.changed().empty
    assert str(found) == "From base to tuned no feature gained or lost strength beyond chance."
    same = ta.diff(base, base, stimuli, resamples=4)
    assert (same.features["p"] == 1).all()


def test_strengths_without_a_part_are_those_of_the_others(stimuli: Stimuli) -> None:
    """Against the strengths of a subset, computed by themselves."""
    base, _ = WORLDS[0].states(stimuli, np.random.default_rng(2), gain=0.0)
    acts = ta.Activations.from_arrays({1: base[1]}, system="x", stimuli=stimuli)
    from thinkalike.comparison.geometry_similarity import sentences_of
    from thinkalike.inference.ranges import leave_parts_out

    kept = next(leave_parts_out(sentences_of(stimuli), len(stimuli)))
    found = parted_strengths(acts, plan_changes(stimuli))
    some = stimuli.subset(kept)
    of_some = ta.Activations.from_arrays({1: base[1][kept]}, system="x", stimuli=some)
    alone = parted_strengths(of_some, plan_changes(some))
    np.testing.assert_allclose(found.without[1][0], alone.whole[1], rtol=1e-8)


def test_holm_by_hand() -> None:
    np.testing.assert_allclose(holm(np.array([0.04, 0.01, np.nan, 0.03])), [0.06, 0.03, np.nan, 0.06])


def test_the_change_is_the_difference_of_strengths(stimuli: Stimuli) -> None:
    base, tuned = WORLDS[0].states(stimuli, np.random.default_rng(3))
    first, second = (
        parted_strengths(ta.Activations.from_arrays(X, system="x", stimuli=stimuli), plan_changes(stimuli))
        for X in (base, tuned)
    )
    frame = strength_changes(first, second).set_index(["layer", "feature"])
    row = frame.loc[(3, "tense")]
    place = first.features.index("tense")
    assert row["change"] == pytest.approx(second.whole[3][place] - first.whole[3][place])
    assert row["low"] < row["change"] < row["high"]


def test_other_layers_have_no_partner(stimuli: Stimuli) -> None:
    base, _ = WORLDS[0].states(stimuli, np.random.default_rng(4), gain=0.0)
    with pytest.raises(InvalidInput, match=r"base has 6 layers and tuned 1.*Use ta\.compare"):
        ta.diff(base, {0: base[0]}, stimuli)
    with pytest.raises(InvalidInput, match="Got 1 checkpoint: a line needs two or more"):
        ta.trace({"a": base}, stimuli)
    with pytest.raises(InvalidInput, match="The checkpoints have different layers"):
        ta.trace({"a": base, "b": {0: base[0]}}, stimuli)


def test_a_trace_over_training(stimuli: Stimuli) -> None:
    base, tuned = replace(WORLDS[0], changed=(3,)).states(stimuli, np.random.default_rng(5))
    found = ta.trace({"m@step10": base, "m@step30": base, "m@step90": tuned}, stimuli)
    assert found.steps == (10, 30, 90)
    changed = found.changed()
    assert changed[["from", "to", "layer", "feature"]].to_numpy().tolist() == [
        ["m@step30", "m@step90", 3, "tense"]
    ]
    assert found.plot().to_dict()
    assert ta.trace({"a": base, "b": tuned}, stimuli).steps == (0, 1)
