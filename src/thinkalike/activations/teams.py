"""A kernel's tasks, shared among the threads that torch has already.

Between two operations, torch's OpenMP threads wait for work by spinning, for milliseconds. A thread of our
own shares its core with one that spins, and gets half of it: on two cores, two threads were hardly faster
than one. So the spinning ones do our work, through the C entry that compilers use, where torch carries an
OpenMP library with that entry; elsewhere threads are started for one call, which needs nothing closed and
nothing that a fork could break.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import torch


def share(work: Callable[[int, int], None], n_tasks: int) -> None:
    """Call `work(first, last)` on parts of the tasks, at the same time, in as many threads as torch uses.

    `work` is meant to let go of Python's lock. What it raises is raised here, once all parts have ended.
    """
    n_parts = min(torch.get_num_threads(), n_tasks)
    if n_parts == 1:
        work(0, n_tasks)
        return
    parts = list(itertools.pairwise(n_tasks * i // n_parts for i in range(n_parts + 1)))
    failures: list[BaseException] = []

    def take(number: int) -> None:
        try:
            work(*parts[number])
        except BaseException as failure:
            failures.append(failure)

    openmp = _openmp()
    if openmp is None:
        others = [threading.Thread(target=take, args=(number,)) for number in range(1, n_parts)]
        for thread in others:
            thread.start()
        take(0)
        for thread in others:
            thread.join()
    else:
        numbers = iter(range(n_parts))
        member = _MEMBER(lambda _: take(next(numbers)))
        openmp.GOMP_parallel(member, None, n_parts, 0)
        for number in numbers:  # OpenMP may give fewer threads than were asked for
            take(number)
    if failures:
        raise failures[0]


_MEMBER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@functools.cache
def _openmp() -> ctypes.CDLL | None:
    """The OpenMP library that torch carries, if it has the entry."""
    for path in sorted((Path(torch.__file__).parent / "lib").glob("lib*omp*")):
        try:
            library = ctypes.CDLL(str(path))  # it is loaded already: this finds it
            entry = library.GOMP_parallel
        except (OSError, AttributeError):
            continue
        entry.argtypes = [_MEMBER, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        entry.restype = None
        return library
    return None
