"""Blocks of layers against likeness that fades with distance."""

from __future__ import annotations

import numpy as np
import pytest

from thinkalike.inference.blocks import find_blocks


def planted(
    lengths: tuple[int, ...], *, within: float = 0.9, between: float = 0.3, seed: int = 0
) -> np.ndarray:
    label = np.repeat(np.arange(len(lengths)), lengths)
    matrix = np.where(label[:, None] == label, within, between)
    noise = np.random.default_rng(seed).normal(0, 0.02, matrix.shape)
    matrix = matrix + (noise + noise.T) / 2
    np.fill_diagonal(matrix, 1.0)
    return matrix


@pytest.mark.parametrize("lengths", [(3, 9), (5, 5), (3, 8, 1), (2, 6, 4), (4, 4, 4)])
def test_planted_blocks_are_found(lengths: tuple[int, ...]) -> None:
    found = find_blocks(planted(lengths))
    assert found is not None
    assert found.lengths == lengths
    assert found.better
    assert found.within == pytest.approx(0.9, abs=0.03)
    assert found.between == pytest.approx(0.3, abs=0.03)
    assert found.explained > 0.95


def test_a_gradient_is_not_taken_for_blocks() -> None:
    places = np.arange(12)
    found = find_blocks(np.exp(-np.abs(places[:, None] - places) / 6))
    assert found is not None
    assert not found.better
    assert found.by_distance == pytest.approx(1.0)


def test_four_layers_are_too_few_to_tell() -> None:
    """Two and two alike: layers that stand anywhere on a line often look like that."""
    found = find_blocks(planted((2, 2)))
    assert found is not None
    assert found.lengths == (2, 2)
    assert not found.better


FALLS = [lambda d: 1 - d, lambda d: np.exp(-d / 0.4), lambda d: np.exp(-((d / 0.35) ** 2))]


def gradient(gaps: np.ndarray, falls: object) -> np.ndarray:
    places = np.concatenate([[0.0], gaps.cumsum()])
    return falls(np.abs(places[:, None] - places) / places[-1])  # type: ignore[operator]


@pytest.mark.parametrize("falls", FALLS, ids=["line", "exponential", "Gaussian"])
@pytest.mark.parametrize("halves", [False, True], ids=["whole", "halves"])
def test_uneven_gradients_are_not_taken_for_blocks(falls: object, halves: bool) -> None:
    """Steps of one length, of lengths from gamma laws, and growing steps; 40 draws of each that is random."""
    rng = np.random.default_rng(0)
    taken = 0
    for shape in (4.0, 1.0):
        for _ in range(40):
            matrix = gradient(rng.gamma(shape, size=11), falls)
            noisy = tuple(matrix + np.triu(rng.normal(0, 0.02, matrix.shape), 1) for _ in range(2))
            pair = tuple((m + m.T) / 2 for m in noisy)
            taken += find_blocks((pair[0] + pair[1]) / 2, halves=pair if halves else None).better  # type: ignore[union-attr, arg-type]
    assert taken <= 6  # of 80; 4 on average if p were exact for the most uneven
    for gaps in (np.ones(11), np.diff(np.arange(12.0) ** 2)):
        assert not find_blocks(gradient(gaps, falls)).better  # type: ignore[union-attr]


def test_halves_find_blocks_in_noise_that_hides_them_in_one_matrix() -> None:
    rng = np.random.default_rng(1)
    alone, with_halves = 0, 0
    for _ in range(20):
        pair = []
        for _ in range(2):
            noise = np.triu(rng.normal(0, 0.07, (12, 12)), 1)
            pair.append(planted((4, 4, 4), within=0.8, between=0.4) + noise + noise.T)
        mean = (pair[0] + pair[1]) / 2
        alone += find_blocks(mean).better  # type: ignore[union-attr]
        with_halves += find_blocks(mean, halves=(pair[0], pair[1])).better  # type: ignore[union-attr]
    assert with_halves >= 16
    assert alone < with_halves


def test_unexplained_share_by_hand() -> None:
    matrix = planted((3, 4), seed=3)
    found = find_blocks(matrix, n_blocks=(2,))
    assert found is not None
    i, j = np.triu_indices(7, 1)
    values, cell = matrix[i, j], (i >= 3).astype(int) * 2 + (j >= 3)
    rest = sum(((values[cell == c] - values[cell == c].mean()) ** 2).sum() for c in np.unique(cell))
    assert 1 - found.explained == pytest.approx(rest / ((values - values.mean()) ** 2).sum())


def test_layers_that_are_all_alike_form_no_blocks() -> None:
    found = find_blocks(planted((10,), within=0.9))
    assert found is not None
    assert not found.better


def test_blocks_that_are_less_alike_within_are_none() -> None:
    found = find_blocks(planted((5, 5), within=0.2, between=0.8), n_blocks=(2,))
    assert found is not None
    assert not found.better


def test_the_smallest_length_is_kept_to() -> None:
    found = find_blocks(planted((1, 7)), n_blocks=(2,), smallest=2)
    assert found is not None
    assert min(found.lengths) >= 2


@pytest.mark.parametrize("n", [1, 2, 3])
def test_too_few_layers(n: int) -> None:
    assert find_blocks(np.eye(n)) is None


def test_no_cut_is_possible() -> None:
    assert find_blocks(planted((5,)), n_blocks=(3,), smallest=3) is None
