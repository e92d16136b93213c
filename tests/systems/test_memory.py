"""Memory apart from the heap."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from thinkalike.systems.memory import Desk, matrix_apart


@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (0, 4)])
def test_a_matrix_of_zeros_to_write_to(shape):
    matrix = matrix_apart(*shape)
    assert matrix.shape == shape
    assert matrix.dtype == np.float32
    assert not matrix.any()
    matrix[:] = 2.5
    assert (matrix == 2.5).all()
    assert not matrix_apart(*shape).any()


def test_it_lives_as_long_as_somebody_looks_at_it():
    row = matrix_apart(1000, 1000)[7]
    row[:] = 1
    others = [matrix_apart(1000, 1000) for _ in range(5)]
    assert row.sum() == 1000
    assert not any(other.any() for other in others)


def test_too_much_is_a_lack_of_memory():
    with pytest.raises(MemoryError, match=r"no room for 4,000,000,000,000,000,000 bytes"):
        matrix_apart(10**9, 10**9)


def test_the_desk_has_one_place_for_each_layer():
    desk, states = Desk(4), torch.zeros(9, 3)
    first, second = desk.room(0, 4, states), desk.room(1, 4, states)
    first[:], second[:] = 1, 2
    assert (desk.room(0, 2, states) == 1).all()
    assert desk.room(0, 2, states).shape == (2, 3)
    assert (desk.room(1, 4, states) == 2).all()


def test_what_does_not_fit_on_the_desk_stays_where_it_is():
    desk = Desk(4)
    assert desk.room(0, 5, torch.zeros(9, 3)) is None
    assert desk.room(0, 4, torch.zeros(9, 3, device="meta")) is None
