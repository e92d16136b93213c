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
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

import torch


def share(work: Callable[[int, int], None], n_tasks: int) -> None:
    """Call `work(first, last)` on parts of the tasks, at the same time, in as many threads as torch uses.

    `work` is meant to let go of Python's lock. What it raises is raised here, once no part is running; parts
    that had not begun may be left out then.
    """
    n_threads = min(torch.get_num_threads(), n_tasks)
    if n_threads == 1:
        work(0, n_tasks)
        return
    parts = deque(_parts(n_tasks, n_threads))
    failures: list[BaseException] = []

    def take(_: object = None) -> None:
        try:
            while True:
                try:
                    part = parts.popleft()
                except IndexError:
                    return
                work(*part)
        except BaseException as failure:
            failures.append(failure)

    openmp = _openmp()
    if openmp is None:
        others = [threading.Thread(target=take) for _ in range(1, n_threads)]
        for thread in others:
            thread.start()
        take()
        for thread in others:
            thread.join()
    else:
        openmp.GOMP_parallel(_MEMBER(take), None, n_threads, 0)
        if not failures:
            take()  # nothing is left, unless no thread came to it
    if failures:
        raise failures[0]


def _parts(n_tasks: int, n_threads: int) -> list[tuple[int, int]]:
    """Large parts first, small ones at the end, so that a thread that started late is not waited for long."""
    parts, first = [], 0
    while first < n_tasks:
        last = first + max(1, (n_tasks - first) // (2 * n_threads))
        parts.append((first, last))
        first = last
    return parts


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
