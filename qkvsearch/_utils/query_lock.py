"""A fair lock: one thread at a time runs the Python code of a query, others run compiled code.

Python code runs in one thread at a time anyway, because of the global interpreter lock (GIL). But
NumPy releases the GIL in each operation and waits for it again, each time waking another thread on
another core. Without this lock, several threads were slower together than one alone, and some
waited long. With it they take turns, first come, first served, and release the lock during long
compiled code.
"""

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local

from qkvsearch._utils.deadline import check_deadline

_state_lock = Lock()
_waiting: deque[Lock] = deque()
_is_taken = False
_thread = local()
# Without the GIL, threads need not take turns.
_HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


@contextmanager
def query_lock() -> Iterator[None]:
    """Hold the lock in the block; do nothing if the thread holds it already.

    Raises `DeadlineError` if the lock is free only after the deadline.
    """
    is_exempt = not _HAS_GIL or getattr(_thread, "is_background", False)
    if is_exempt or getattr(_thread, "has_lock", False):
        yield
        return
    _acquire()
    try:
        check_deadline()
        yield
    finally:
        _release()


@contextmanager
def released() -> Iterator[None]:
    """Release the lock during the block, which runs compiled code."""
    if not getattr(_thread, "has_lock", False):
        yield
        return
    _release()
    try:
        yield
    finally:
        _acquire()


def pause() -> None:
    """Let waiting threads run. Raises `DeadlineError` after the deadline."""
    check_deadline()
    if _waiting:
        with released():
            pass


@contextmanager
def without_query_lock() -> Iterator[None]:
    """Never take the lock in the block: background work must not delay queries."""
    before = getattr(_thread, "is_background", False)
    _thread.is_background = True
    try:
        yield
    finally:
        _thread.is_background = before


def _acquire() -> None:
    global _is_taken
    with _state_lock:
        ticket = Lock() if _is_taken else None
        if ticket is not None:
            ticket.acquire()
            _waiting.append(ticket)
        _is_taken = True
    if ticket is not None:
        ticket.acquire()  # until the thread that holds the query lock passes it on
    _thread.has_lock = True


def _release() -> None:
    global _is_taken
    _thread.has_lock = False
    with _state_lock:
        if _waiting:
            _waiting.popleft().release()
        else:
            _is_taken = False
