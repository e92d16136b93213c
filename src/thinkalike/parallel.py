"""The one seam to workers: long loops run here, in process unless the caller lends an executor.

    with concurrent.futures.ThreadPoolExecutor(8) as executor, workers(executor):
        ta.compare(...)

Anything with `submit` will do; a Dask client's `get_executor()` is one. The caller owns it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

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


def map_in_order(
    function: Callable[[Item], Result], items: Sequence[Item], *, description: str
) -> list[Result]:
    """`[function(item) for item in items]`, with progress, on the workers if there are any."""
    executor = _executor.get()
    with progress(description, len(items)) as step:
        results = []
        pending = None if executor is None else [executor.submit(function, item) for item in items]
        for k, item in enumerate(items):
            results.append(function(item) if pending is None else pending[k].result())
            step.advance()
        return results
