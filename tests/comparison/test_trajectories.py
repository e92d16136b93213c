"""Distances between whole models: hand-worked cases, and warping against all alignments by brute force."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from thinkalike.comparison.profiles import importance_shares
from thinkalike.comparison.trajectories import depth_distance, trajectory_distances, warped_distance


def alignments(n: int, m: int) -> Iterator[list[tuple[int, int]]]:
    """Every monotone path from (0, 0) to (n − 1, m − 1)."""

    def walk(i: int, j: int, path: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
        path = [*path, (i, j)]
        if (i, j) == (n - 1, m - 1):
            yield path
        for di, dj in ((1, 1), (1, 0), (0, 1)):
            if i + di < n and j + dj < m:
                yield from walk(i + di, j + dj, path)

    return walk(0, 0, [])


@pytest.mark.parametrize("seed", range(5))
def test_warping_takes_the_cheapest_alignment(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    costs = [
        (sum(float(np.linalg.norm(x[i] - y[j])) for i, j in path), len(path)) for path in alignments(4, 5)
    ]
    total, length = min(costs)
    assert warped_distance(x, y) == pytest.approx(total / length)


def test_the_same_course_at_another_depth_is_near() -> None:
    """Ten layers that follow the same straight course as four."""
    course = np.array([[0.9, 0.1], [0.1, 0.9]])

    def along(n: int) -> np.ndarray:
        t = np.linspace(0, 1, n)[:, None]
        return (1 - t) * course[0] + t * course[1]

    assert depth_distance(along(4), along(10)) == pytest.approx(0.0, abs=1e-12)
    assert depth_distance(along(4), along(10)[::-1]) > 0.5
    assert warped_distance(along(4), along(10)) < warped_distance(along(4), along(10)[::-1])


def test_depth_distance_by_hand() -> None:
    assert depth_distance(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 1.0]])) == pytest.approx(
        np.sqrt(2)
    )


def test_models_are_mapped_by_what_they_care_about() -> None:
    a, b = (
        np.tile([0.8, 0.1, 0.1], (3, 1)),
        np.tile([0.4, 0.05, 0.05], (6, 1)),
    )  # the same shares, half the size
    c = np.tile([0.1, 0.1, 0.8], (4, 1))
    got = trajectory_distances(["a", "b", "c"], [a, b, c])
    assert got.warped[0, 1] == pytest.approx(0.0, abs=1e-12)
    assert got.warped[0, 2] == pytest.approx(np.sqrt(2) * 0.7)
    np.testing.assert_allclose(got.warped, got.euclidean, atol=1e-12)
    distances = np.linalg.norm(got.coordinates[:, None] - got.coordinates[None], axis=2)
    np.testing.assert_allclose(distances, got.warped, atol=1e-6)
    assert list(got.to_frame().columns) == ["system_a", "system_b", "euclidean", "warped"]
    assert len(got.to_frame()) == 3


def test_shares_ignore_negative_and_missing_importances() -> None:
    shares = importance_shares(np.array([[0.3, -0.1, np.nan, 0.1], [0.0, -0.2, 0.0, 0.0]]))
    np.testing.assert_allclose(shares, [[0.75, 0, 0, 0.25], [0, 0, 0, 0]])
