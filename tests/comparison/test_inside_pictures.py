"""Heads are grouped by their blocks in pictures, messages and lists."""

from __future__ import annotations

import numpy as np
import pytest

import thinkalike as ta
from thinkalike.comparison.cautions import find_cautions
from thinkalike.errors import UnknownName
from thinkalike.labels import group_of
from thinkalike.stitching.stitches import chosen_pairs
from thinkalike.wording import layer_range


def heads(system="mine", n_blocks=3, n_heads=4):
    rng = np.random.default_rng(0)
    stimuli = ta.Stimuli.from_grammar(20, seed=0)
    arrays = {
        f"{block}.h{head}": rng.normal(size=(len(stimuli), 4))
        for block in range(1, n_blocks + 1)
        for head in range(n_heads)
    }
    return ta.Activations.from_arrays(arrays, system=system, stimuli=stimuli), stimuli


@pytest.mark.parametrize(
    ("layer", "block"), [("4.h7", "4"), ("12.e0", "12"), (3, "3"), ("V1", "V1"), ("1.5", "1.5")]
)
def test_the_block_of_a_part(layer, block):
    assert group_of(layer) == block


def texts(chart):
    """The labels of all marks of text, from the data of a chart."""
    found = []
    for rows in chart.to_dict()["datasets"].values():
        found.extend(row["name"] for row in rows if "middle" in row)
    return found


def test_matrices_are_labelled_by_blocks():
    acts, _ = heads()
    chart = ta.similarity([acts], measure="cka").plot()
    assert texts(chart) == ["mine", "1", "2", "3"]
    edges = [row["edge"] for rows in chart.to_dict()["datasets"].values() for row in rows if "edge" in row]
    assert edges == [4, 8]


def test_profiles_are_labelled_by_blocks():
    acts, stimuli = heads()
    chart = ta.profile(acts, stimuli).plot().to_dict()
    axis = chart["vconcat"][0]["layer"][0]["encoding"]["x"]["axis"]
    assert axis["values"] == ["1.h0", "2.h0", "3.h0"]


def test_many_names_are_shortened():
    names = [f"{block}.h{head}" for block in range(1, 13) for head in range(12)]
    assert layer_range(names) == "layers 1.h0, 1.h1, 1.h2, 1.h3, 1.h4 and 139 more"
    with pytest.raises(UnknownName, match=r"Did you mean '12.h.*Known: 1.h0, 1.h1, 1.h2, …, 12.h9"):
        raise UnknownName.among("layer", "12.h12", names)


def test_parts_cannot_be_stitched_or_streamed():
    from thinkalike.errors import InvalidInput
    from thinkalike.systems.system import open_system

    model = open_system("nano-gelu-3l")
    with pytest.raises(
        InvalidInput, match=r"Layer '2.h1' cannot be stitched.*Compare those with ta.similarity"
    ):
        chosen_pairs(["2.h1"], model, model)
    for site in ("heads", "experts", "state"):
        with pytest.raises(InvalidInput, match=f"site='{site}' cannot be streamed.*ta.extract"):
            ta.stream_cka(["nano-gelu-3l"], ["the king sleeps. " * 20], site=site, length=32)


def cautions_of(**metadata):
    from dataclasses import replace

    from thinkalike.comparison.cautions import Evidence

    acts, stimuli = heads(n_blocks=1)
    profile = replace(ta.profile(acts, stimuli), metadata=metadata)
    evidence = Evidence([profile], ta.similarity([profile]))
    return {caution.kind: caution.text for caution in find_cautions(evidence)}


def test_which_half_was_taken_is_said():
    said = cautions_of(part="encoder", part_asked=False)
    assert "only its encoder was read" in said["half-taken"]
    assert "half-taken" not in cautions_of(part="encoder", part_asked=True)
    assert "half-taken" not in cautions_of(part=None, part_asked=False)


def test_quantised_weights_are_said():
    assert "quantised (model.Q4_0.gguf)" in cautions_of(gguf_file="model.Q4_0.gguf")["quantised-weights"]
    assert "quantised-weights" not in cautions_of()
