"""Distances between whole models: by hand, against brute force over all matchings, and as a metric."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinkalike.comparison.model_distances import (
    best_matching,
    block_places,
    model_distances,
    same_depth_values,
)
from thinkalike.comparison.similarity_matrix import SimilarityMatrix
from thinkalike.errors import InvalidInput, UnknownName
from thinkalike.measures import MEASURES


def matrix(values: np.ndarray, depths: dict[str, int], *, kind: str = "similarity") -> SimilarityMatrix:
    """Over layers 0 (embeddings), 1, … of each model."""
    rows = tuple((name, layer) for name, depth in depths.items() for layer in range(depth + 1))
    return SimilarityMatrix("cka", rows, np.asarray(values, dtype=float), kind=kind)  # type: ignore[arg-type]


def random_models(depths: dict[str, int], seed: int = 0, measure: str = "cka") -> SimilarityMatrix:
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(30, 4))
    layers = [base + rng.normal(size=(30, 4)) for depth in depths.values() for _ in range(depth + 1)]
    found = MEASURES[measure]
    return matrix(found.matrix(layers), depths, kind=found.kind)


def test_the_root_of_summed_squared_angles_over_blocks_without_embeddings() -> None:
    values = np.eye(6)
    values[0, 3] = values[3, 0] = -1.0  # embeddings: must not count
    values[1, 4] = values[4, 1] = 0.5  # arccos: π/3
    values[2, 5] = values[5, 2] = 0.0  # π/2
    found = model_distances(matrix(values, {"a": 2, "b": 2}))
    assert found.values[0, 1] == pytest.approx(np.sqrt((np.pi / 3) ** 2 + (np.pi / 2) ** 2))
    assert found.values[0, 0] == 0
    assert found.paths == {("a", "b"): ((1, 1), (2, 2))}
    assert found.clipped == 0


def test_distances_of_layers_are_taken_as_they_are() -> None:
    values = np.zeros((4, 4))
    values[1, 3] = values[3, 1] = 0.7
    assert model_distances(matrix(values, {"a": 1, "b": 1}, kind="distance")).values[0, 1] == pytest.approx(
        0.7
    )


def test_values_beyond_1_are_cut_and_counted() -> None:
    values = np.ones((4, 4))
    values[1, 3] = values[3, 1] = 1.02
    found = model_distances(matrix(values, {"a": 1, "b": 1}))
    assert found.values[0, 1] == 0
    assert found.clipped == 2


def test_unequal_depth_says_so_and_offers_warping() -> None:
    message = r"a has 2 blocks and b has 3: .* model_distances\(…, align='warped'\)"
    with pytest.raises(InvalidInput, match=message):
        model_distances(random_models({"a": 2, "b": 3}))
    with pytest.raises(InvalidInput, match=message):
        same_depth_values(random_models({"a": 2, "b": 3}))


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4, 3), (4, 4)])
def test_the_best_matching_is_the_best_of_all(shape: tuple[int, int]) -> None:
    def all_matchings(at: tuple[int, int]) -> list[list[tuple[int, int]]]:
        if at == (0, 0):
            return [[at]]
        before = [(at[0] - i, at[1] - j) for i, j in product((0, 1), repeat=2) if (i, j) != (0, 0)]
        return [[*path, at] for b in before if min(b) >= 0 for path in all_matchings(b)]

    cost = np.random.default_rng(sum(shape)).random(shape)
    best = min(all_matchings((shape[0] - 1, shape[1] - 1)), key=lambda path: sum(cost[step] for step in path))
    assert best_matching(cost) == best


def test_of_equally_good_matchings_the_shortest_counts() -> None:
    assert best_matching(np.zeros((3, 3))) == [(0, 0), (1, 1), (2, 2)]


def test_warping_matches_a_model_with_its_doubled_layers() -> None:
    rng = np.random.default_rng(0)
    blocks = [rng.normal(size=(30, 4)) for _ in range(3)]
    doubled = [block for block in blocks for _ in range(2)]
    start = rng.normal(size=(30, 4))
    values = MEASURES["cka"].matrix([start, *blocks, start, *doubled])
    found = model_distances(matrix(values, {"a": 3, "b": 6}), align="warped")
    assert found.values[0, 1] == pytest.approx(0, abs=1e-6)
    assert found.paths["a", "b"] == ((1, 1), (1, 2), (2, 3), (2, 4), (3, 5), (3, 6))


def test_warped_distance_is_the_root_mean_square_along_the_matching() -> None:
    found = random_models({"a": 2, "b": 2})
    warped = model_distances(found, align="warped")
    path = warped.paths["a", "b"]
    squares = [np.arccos(found["a", i, "b", j]) ** 2 for i, j in path]
    assert warped.values[0, 1] == pytest.approx(np.sqrt(np.mean(squares)))


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_from_a_metric_of_layers_comes_a_metric_of_models(seed: int) -> None:
    d = model_distances(random_models({"a": 3, "b": 3, "c": 3}, seed, "cka-angular")).values
    for i, j, k in product(range(3), repeat=3):
        assert d[i, k] <= d[i, j] + d[j, k] + 1e-9


def test_named_layers_all_count_and_a_final_norm_does_not() -> None:
    rows = (("net", "V1"), ("net", "IT"), ("gpt", 0), ("gpt", 1), ("gpt", "final_norm"))
    assert block_places(rows) == {"net": [0, 1], "gpt": [3]}


def test_values_at_the_same_depth() -> None:
    found = random_models({"a": 2, "b": 2, "c": 2})
    layers, systems, stack = same_depth_values(found)
    assert layers == (1, 2)
    assert systems == ("a", "b", "c")
    assert stack.shape == (2, 3, 3)
    assert stack[1, 0, 2] == found["a", 2, "c", 2]


def test_unknown_alignment() -> None:
    with pytest.raises(UnknownName, match=r"There is no alignment 'wraped'\. Did you mean 'warped'"):
        model_distances(random_models({"a": 1, "b": 1}), align="wraped")  # type: ignore[arg-type]


def test_table_map_and_files(tmp_path: Path) -> None:
    found = model_distances(random_models({"a": 2, "b": 2, "c": 2}))
    frame = found.to_frame()
    assert frame[["system_a", "system_b"]].to_numpy().tolist() == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert frame["distance"].tolist() == [found.values[0, 1], found.values[0, 2], found.values[1, 2]]
    coordinates, stress = found.coordinates()
    assert coordinates.shape == (3, 2)
    assert stress == pytest.approx(0, abs=1e-3)  # three points always fit a plane
    assert found.plot(groups={"a": "one", "b": "one", "c": "two"}).to_dict()["layer"]
    assert repr(found) == "ModelDistances(cka, depth: a, b, c)"
    path = found.save(tmp_path / "models")
    pd.testing.assert_frame_equal(pd.read_parquet(f"{path}.parquet"), frame)
    about = json.loads((tmp_path / "models.json").read_text())
    assert about["measure"] == "cka"
    assert about["versions"]["thinkalike"]


@dataclass(frozen=True)
class Streamed:
    """Anything with these four attributes will do."""

    measure: str
    rows: tuple[tuple[str, int | str], ...]
    values: np.ndarray
    kind: str = "similarity"


def test_any_labelled_matrix_is_taken() -> None:
    found = random_models({"a": 2, "b": 2})
    other = Streamed("cka", found.rows, found.values)
    np.testing.assert_array_equal(model_distances(other).values, model_distances(found).values)  # type: ignore[arg-type]
