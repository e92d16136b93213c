"""Heads are grouped by their blocks in pictures, messages and lists."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import thinkalike as ta
from thinkalike.comparison.cautions import Evidence, find_cautions
from thinkalike.comparison.chart_tables import layer_map_table
from thinkalike.comparison.maps import LayerMap
from thinkalike.comparison.similarity_matrix import SimilarityMatrix
from thinkalike.comparison.trajectories import block_means
from thinkalike.errors import UnknownName
from thinkalike.labels import block_of
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
    assert block_of(layer) == block


def texts(chart):
    """The labels of all marks of text, from the data of a chart."""
    found = []
    for rows in chart["datasets"].values():
        if isinstance(rows, str):
            continue
        found.extend(row["name"] for row in rows if "middle" in row)
    return found


def test_matrices_are_labelled_by_blocks():
    acts, _ = heads()
    chart = ta.similarity([acts], measure="cka").plot().to_dict()
    assert texts(chart) == ["mine", "1", "2", "3"]
    edges = [row["edge"] for rows in chart["datasets"].values() for row in rows if "edge" in row]
    assert edges == [4, 8]


def test_of_many_blocks_some_are_labelled_and_the_last():
    """Two models of 12 × 12 heads: twenty labels and a few more have room beside a matrix."""
    names = [f"{block}.h{head}" for block in range(1, 13) for head in range(12)]
    rows = tuple((system, name) for system in ("one", "other") for name in names)
    values = np.where(np.eye(len(rows)) == 1, np.nan, 0.5)
    chart = SimilarityMatrix("cka", rows, values).plot().to_dict()
    assert texts(chart) == ["one", "other", *["1", "3", "5", "7", "9", "12"] * 2]
    (cells,) = (
        rows for rows in chart["datasets"].values() if isinstance(rows, str)
    )  # as a DataFrame refused
    table = pd.read_csv(io.StringIO(cells))
    assert len(table) == 288**2
    assert table.iloc[1].tolist() == [0, 1, 0.5, "one:1.h0", "one:1.h1"]
    assert table["value"].isna().to_numpy().reshape(288, 288)[np.eye(288) == 1].all()
    assert chart["layer"][0]["data"]["format"]["parse"] == dict.fromkeys(("i", "j", "value"), "number")


def test_profiles_are_labelled_by_blocks():
    acts, stimuli = heads()
    chart = ta.profile(acts, stimuli).plot().to_dict()
    axis = chart["vconcat"][0]["layer"][0]["encoding"]["x"]["axis"]
    assert axis["values"] == ["1.h0", "2.h0", "3.h0"]


def marks_of(chart):
    return [layer["mark"]["type"] for layer in chart["layer"]]


def test_heads_of_a_block_are_not_joined_by_lines():
    """They have no order: points, with a rule for the spread; layers of a model keep their lines."""
    acts, stimuli = heads()
    importance, score = ta.profile(acts, stimuli).plot().to_dict()["vconcat"]
    assert marks_of(importance) == ["rule", "point", "text", "text"]
    rim, name = (layer["mark"] for layer in importance["layer"][2:])
    assert rim["stroke"] == "#ffffff"  # behind the name, which points would run through
    assert "stroke" not in name
    assert marks_of(score) == ["rule", "point", "tick"]
    rng = np.random.default_rng(0)
    whole = ta.Activations.from_arrays(
        {k: rng.normal(size=(len(stimuli), 4)) for k in range(3)}, system="mine", stimuli=stimuli
    )
    importance, score = ta.profile(whole, stimuli).plot().to_dict()["vconcat"]
    assert marks_of(importance) == ["area", "line", "point", "text"]
    assert marks_of(score) == ["area", "line", "line"]


def test_maps_join_the_blocks_of_heads():
    rows = tuple(("mine", layer) for layer in heads()[0].layers)
    placed = LayerMap("cka", rows, np.random.default_rng(0).normal(size=(12, 2)), 0.1)
    table = layer_map_table(placed)
    assert table["block"].tolist() == [str(block) for block in (1, 2, 3) for _ in range(4)]
    assert table["end"].all(), "every block is named"
    path, points, names = placed.plot().to_dict()["layer"]
    assert path["transform"][0]["groupby"] == names["transform"][0]["groupby"] == ["system", "block", "end"]
    assert "transform" not in points, "every head has its own"
    whole = LayerMap("cka", (("mine", 0), ("mine", 1), ("mine", 2)), placed.coordinates[:3], 0.1)
    assert layer_map_table(whole)[["block", "end"]].values.tolist() == [
        ["0", True],
        ["1", False],
        ["2", True],
    ]


def test_trajectories_of_heads_run_over_blocks():
    """The order in which heads of a block stand changes nothing; the order of blocks does."""
    layers = [f"{block}.h{head}" for block in (1, 2, 3) for head in range(2)]
    importance = np.random.default_rng(0).uniform(size=(6, 4))
    means = block_means(layers, importance)
    np.testing.assert_allclose(means, importance.reshape(3, 2, 4).mean(axis=1))
    swapped = importance[[1, 0, 3, 2, 5, 4]]
    np.testing.assert_allclose(block_means(layers, swapped), means)
    np.testing.assert_array_equal(block_means([0, 1, 2, 3, 4, 5], importance), importance)


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

    acts, stimuli = heads(n_blocks=1)
    profile = replace(ta.profile(acts, stimuli), metadata=metadata)
    evidence = Evidence([profile], ta.similarity([profile]))
    return {caution.kind: caution.text for caution in find_cautions(evidence)}


def test_which_half_was_taken_is_said():
    said = cautions_of(part="encoder", part_asked=False)
    assert "only its encoder was read" in said["half-taken"]
    assert "half-taken" not in cautions_of(part="encoder", part_asked=True)
    assert "half-taken" not in cautions_of(part=None, part_asked=False)


def test_what_a_mean_over_heads_is_is_said():
    profiles = [ta.profile(*heads(name, n_blocks=1)) for name in ("one", "other")]
    said = {c.kind: c for c in find_cautions(Evidence(profiles, ta.similarity(profiles)))}["parts-compared"]
    assert "heads (4 of one, 4 of other)" in said.text
    assert said.systems == ("one", "other")
    assert "parts-compared" not in cautions_of(), "of one system there is nothing to compare"


def test_quantised_weights_are_said():
    assert "quantised (model.Q4_0.gguf)" in cautions_of(gguf_file="model.Q4_0.gguf")["quantised-weights"]
    assert "quantised (gptq)" in cautions_of(gguf_file=None, quantised="gptq")["quantised-weights"]
    assert "quantised-weights" not in cautions_of()
