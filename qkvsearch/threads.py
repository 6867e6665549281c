"""Threads: tasks in parallel with one BLAS thread each, so that bits do not depend on the cores."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Task = TypeVar("Task")

# Modules that load a BLAS library besides NumPy's.
BLAS_MODULES = ("scipy.special._ufuncs", "scipy.linalg._fblas", "scipy.linalg.cython_blas", "torch")

_lock = threading.Lock()
_n_callers = 0  # that are inside `one_blas_thread`
_before: dict[Any, int] = {}  # how many threads each BLAS library had


def run_in_threads(
    worker: Callable[[], Callable[[Task], None]],
    tasks: Iterable[Task],
    n_threads: int | None = None,
) -> None:
    """Run every task, in no certain order, in `n_threads`, by default as many as BLAS uses.

    worker() is called once in each thread and returns the function that runs a task there. The
    first error stops all threads and is raised. By default tasks run one by one within a task, or
    while another thread runs tasks: nested threads would compete for the cores.
    """
    waiting = deque(tasks)

    def drain() -> None:
        work = worker()
        while waiting:
            try:
                task = waiting.popleft()
            except IndexError:  # another thread took it
                return
            try:
                work(task)
            except BaseException:
                waiting.clear()
                raise

    if n_threads is None:
        n_threads = 1 if _n_callers else _blas_threads()
    n_threads = min(n_threads, len(waiting))
    if n_threads < 2:
        with one_blas_thread():
            return drain()
    with thread_pool(n_threads) as pool:
        others = [pool.submit(drain) for _ in range(n_threads - 1)]
        drain()
        for other in others:
            other.result()


@contextmanager
def thread_pool(n_threads: int | None = None) -> Iterator[ThreadPoolExecutor]:
    """A pool of threads, one per core by default, with BLAS in one thread while it is open."""
    # Imported when used, as below: it takes longer to import than all of attention.
    from concurrent.futures import ThreadPoolExecutor

    with one_blas_thread(), ThreadPoolExecutor(n_threads or available_cores()) as pool:
        yield pool


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS in one thread until the last caller, in any thread, has left; then as it was before.

    The last bits of a product depend on the number of BLAS threads. And where products are small,
    or tasks have threads of their own, more BLAS threads mostly wait for one another.
    """
    global _n_callers
    with _lock:
        for library in _blas_libraries(tuple(name in sys.modules for name in BLAS_MODULES)):
            if library not in _before:
                _before[library] = library.get_num_threads()
                _set_threads(library, 1)
        _n_callers += 1
    try:
        yield
    finally:
        with _lock:
            _n_callers -= 1
            while _before and not _n_callers:
                _set_threads(*_before.popitem())


def _set_threads(library: Any, n_threads: int) -> None:
    """Whichever thread asks: since 3.8, threadpoolctl heeds just one until that lets go of it, and
    here callers are counted already.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


@lru_cache(maxsize=1)
def _blas_libraries(loaded: tuple[bool, ...]) -> list[Any]:
    """The BLAS libraries; cached, since looking for them takes a millisecond.

    loaded: whether each of BLAS_MODULES is imported; another look is needed where that changes.
    """
    from threadpoolctl import ThreadpoolController

    controller = ThreadpoolController()
    return [each for each in controller.lib_controllers if each.user_api == "blas"]


def _blas_threads() -> int:
    """How many threads BLAS may use, by the machine and by OPENBLAS_NUM_THREADS and the like."""
    import scipy.linalg.cython_blas  # noqa: F401  (numba's products of matrices use SciPy's BLAS)

    libraries = _blas_libraries(tuple(name in sys.modules for name in BLAS_MODULES))
    return max((library.get_num_threads() for library in libraries), default=1)


def available_cores() -> int:
    """The cores that this process may use, which in a container are fewer than the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
