"""The one seam to workers: long loops run here, on threads of this process or on what the caller lends.

    with concurrent.futures.ThreadPoolExecutor(8) as executor, workers(executor):
        ta.compare(...)

Anything with `submit` will do; a Dask client's `get_executor()` is one. The caller owns it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TypeVar

from threadpoolctl import threadpool_limits

from thinkalike.progress import progress

Item = TypeVar("Item")
Result = TypeVar("Result")

_executor: ContextVar[Executor | None] = ContextVar("executor", default=None)


@contextmanager
def workers(executor: Executor) -> Iterator[None]:
    """Send the long loops within the block to `executor`."""
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_order(
    function: Callable[[Item], Result], items: Sequence[Item], *, description: str
) -> list[Result]:
    """`[function(item) for item in items]`, with progress, on the workers if there are any."""
    return list(stream_in_order(function, items, description=description))


def stream_in_order(
    function: Callable[[Item], Result], items: Sequence[Item], *, description: str, threads: int = 1
) -> Iterator[Result]:
    """The results one by one in the order of `items`, with progress; few are under way or wait at a time.

    Parameters
    ----------
    threads : how many to use when the caller lends no workers; each with one thread of BLAS, so that they do
        not wait for one another. 1: the work is done here.
    """
    lent = _executor.get()
    with progress(description, len(items)) as step, ExitStack() as stack:
        if lent is None and min(threads, len(items)) > 1:
            stack.enter_context(threadpool_limits(1, "blas"))
            own = ThreadPoolExecutor(threads)
            stack.callback(own.shutdown, wait=True, cancel_futures=True)
            results = _ahead(own, function, items, 2 * threads)
        elif lent is None:
            results = map(function, items)
        else:
            results = _ahead(lent, function, items, len(items))
        for result in results:
            step.advance()
            yield result


def _ahead(
    executor: Executor, function: Callable[[Item], Result], items: Sequence[Item], window: int
) -> Iterator[Result]:
    """Results in order, at most `window` submitted beyond the one that is waited for."""
    pending = deque(executor.submit(function, item) for item in items[:window])
    for following in range(len(pending), len(items) + len(pending)):
        result = pending.popleft().result()
        if following < len(items):
            pending.append(executor.submit(function, items[following]))
        yield result
