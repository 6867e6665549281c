"""Parallel tasks with one BLAS thread each: results do not depend on the number of cores."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from qkvsearch._utils.forks import fork_lock, in_child
from qkvsearch.imports import leaving_no_trace

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Task = TypeVar("Task")

# Modules that load further BLAS libraries besides NumPy's.
BLAS_MODULES = ("scipy.special._ufuncs", "scipy.linalg._fblas", "scipy.linalg.cython_blas", "torch")


class _Caller:
    """A call of `one_blas_thread` that runs now, in this thread."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()


_lock = fork_lock()
# The calls of all threads. One that is interrupted before it leaves is gone with its frame.
_callers: WeakSet[_Caller] = WeakSet()
_saved_threads: dict[Any, int] = {}  # the previous number of threads of each BLAS library


def run_in_threads(
    worker: Callable[[], Callable[[Task], None]],
    tasks: Iterable[Task],
    n_threads: int | None = None,
) -> None:
    """Run all tasks, in any order, in `n_threads`, by default as many as BLAS uses.

    worker() is called once in each thread and returns the function that runs a task there. The
    first error stops all threads and is raised. By default, tasks run in one thread within another
    task, or while another thread runs tasks: nested threads would compete for the cores.
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
        n_threads = 1 if len(_callers) else _blas_threads()
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
    """Open a pool of threads, one per core by default, with BLAS in one thread meanwhile."""
    # Imported here, since it takes longer to import than all of attention.
    from concurrent.futures import ThreadPoolExecutor

    with one_blas_thread(), ThreadPoolExecutor(n_threads or available_cores()) as pool:
        yield pool


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run BLAS in one thread until the last caller, in any thread, leaves; then restore it.

    The last bits of a product depend on the number of BLAS threads. Besides, if products are small
    or tasks run in parallel, several BLAS threads mostly wait for one another.
    """
    caller = _Caller()
    try:
        with _lock:
            is_only_caller = not len(_callers)
            _callers.add(caller)
            for library in _blas_libraries(tuple(name in sys.modules for name in BLAS_MODULES)):
                is_new = library not in _saved_threads
                if is_new:
                    _saved_threads[library] = library.get_num_threads()
                # The last caller may have been interrupted when it had restored the threads, but
                # not yet forgotten their number.
                if is_new or is_only_caller:
                    _set_threads(library, 1)
        yield
    finally:
        with _lock:
            _callers.discard(caller)
            if not len(_callers):
                _restore_threads()


def _restore_threads() -> None:
    for library, n_threads in list(_saved_threads.items()):
        _set_threads(library, n_threads)
        del _saved_threads[library]


def _forget_callers() -> None:
    """Forget the calls of threads that are not in this child. The next call restores BLAS."""
    own = threading.get_ident()
    for caller in list(_callers):
        if caller.thread != own:
            _callers.discard(caller)


in_child(_forget_callers)


def _set_threads(library: Any, n_threads: int) -> None:
    """Set the number of threads from any thread: since 3.8, threadpoolctl obeys only the thread
    that limited it first, but callers are counted here already.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


@lru_cache(maxsize=1)
def _blas_libraries(loaded: tuple[bool, ...]) -> list[Any]:
    """Return the BLAS libraries; cached, since finding them takes a millisecond.

    loaded: whether each of BLAS_MODULES is imported, as the key of the cache.
    """
    with leaving_no_trace("threadpoolctl"):
        from threadpoolctl import ThreadpoolController

    controller = ThreadpoolController()
    return [each for each in controller.lib_controllers if each.user_api == "blas"]


def _blas_threads() -> int:
    """Return the number of threads that BLAS may use, by the machine and the environment."""
    import scipy.linalg.cython_blas  # noqa: F401  (numba's products of matrices use SciPy's BLAS)

    libraries = _blas_libraries(tuple(name in sys.modules for name in BLAS_MODULES))
    return max((library.get_num_threads() for library in libraries), default=1)


def available_cores() -> int:
    """Return the number of cores that this process may use; in a container, not all of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
