"""Spread tasks over as many threads as the BLAS library uses, one BLAS thread to each."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

Task = TypeVar("Task")

_busy = threading.Lock()


def run_in_threads(worker: Callable[[], Callable[[Task], None]], tasks: Iterable[Task]) -> None:
    """Have every task done by a worker, one for each thread, in no certain order.

    The first error of any ends all, and is raised.

    Several threads in BLAS for each of several threads of ours would fight for the cores. How many
    BLAS has is the process's, so one call at a time may change it; a call that comes meanwhile,
    from another thread or from within a task, does its tasks one by one.
    """
    waiting = deque(tasks)

    def drain() -> None:
        work = worker()
        while waiting:
            try:
                task = waiting.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                work(task)
            except BaseException:
                waiting.clear()
                raise

    if len(waiting) < 2 or not _busy.acquire(blocking=False):
        return drain()
    # Imported when used, here and below: they take longer to import than all else of attention.
    from concurrent.futures import ThreadPoolExecutor

    try:
        n_threads = min(_blas_threads(), len(waiting))
        with _controller().limit(limits=1, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
            others = [pool.submit(drain) for _ in range(n_threads - 1)]
            drain()
            for other in others:
                other.result()
    finally:
        _busy.release()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS in one thread: what is solved here is small, so that more of them mostly wait for one
    another, and sums of more than 128 components would differ in their last bits.

    Whoever has the threads already, has set them to one.
    """
    if not _busy.acquire(blocking=False):
        yield
        return
    try:
        with _numpy_blas().limit(limits=1, user_api="blas"):
            yield
    finally:
        _busy.release()


@cache
def _numpy_blas() -> Any:
    """A ThreadpoolController of what NumPy has loaded: SciPy's BLAS, which `_controller` imports,
    takes longer than a search.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@cache
def _controller() -> Any:
    """A ThreadpoolController, made once: its look through the process takes a millisecond."""
    import scipy.linalg.cython_blas  # noqa: F401  (compiled products of matrices are in SciPy's BLAS)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _blas_threads() -> int:
    """What the environment (OPENBLAS_NUM_THREADS and its like) and the machine grant BLAS."""
    libraries = _controller().select(user_api="blas").info()
    return max((library["num_threads"] for library in libraries), default=1)


def available_cores() -> int:
    """The cores that this process may use, which in a container are fewer than the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
