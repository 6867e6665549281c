"""Threads: tasks in parallel with one BLAS thread each, so that bits do not depend on the cores."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter, deque
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
_callers: Counter[int] = Counter()  # threads that are inside `one_blas_thread`, how deep
_before: dict[Any, int] = {}  # how many threads each BLAS library had
_alone: int | None = None  # the thread that is inside `idle_cores`


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
        n_threads = 1 if _callers else _blas_threads()
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
    caller = threading.get_ident()
    with _lock:
        for library in _blas_libraries(tuple(name in sys.modules for name in BLAS_MODULES)):
            if library not in _before:
                _before[library] = library.get_num_threads()
                _set_threads(library, 1)
        if caller != _alone:
            _end_alone()
        _callers[caller] += 1
    try:
        yield
    finally:
        with _lock:
            _callers[caller] -= 1
            if not _callers[caller]:
                del _callers[caller]
            while _before and not _callers:
                _set_threads(*_before.popitem())


@contextmanager
def idle_cores() -> Iterator[None]:
    """Within `one_blas_thread`, the cores that nothing uses for large products, until another
    thread comes in: for what one caller waits for. Beside a busy process products would wait for
    BLAS threads that are not on a core.
    """
    global _alone
    with _lock:
        caller = threading.get_ident()
        if list(_callers) == [caller] and _alone is None and (n_idle := _n_idle_cores()) > 1:
            _alone = caller
            for library, n_threads in _before.items():
                _set_threads(library, min(n_threads, n_idle))
    try:
        yield
    finally:
        with _lock:
            if _alone == caller:
                _end_alone()


def _end_alone() -> None:
    global _alone
    if _alone is not None:
        _alone = None
        for library in _before:
            _set_threads(library, 1)


def _n_idle_cores() -> int:
    """The cores that no other process uses at this moment; one where the system does not say."""
    try:
        with open("/proc/loadavg", encoding="ascii") as file:
            n_running = int(file.read().split()[3].split("/")[0])
        if n_running > 1:
            # BLAS threads of our own look for work for a while after the last.
            n_running -= sum(map(_is_running, os.listdir("/proc/self/task"))) - 1
    except (OSError, ValueError, IndexError):
        return 1
    return available_cores() - max(0, n_running - 1)


def _is_running(thread: str) -> bool:
    try:
        with open(f"/proc/self/task/{thread}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] == "R"
    except (OSError, IndexError):  # it has ended
        return False


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
