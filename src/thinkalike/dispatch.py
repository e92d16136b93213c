"""Tasks sent to an engine that was lent, and what became of each of them.

A task is a function of a module and one small argument. What tasks share lies at an address. They may run in
any order, and twice without harm: a task whose worker died is sent again.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from concurrent.futures import Future as PoolFuture
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from threadpoolctl import threadpool_limits

from thinkalike.addresses import is_local, remove_tree
from thinkalike.errors import StoreError, WorkFailed, one_line
from thinkalike.machine import local_cache_directory
from thinkalike.parallel import Engine, Future
from thinkalike.progress import progress

Item = TypeVar("Item")
Result = TypeVar("Result")

WORK = "work"
"""The folder of a run directory in which tasks leave what is too large for a message"""
TRIES = 3
"""How often a task is sent out if its worker dies, or the store fails"""


@dataclass(frozen=True)
class Failure:
    """What a task raised, in words that travel."""

    reason: str
    again: bool
    """Whether another try may help: files can fail for a moment"""


def run_tasks(
    engine: Engine, function: Callable[[Item], Result], tasks: Sequence[Item], *, description: str
) -> Iterator[Result | Failure]:
    """What became of every task, in their order."""
    with progress(description, len(tasks)) as step, threadpool_limits(1, "blas"):  # a worker may be a thread
        waiting = deque(_submitted(engine, function, tasks))
        try:
            while waiting:
                outcome = waiting[0].outcome()
                while isinstance(outcome, Failure) and outcome.again and waiting[0].tries < TRIES:
                    for errand in waiting:
                        if errand is waiting[0] or errand.fell_with_others():
                            errand.send_again(engine)
                    outcome = waiting[0].outcome()
                waiting.popleft()
                step.advance()
                yield outcome
        finally:
            for errand in waiting:
                errand.leave()


def run_all(
    engine: Engine,
    function: Callable[[Item], Result],
    tasks: Sequence[Item],
    *,
    names: Iterable[str],
    description: str,
) -> list[Result]:
    """What all tasks came to; if some failed, that is said at the end, by their names."""
    outcomes = list(run_tasks(engine, function, tasks, description=description))
    failed = [(name, one) for name, one in zip(names, outcomes, strict=True) if isinstance(one, Failure)]
    raise_failures({name: one.reason for name, one in failed}, len(tasks))
    return [one for one in outcomes if not isinstance(one, Failure)]


def raise_failures(failures: dict[str, str], total: int) -> None:
    """Say at the end which tasks failed, by name and reason, if any did."""
    if failures:
        reasons = " ".join(f"{name}: {reason.rstrip('.')}." for name, reason in failures.items())
        raise WorkFailed(
            f"{len(failures)} of {total} failed. {reasons} What the others made is kept: the same call does "
            "only what is missing."
        )


class _Errand(Generic[Item, Result]):
    """A task that was sent, and sent again if its worker died."""

    def __init__(
        self, function: Callable[[Item], Result], task: Item, sent: Future[Result | Failure] | Failure
    ) -> None:
        self._function, self._task, self._sent = function, task, sent
        self._went_with_others = False
        self.tries = 1

    def send_again(self, engine: Engine) -> None:
        if self.fell_with_others():
            self._went_with_others = True  # no try of its own: another may have broken the pool
        else:
            self.tries += 1
        self._sent = _sent(engine, self._function, self._task, self.tries)

    def outcome(self) -> Result | Failure:
        """Wait for it."""
        if isinstance(self._sent, Failure):
            return self._sent
        try:
            return self._sent.result()
        except Exception as error:  # of the engine: the worker died, or the message did not travel
            return Failure(f"its worker was lost ({_told(error)})", again=True)

    def fell_with_others(self) -> bool:
        """Whether its pool broke, for the first time: then all of its tasks are lost, and are sent again at
        once. When it breaks again, each goes alone, so that those that break it are found."""
        sent = self._sent
        if self._went_with_others or not isinstance(sent, PoolFuture) or not sent.done() or sent.cancelled():
            return False
        return isinstance(sent.exception(), BrokenExecutor)

    def leave(self) -> None:
        if hasattr(self._sent, "cancel"):  # a failure has nothing to leave, nor has every future the means
            self._sent.cancel()


def _submitted(
    engine: Engine, function: Callable[[Item], Result], tasks: Sequence[Item]
) -> list[_Errand[Item, Result]]:
    sent: list[Future[Result | Failure] | Failure]
    if hasattr(engine, "map_array") and len(tasks) > 1:  # submitit: one array of jobs
        try:
            sent = list(engine.map_array(guarded, [function] * len(tasks), tasks))
        except Exception as error:
            sent = [_not_taken(error)] * len(tasks)
    else:
        sent = [_sent(engine, function, task) for task in tasks]
    return [_Errand(function, task, one) for task, one in zip(tasks, sent, strict=True)]


def _sent(
    engine: Engine, function: Callable[[Item], Result], task: Item, attempt: int = 0
) -> Future[Result | Failure] | Failure:
    """A call of `guarded` on its way; a failure if the engine does not take it: it was closed, or broke."""
    try:
        return engine.submit(guarded, function, task, attempt)
    except Exception as error:
        return _not_taken(error)


def _not_taken(error: Exception) -> Failure:
    return Failure(f"the engine took no task ({_told(error)})", again=False)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {one_line(error)}"


def guarded(function: Callable[[Item], Result], task: Item, attempt: int = 0) -> Result | Failure:
    """In the worker: the result, or what went wrong. One thread of BLAS, so that all workers round alike.

    The number of the attempt makes it another call: Dask would give the result of an equal one again.
    """
    try:
        with threadpool_limits(1, "blas"):
            return function(task)
    except Exception as error:
        return Failure(one_line(error), again=isinstance(error, (OSError, StoreError)))


@contextmanager
def shared_folder(root: Path | None) -> Iterator[Path]:
    """A folder that all workers see, in the run directory or else in the cache directory; gone at the end."""
    if root is None:
        Path(local_cache_directory()).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{WORK}-", dir=local_cache_directory()) as own:
            yield Path(own)
        return
    folder = root / WORK
    remove_tree(folder)  # of a run that was killed
    if is_local(folder):
        folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        remove_tree(folder)
