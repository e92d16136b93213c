"""The one seam to workers: long loops run on threads of this process, or as tasks on what the caller lends.

    with ta.workers(4):                                # processes of this machine
    with ta.workers(dask_client):                      # or anything else with `submit`
    with ta.workers(extract=gpu_pool, fit=cpu_pool):

A task is a function of a module and one small argument. What tasks share lies at an address. They may run in
any order, and twice without harm: a task whose worker died is sent again.
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import Future as PoolFuture
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from types import TracebackType
from typing import Generic, Literal, Protocol, TypeVar

from threadpoolctl import threadpool_limits

from thinkalike.addresses import is_local, remove_tree
from thinkalike.errors import InvalidInput, MissingExtra, StoreError, WorkFailed, one_line
from thinkalike.machine import local_cache_directory
from thinkalike.progress import progress

Item = TypeVar("Item")
Result = TypeVar("Result")
Sent = TypeVar("Sent", covariant=True)
Kind = Literal["extract", "fit"]

WORK = "work"
"""The folder of a run directory in which tasks leave what is too large for a message"""
KNOCK_SECONDS, SCHEDULER_SECONDS = 3, 10
"""For someone to listen at the address of a scheduler, and for a scheduler to answer there"""
TRIES = 3
"""How often a task is sent out if its worker dies, or the store fails"""


class Future(Protocol[Sent]):
    """A task that was sent."""

    def result(self) -> Sent:
        """What it came to, once it has ended."""

    def cancel(self) -> object:
        """Leave it, if it has not begun."""


class Engine(Protocol):
    """What runs tasks: an executor of `concurrent.futures` or submitit, a Dask client."""

    def submit(self, function: Callable[..., Result], /, *arguments: object) -> Future[Result]:
        """Send it."""


_engines: ContextVar[dict[Kind, Engine]] = ContextVar("engines")


@contextmanager
def workers(
    engine: Engine | int | None = None,
    *,
    extract: Engine | int | None = None,
    fit: Engine | int | None = None,
) -> Iterator[None]:
    """Send the work of `compare`, `profile`, `similarity`, `stitch` and `Atlas.add_models` elsewhere.

    Parameters
    ----------
    engine : anything with `submit`: an executor of `concurrent.futures` or submitit, a Dask client. A number
        makes so many processes of this machine, for the block. The caller owns what is lent.
    extract, fit : other engines for reading models (and stitching them) and for looking at layers, such as
        machines with and without a GPU.

    Returns
    -------
    context manager
        What is computed within its block is sent to the workers.

    Notes
    -----
    All workers must see the files: the run directory (`out=`), or the cache directory without one. The
    results are the same to the byte wherever they were made by the same versions on as many threads.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import numpy as np
    >>> import thinkalike as ta
    >>> stimuli = ta.Stimuli.from_grammar(30, seed=0, grammar="salle2024")
    >>> X = np.random.default_rng(0).normal(size=(len(stimuli), 8))
    >>> with ThreadPoolExecutor(2) as pool, ta.workers(pool):
    ...     ta.profile({"a layer": X}, stimuli).layers
    ('a layer',)
    """
    with ExitStack() as stack:
        lent: dict[Kind, Engine] = {}
        common = _opened(engine, stack)
        for kind, own in (("extract", extract), ("fit", fit)):
            found = common if own is None else _opened(own, stack)
            if found is not None:
                lent[kind] = found  # type: ignore[index]
        token = _engines.set(lent)
        stack.callback(_engines.reset, token)
        yield


def engine_for(kind: Kind) -> Engine | None:
    """What was lent for this kind of task; None if it is done here."""
    return _engines.get({}).get(kind)


@contextmanager
def dask_client(address: str) -> Iterator[Engine]:
    """A client of the Dask scheduler at `address`."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtra.needed("distributed", "dask") from error
    try:
        _knock(address)
        client = Client(address, timeout=SCHEDULER_SECONDS)
    except (OSError, ValueError) as error:  # a timeout is one of the former
        raise InvalidInput(
            f"No Dask scheduler answers at {address} ({one_line(error)}): start one with `dask scheduler`, "
            "and give the address that it prints."
        ) from error
    with client:
        yield client


