"""What a forked child inherits: locks that are free, and nothing of SQLite.

Only the thread that forks lives on in the child. A lock that another thread held at that moment
would stay taken there for ever. SQLite has such locks in each connection.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    import sqlite3

_locks: WeakSet[threading.Lock] = WeakSet()
# Connections that this process has of its parent, and neither uses nor closes.
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
            # To close the parent's connection could wait for a thread that is not here.
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
