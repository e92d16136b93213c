"""The seam to workers: the same answer here and on whatever runs tasks; what dies is sent again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from thinkalike.errors import InvalidInput, StoreError, WorkFailed
from thinkalike.parallel import (
    TRIES,
    Failure,
    dask_client,
    engine_for,
    raise_failures,
    run_tasks,
    stream_in_order,
    workers,
)


def inverse(x: int) -> float:
    return 1 / x


def fail_at_first(mark: str) -> int:
    """A store that fails all but the last time."""
    path = Path(mark)
    tried = int(path.read_text()) if path.exists() else 0
    path.write_text(str(tried + 1))
    if tried + 1 < TRIES:
        raise StoreError("the disk is busy")
    return tried + 1


class Broken:
    """An engine whose workers are always lost."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(RuntimeError("gone"))
        return future


@pytest.mark.parametrize("threads", [1, 2])
def test_results_come_in_order(threads: int) -> None:
    found = stream_in_order(lambda x: x * x, [3, 1, 2], description="squares", threads=threads)
    assert list(found) == [9, 1, 4]


def test_an_error_on_a_thread_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(stream_in_order(inverse, [1, 0], description="inverse", threads=2))


def test_engines_are_lent_for_a_block() -> None:
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        with workers(one):
            assert engine_for("extract") is engine_for("fit") is one
            with workers(extract=other):
                assert engine_for("extract") is other
                assert engine_for("fit") is None
        with workers(one, fit=other):
            assert (engine_for("extract"), engine_for("fit")) == (one, other)
    assert engine_for("extract") is None


@pytest.mark.parametrize("engine", [0, -1, True, "a cluster"])
def test_what_cannot_run_tasks_is_refused(engine: Any) -> None:
    with pytest.raises(InvalidInput, match=r"give 1 or more|cannot run tasks"), workers(engine):
        pass


def test_outcomes_are_in_order_and_failures_among_them() -> None:
    seen = set()

    def who(x: int) -> float:
        seen.add(threading.current_thread())
        return inverse(x)

    with ThreadPoolExecutor(2) as pool:
        found = list(run_tasks(pool, who, [1, 0, 2], description="inverse"))
    assert found == [1.0, Failure("division by zero", again=False), 0.5]
    assert threading.main_thread() not in seen


def test_a_store_that_fails_for_a_moment_is_tried_again(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        found = list(run_tasks(pool, fail_at_first, [str(tmp_path / "a")], description=""))
    assert found == [TRIES]


def test_workers_that_are_always_lost_are_given_up() -> None:
    (found,) = run_tasks(Broken(), inverse, [1], description="")
    assert found == Failure("its worker was lost (RuntimeError: gone)", again=True)


def test_failures_are_told_by_name() -> None:
    raise_failures({}, 3)
    with pytest.raises(WorkFailed, match=r"1 of 3 failed\. b: no such file\. What the others made is kept"):
        raise_failures({"b": "no such file."}, 3)


def test_no_scheduler_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thinkalike.parallel.SCHEDULER_SECONDS", 0.2)
    refused = pytest.raises(InvalidInput, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9")
    with refused, dask_client("tcp://127.0.0.1:9"):
        pass
