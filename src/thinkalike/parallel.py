"""Who does the work: threads of this process, in long loops, or what the caller lends, for tasks.

    with ta.workers(4):                                # processes of this machine
    with ta.workers(dask_client):                      # or anything else with `submit`
    with ta.workers(extract=gpu_pool, fit=cpu_pool):

What is lent runs tasks (`dispatch.py`).
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.queues import SimpleQueue
from types import TracebackType
from typing import Literal, Protocol, TypeVar

from threadpoolctl import threadpool_limits

from thinkalike.errors import InvalidInput, MissingExtra, one_line
from thinkalike.progress import progress

Item = TypeVar("Item")
Result = TypeVar("Result")
Sent = TypeVar("Sent", covariant=True)
Kind = Literal["extract", "fit"]

KNOCK_SECONDS, SCHEDULER_SECONDS = 3, 10
"""For someone to listen at the address of a scheduler, and for a scheduler to answer there"""


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
