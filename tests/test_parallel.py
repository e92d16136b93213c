"""The seam to workers: the same answer in process and on an executor that the caller lends."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from thinkalike.parallel import map_in_order, workers


def test_results_come_in_order() -> None:
    assert map_in_order(lambda x: x * x, [3, 1, 2], description="squares") == [9, 1, 4]


def test_an_executor_does_the_work_while_it_is_lent() -> None:
    seen = []

    def who(x: int) -> int:
        seen.append(threading.current_thread() is threading.main_thread())
        return x

    with ThreadPoolExecutor(2) as executor, workers(executor):
        assert map_in_order(who, range(5), description="who") == list(range(5))
    assert not any(seen)
    seen.clear()
    map_in_order(who, range(2), description="who")
    assert all(seen)


def test_an_error_of_a_worker_is_raised() -> None:
    with ThreadPoolExecutor(1) as executor, workers(executor), pytest.raises(ZeroDivisionError):
        map_in_order(lambda x: 1 // x, [1, 0], description="inverse")
