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


@pytest.mark.parametrize("lengths", [(3, 9), (5, 5), (3, 8, 1), (2, 6, 4), (2, 2)])
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
