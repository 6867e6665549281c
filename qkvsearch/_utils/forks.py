"""Give a forked child free locks and its own connections to SQLite.

Only the thread that forks lives on in the child. A lock that another thread held at that moment
would stay taken there for ever. Python's locks are made free in the child. SQLite's locks cannot
be: each connection has some, and others belong to the whole process. So a fork waits until no
other thread is inside SQLite.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakSet

from qkvsearch._utils.limits import EXPRESSION_SECONDS
from qkvsearch.errors import DataError

if TYPE_CHECKING:
    import sqlite3

_locks: WeakSet[threading.Lock] = WeakSet()
# Connections inherited from the parent. They stay open and unused: closing one could wait for a
# thread that is not here.
_of_parents: list[sqlite3.Connection] = []


def fork_lock() -> threading.Lock:
    """Return a new lock that is free in a child.

    It is Python's own lock and no class around it. So `with` takes and frees it in one step, which
    no Ctrl-C interrupts.
    """
    lock = threading.Lock()
    _locks.add(lock)
    return lock


class Connection:
    """A place for a connection to a database, which is empty in a forked child at first."""

    def __init__(self) -> None:
        self._db: sqlite3.Connection | None = None
        self._process = os.getpid()

    @property
    def db(self) -> sqlite3.Connection | None:
        """The connection of this process, if there is one."""
        if self._process != os.getpid():
            if self._db is not None:
                _of_parents.append(self._db)
            self._db, self._process = None, os.getpid()
        return self._db

    @db.setter
    def db(self, db: sqlite3.Connection | None) -> None:
        self._db, self._process = db, os.getpid()

    def close(self) -> None:
        """Close the connection, if there is one."""
        db, self.db = self.db, None
        if db is not None:
            db.close()


def in_child(call: Callable[[], None]) -> None:
    """Have a function called at the beginning of each forked child."""
    if hasattr(os, "register_at_fork"):  # Windows has no fork
        os.register_at_fork(after_in_child=call)


def _free_all() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # type: ignore[attr-defined]


in_child(_free_all)


# --- the gate: a fork waits until no other thread is inside SQLite ---

# Seconds that a fork waits for other threads, besides those that a condition may take.
PATIENCE = 8.0
_thread = threading.local()
# Each thread has a lock that it holds while it is inside SQLite. A fork takes the locks of all.
_inside: WeakSet[threading.RLock] = WeakSet()
# A fork holds it: nobody enters meanwhile, and no thread gets a new lock.
_gate = threading.RLock()
_is_closed = False


def inside_sqlite() -> threading.RLock:
    """Return the lock that the thread holds, in a `with` block, while it is inside SQLite.

    Blocks can be nested. A block must not wait for another thread that may wait at the gate.

    >>> with inside_sqlite(), inside_sqlite():
    ...     pass
    """
    lock: threading.RLock | None = getattr(_thread, "lock", None)
    if lock is None:
        lock = threading.RLock()
        with _gate:
            _inside.add(lock)
        _thread.lock = lock
    # Without this, a thread that enters again and again would leave a fork no moment.
    elif _is_closed and not _is_own(lock):
        with _gate:
            pass
    return lock


def _is_own(lock: threading.RLock) -> bool:
    """Return whether this thread holds the lock."""
    return lock._is_owned()  # type: ignore[attr-defined]


def _close_gate() -> None:
    """Keep other threads out, and wait until none is inside, at most until the patience ends."""
    global _is_closed
    end = time.monotonic() + _patience()
    _gate.acquire(timeout=end - time.monotonic())
    _is_closed = True
    for lock in _locks_of_others():
        if not _is_own(lock):  # of a fork whose end was interrupted
            lock.acquire(timeout=max(0.0, end - time.monotonic()))


def _locks_of_others() -> list[threading.RLock]:
    own = getattr(_thread, "lock", None)
    return [lock for lock in list(_inside) if lock is not own]


def _patience() -> float:
    try:
        return PATIENCE + EXPRESSION_SECONDS.value
    except DataError:  # the variable is no number: every condition says so
        return PATIENCE


def _open_gate() -> None:
    """Let the other threads in again. It does nothing if that is done."""
    global _is_closed
    _is_closed = False
    for lock in _locks_of_others():
        if _is_own(lock):
            lock.release()
    if _is_own(_gate):
        _gate.release()


def _renew_gate() -> None:
    """Forget the threads that are not in this child."""
    global _is_closed, _gate
    _is_closed = False
    _gate = threading.RLock()
    for lock in _locks_of_others():
        _inside.discard(lock)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_gate, after_in_parent=_open_gate, after_in_child=_renew_gate)
    # Python raises a Ctrl-C that came during the fork in the first of these calls, and drops it.
    os.register_at_fork(after_in_parent=_open_gate)
