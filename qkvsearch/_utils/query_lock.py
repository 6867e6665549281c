"""A fair lock: one thread at a time runs the Python code of a query, others run compiled code.

Python code runs in one thread at a time anyway, because of the global interpreter lock (GIL). But
NumPy releases the GIL in each operation and waits for it again, each time waking another thread on
another core. Without this lock, several threads were slower together than one alone, and some
waited long. With it they take turns, first come, first served, and release the lock during long
compiled code.

The lock saves time and protects no data. So nobody waits for ever. A turn that does not end within
`LOST` seconds is lost, and the next thread begins. A turn is lost, for example, where a second
Ctrl-C interrupts the code that ends it.
"""

import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local

from qkvsearch._utils.deadline import check_deadline
from qkvsearch._utils.forks import fork_lock

# Seconds after which a turn counts as lost, which is longer than almost every turn.
LOST = 1.0
# Without the GIL, threads need not take turns.
_HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


class _Turn:
    """A thread's place in the queue. While it waits, it waits for its lock `comes`."""

    comes: Lock


# Protects the queue and who has the turn.
_state_lock = fork_lock()
_waiting: deque[_Turn] = deque()
_current: _Turn | None = None
_thread = local()


@contextmanager
def query_lock() -> Iterator[None]:
    """Hold the lock in the block; do nothing if the thread holds it already.

    Raises `DeadlineError` if the lock is free only after the deadline.
    """
    is_exempt = not _HAS_GIL or getattr(_thread, "is_background", False)
    if is_exempt or _has_turn():
        yield
        return
    turn = _Turn()
    try:
        _take(turn)
        check_deadline()
        yield
    finally:
        _end(turn)


@contextmanager
def released() -> Iterator[None]:
    """Release the lock during the block, which runs compiled code."""
    if not _has_turn():
        yield
        return
    turn = _thread.turn
    _end(turn)
    try:
        yield
    finally:
        _take(turn)  # `query_lock` ends it, even if this is interrupted


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
    try:
        _thread.is_background = True
        yield
    finally:
        _thread.is_background = before


def _has_turn() -> bool:
    """Return whether this is the thread's turn."""
    turn = getattr(_thread, "turn", None)
    return turn is not None and turn is _current


def _take(turn: _Turn, *, next_in_line: bool = False) -> None:
    """Wait until the turn comes. Whoever calls this ends the turn, even after an error."""
    global _current
    with _state_lock:
        _thread.turn = turn
        if _current is None:
            _current = turn
            return
        turn.comes = Lock()
        turn.comes.acquire()
        if next_in_line:
            _waiting.appendleft(turn)
        else:
            _waiting.append(turn)
    while True:
        before = _current
        turn.comes.acquire(timeout=LOST)
        with _state_lock:
            if turn not in _waiting:  # it has come
                return
            if _waiting[0] is turn and _current is before:  # it is lost
                _waiting.popleft()
                _current = turn
                return


def _end(turn: _Turn) -> None:
    """Pass the turn on, or leave the queue."""
    global _current
    with _state_lock:
        if turn is _current:
            _current = _waiting.popleft() if _waiting else None
            if _current is not None:
                _current.comes.release()
        elif turn in _waiting:
            _waiting.remove(turn)


# --- fork: the child begins while no other thread is in the middle of a query ---


def _before_fork() -> None:
    _thread.forking = None
    if _HAS_GIL and not _has_turn():
        _thread.forking = _Turn()
        _take(_thread.forking, next_in_line=True)


def _after_fork() -> None:
    if _thread.forking is not None:
        _end(_thread.forking)


def _in_child() -> None:
    """Forget the turns of the threads that are not here."""
    global _current
    _waiting.clear()
    if _thread.forking is not None or not _has_turn():
        _current = None


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
