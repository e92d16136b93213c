"""The seam to workers: the same answer here and on whatever runs tasks; what dies is sent again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import until, until_there
from thinkalike.dispatch import TRIES, Failure, raise_failures, run_tasks
from thinkalike.errors import InvalidInput, StoreError, WorkFailed
from thinkalike.parallel import dask_client, engine_for, stream_in_order, workers


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


class Closed:
    """An engine that takes so many tasks, and is closed then."""

    def __init__(self, takes: int) -> None:
        self.takes = takes

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        self.takes -= 1
        if self.takes < 0:
            raise RuntimeError("cannot schedule new futures after shutdown")
        return Done(function(*arguments))


class Done:
    """The least that a future can be: it has a result."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def result(self) -> Any:
        return self.value


class Breaking:
    """A pool that breaks under some tasks, and loses all that were sent to it with them."""

    def __init__(self, *fatal: int) -> None:
        self.fatal = fatal
        self.sent: list[int] = []
        self.going: list[tuple[Future[Any], Callable[[], Any], int]] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        future = Waited(self)
        self.sent.append(arguments[1])
        self.going.append((future, lambda: function(*arguments), arguments[1]))
        return future

    def run(self) -> None:
        """All that is under way: if one of them is fatal, none comes back."""
        broken = any(task in self.fatal for *_, task in self.going)
        for future, call, _ in self.going:
            if broken:
                future.set_exception(BrokenExecutor("a process died"))
            else:
                future.set_result(call())
        self.going.clear()


class Waited(Future[Any]):
    def __init__(self, pool: Breaking) -> None:
        super().__init__()
        self.pool = pool

    def result(self, timeout: float | None = None) -> Any:
        self.pool.run()
        return super().result(timeout)


def test_when_a_pool_breaks_all_of_its_tasks_are_sent_again_at_once() -> None:
    engine = Breaking(1)
    outcomes = run_tasks(engine, inverse, [1, 2, 4], description="")
    lost = Failure("its worker was lost (BrokenExecutor: a process died)", again=True)
    assert next(outcomes) == lost
    assert engine.sent == [1, 2, 4, 1, 2, 4, 1, 1]
    assert list(outcomes) == [0.5, 0.25]


def test_only_the_task_that_breaks_its_pool_is_given_up() -> None:
    """Wherever it stands: after the second time each goes alone."""
    engine = Breaking(4)
    found = list(run_tasks(engine, inverse, [1, 2, 4, 5], description=""))
    assert [isinstance(one, Failure) for one in found] == [False, False, True, False]
    assert engine.sent == [1, 2, 4, 5, 1, 2, 4, 5, 1, 2, 4, 4, 5]


def test_an_engine_that_takes_no_more_tasks_is_told_and_the_others_are_kept() -> None:
    found = list(run_tasks(Closed(1), inverse, [2, 4], description=""))
    reason = "the engine took no task (RuntimeError: cannot schedule new futures after shutdown)"
    assert found == [0.5, Failure(reason, again=False)]


def test_an_engine_that_is_closed_when_a_task_is_sent_again(tmp_path: Path) -> None:
    (found,) = run_tasks(Closed(1), fail_at_first, [str(tmp_path / "a")], description="")
    assert isinstance(found, Failure)
    assert found.reason.startswith("the engine took no task")


def test_futures_that_cannot_be_cancelled_are_left_when_the_caller_stops() -> None:
    outcomes = run_tasks(Closed(3), inverse, [1, 2, 4], description="")
    assert next(outcomes) == 1.0
    outcomes.close()  # type: ignore[attr-defined]


CALLER = """
import signal, sys
from thinkalike.dispatch import run_tasks
from thinkalike.parallel import workers, engine_for
from tests.test_parallel import wait_there

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it may be ignored
    with workers(2):
        list(run_tasks(engine_for("fit"), wait_there, [f"{sys.argv[1]}/{k}" for k in "ab"], description=""))
"""


def wait_there(path: str) -> None:
    """Say who waits, and wait until somebody ends it."""
    there = Path(f"{path}.new")
    there.write_text(str(os.getpid()))
    there.rename(path)
    threading.Event().wait()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda how: how.name)
def test_no_process_outlives_its_caller(how: signal.Signals, tmp_path: Path) -> None:
    """Neither after Ctrl-C, which reaches the whole group and ends in one traceback, nor after a kill."""
    script = tmp_path / "caller.py"
    script.write_text(CALLER)
    caller = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    marks = [tmp_path / "a", tmp_path / "b"]
    for mark in marks:
        until_there(mark, caller)
    if how is signal.SIGINT:
        os.killpg(caller.pid, how)
    else:
        caller.send_signal(how)
    _, said = caller.communicate()
    assert caller.returncode != 0
    assert said.count(b"Traceback") == (1 if how is signal.SIGINT else 0)
    begun = [int(mark.read_text()) for mark in marks]
    until(lambda: not any(map(is_running, begun)))


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def test_failures_are_told_by_name() -> None:
    raise_failures({}, 3)
    with pytest.raises(WorkFailed, match=r"1 of 3 failed\. b: no such file\. What the others made is kept"):
        raise_failures({"b": "no such file."}, 3)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "127.0.0.1:9", "nowhere.invalid:1", "nowhere"])
def test_nobody_listens_where_a_scheduler_should_be(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No client is asked, which would try again and again."""
    monkeypatch.setattr("distributed.Client", lambda *_, **__: pytest.fail("a client was made"))
    refused = pytest.raises(InvalidInput, match=f"No Dask scheduler answers at {re.escape(address)} ")
    with refused, dask_client(address):
        pass


@pytest.mark.filterwarnings("default")  # of the engine
def test_a_dask_client_that_is_closed_in_the_middle() -> None:
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        client = Client(cluster)
        outcomes = run_tasks(client, inverse, [1, 2, 4], description="")
        assert next(outcomes) == 1.0
        client.close()
        left = list(outcomes)
    assert all(isinstance(one, Failure) for one in left)
    assert "the engine took no task" in left[0].reason  # type: ignore[union-attr]