def _knock(address: str) -> None:
    """Raise at once if nobody listens at an address of the network: a client would try again and again."""
    from distributed.comm.addressing import parse_address, parse_host_port

    kind, rest = parse_address(address)
    if kind in ("tcp", "tls"):
        socket.create_connection(parse_host_port(rest), timeout=KNOCK_SECONDS).close()


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Processes:
    """Processes of this machine; when one of them dies, all are replaced. None outlives its caller."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._context = get_context("spawn")  # a fork would copy threads
        self._started: SimpleQueue[int] = self._context.SimpleQueue()
        self._pool = self._new()

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and not issubclass(kind, Exception):  # Ctrl-C: nobody waits for a task to end
            self._kill()
        self.close()

    def submit(self, function: Callable[..., Result], /, *arguments: object) -> Future[Result]:
        with _interrupts_held():  # new processes keep it so: Ctrl-C is the caller's affair
            try:
                return self._pool.submit(function, *arguments)
            except BrokenExecutor:
                self.close()
                self._pool = self._new()
                return self._pool.submit(function, *arguments)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self.number, mp_context=self._context, initializer=_begin_worker, initargs=(self._started,)
        )

    def _kill(self) -> None:
        own = set()
        while not self._started.empty():
            own.add(self._started.get())
        for child in active_children():
            if child.pid in own:
                child.kill()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C comes when the block has ended."""
    if not hasattr(signal, "pthread_sigmask"):  # not on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker(started: SimpleQueue[int]) -> None:
    """In a process of ours: when the caller is gone, so are we.

    A caller that was killed tells nobody, and the pool would wait for its next task for ever.
    """
    started.put(os.getpid())

    def end_with_caller() -> None:
        caller = parent_process()
        if caller is not None:
            caller.join()
            os._exit(1)

    threading.Thread(target=end_with_caller, daemon=True).start()


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


def _opened(engine: Engine | int | None, stack: ExitStack) -> Engine | None:
    if isinstance(engine, int):
        if engine < 1 or isinstance(engine, bool):
            raise InvalidInput(f"Got {engine} workers: give 1 or more, or what has `submit`.")
        return stack.enter_context(Processes(engine))
    if engine is not None and not hasattr(engine, "submit"):
        raise InvalidInput(
            f"{type(engine).__name__} cannot run tasks: give a number of processes, an executor of "
            "concurrent.futures or submitit, or a Dask client."
        )
    return engine


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


def stream_in_order(
    function: Callable[[Item], Result],
    items: Sequence[Item] | Iterator[Item],
    *,
    description: str,
    threads: int = 1,
    total: int | None = None,
) -> Iterator[Result]:
    """The results one by one in the order of `items`, on threads of this process, with progress.

    Few are under way or wait at a time; items that an iterator makes (`total` of them) are made here, as they
    are needed. BLAS has one thread, as it has in workers: the numbers are the same to the bit.
    """
    total = len(items) if isinstance(items, Sequence) else total
    window = 2 * threads if isinstance(items, Sequence) else threads
    with progress(description, total) as step, threadpool_limits(1, "blas"), ExitStack() as stack:
        results: Iterator[Result] = map(function, items)
        if threads > 1 and total != 1:
            own = ThreadPoolExecutor(threads)
            stack.callback(own.shutdown, wait=True, cancel_futures=True)
            results = _ahead(own, function, iter(items), window)
        for result in results:
            step.advance()
            yield result


def _ahead(
    executor: Executor, function: Callable[[Item], Result], items: Iterator[Item], window: int
) -> Iterator[Result]:
    """Results in order, at most `window` submitted beyond the one that is waited for."""
    pending = deque(executor.submit(function, item) for item in itertools.islice(items, window))
    while pending:
        result = pending.popleft().result()
        pending.extend(executor.submit(function, item) for item in itertools.islice(items, 1))
        yield result
