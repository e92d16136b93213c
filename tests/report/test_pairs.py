"""The numbers behind a click on a cell."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from thinkalike.comparison.comparison import Comparison
from thinkalike.comparison.similarity_matrix import SimilarityMatrix
from thinkalike.report.pairs import pair_data, picks


def test_every_cell_has_the_numbers_of_its_pair(planted: Comparison) -> None:
    data = pair_data(planted)
    n = len(planted.rows)
    matrix = planted.matrices["features"]
    importance = np.concatenate([p.mean_importance for p in planted.profiles.values()])
    assert data["names"][8] == "beta:1"
    assert data["owner"] == [0] * 7 + [1] * 7 + [2] * 13
    for i in range(n):
        for j in range(n):
            assert data["matrices"]["features"][i * n + j] == pytest.approx(matrix.values[i, j], abs=6e-4)
            assert data["p_block"][i * n + j] == pytest.approx(matrix.p_block[i, j], abs=6e-7)  # type: ignore[index]
            assert data["share"][i * n + j] == pytest.approx(planted.explained_share[i, j], abs=6e-5)  # type: ignore[index]
            assert data["ceiling"][i * n + j] == pytest.approx(matrix.ceiling[i, j], abs=6e-4)  # type: ignore[index]
    assert data["importance"] == importance.tolist()  # whole: the page ranks them


def test_picks_are_the_extremes_between_systems(planted: Comparison) -> None:
    tau = planted.matrices["features"].values
    owner = [system for system, _ in planted.rows]
    between = [(i, j) for i in range(27) for j in range(i + 1, 27) if owner[i] != owner[j]]
    found = {pick.label: (pick.i, pick.j) for pick in picks(planted)}
    assert tau[found["most alike"]] == max(tau[pair] for pair in between)
    assert tau[found["least alike"]] == min(tau[pair] for pair in between)
    assert set(found.values()) <= set(between)
    assert set(found) == {"most alike", "least alike", "alike by features only", "alike by geometry only"}


def test_a_pair_at_odds_with_geometry_is_found(planted: Comparison) -> None:
    n = len(planted.rows)
    tau = np.full((n, n), 0.5) + 1e-3 * planted.matrices["features"].values
    geometry = np.full((n, n), 0.5) + 1e-3 * planted.matrices["features"].values
    tau[2, 20], geometry[2, 20] = 1.0, -1.0
    tau[3, 21], geometry[3, 21] = -1.0, 1.0
    matrices = {
        "features": replace(planted.matrices["features"], values=tau),
        "rsa": SimilarityMatrix("rsa", planted.rows, geometry),
    }
    found = {pick.label: (pick.i, pick.j) for pick in picks(replace(planted, matrices=matrices))}
    assert found["alike by features only"] == (2, 20)
    assert found["alike by geometry only"] == (3, 21)
    distances = {
        **matrices,
        "rsa": SimilarityMatrix("procrustes", planted.rows, 1 - geometry, kind="distance"),
    }
    found = {pick.label: (pick.i, pick.j) for pick in picks(replace(planted, matrices=distances))}
    assert found["alike by features only"] == (2, 20)


def test_within_one_system_any_two_layers_are_picked(plant: Callable[..., Comparison]) -> None:
    solo = plant({"solo": 4}, n_sentences=40, n_mapped=20)
    assert all(pick.i != pick.j for pick in picks(solo))


def test_a_single_layer_leaves_nothing_to_pick(plant: Callable[..., Comparison]) -> None:
    assert picks(plant({"solo": 1}, n_sentences=40, n_mapped=20)) == []


def test_what_is_not_a_number_becomes_null(planted: Comparison) -> None:
    matrix = planted.matrices["features"]
    values = matrix.values.copy()
    values[0, 1] = np.nan
    bare = replace(matrix, values=values, p_block=None, low=None, high=None)
    data = pair_data(replace(planted, matrices={"features": bare}, explained_share=None, word_maps=None))
    assert data["matrices"]["features"][1] is None
    assert data["p_block"] is None
    assert data["share"] is None
    assert data["words"] is None
    json.dumps(data, allow_nan=False)


def test_word_maps_keep_their_shape(planted: Comparison) -> None:
    words = pair_data(planted)["words"]
    maps = planted.word_maps
    assert maps is not None
    points = np.array(words["points"]).reshape(27, -1, 2) / words["steps"]
    assert np.abs(points).max() <= 1
    for row in (0, 20):
        shown, true = (
            np.linalg.norm(p[:, None] - p[None], axis=2).ravel() for p in (points[row], maps.coordinates[row])
        )
        assert np.corrcoef(shown, true)[0, 1] > 0.9999
    assert words["word"][0] in words["context"][0]
