"""Connect to SQLite so that a fork waits while a thread is inside it (`_utils/forks.py`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from itertools import islice
from typing import Any

from qkvsearch._utils.forks import inside_sqlite

# Rows that are written while a fork waits.
AT_ONCE = 256


def connect(address: Any, **options: Any) -> Database:
    """Connect to a database, with the options of `sqlite3.connect`."""
    with inside_sqlite():
        return sqlite3.connect(address, factory=Database, **options)


class Cursor(sqlite3.Cursor):
    """A cursor that keeps forks out while SQLite runs, and not between two calls."""

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        with inside_sqlite():
            return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Cursor:
        # To make the rows may take long, or read another database.
        rows = iter(parameters)
        while some := list(islice(rows, AT_ONCE)):
            with inside_sqlite():
                super().executemany(sql, some)
        return self

    def __next__(self) -> Any:
        with inside_sqlite():
            return super().__next__()

    def fetchone(self) -> Any:
        with inside_sqlite():
            return super().fetchone()

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        with inside_sqlite():
            return super().fetchmany(size)

    def fetchall(self) -> list[Any]:
        with inside_sqlite():
            return super().fetchall()

    def close(self) -> None:
        with inside_sqlite():
            super().close()


class Database(sqlite3.Connection):
    """A connection that keeps forks out while SQLite runs, and not between two calls."""

    def cursor(self, factory: Any = Cursor) -> Any:
        """Return a new cursor. All are made here: a connection has a list of weak references to its
        cursors, and drops those that are gone only when it is asked for another.
        """
        return super().cursor(factory)

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        cursor = self.cursor()
        with inside_sqlite():
            return sqlite3.Cursor.execute(cursor, sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Cursor:
        executed: Cursor = self.cursor().executemany(sql, parameters)
        return executed

    def backup(self, target: sqlite3.Connection, **options: Any) -> None:
        with inside_sqlite():
            super().backup(target, **options)

    def commit(self) -> None:
        with inside_sqlite():
            super().commit()

    def rollback(self) -> None:
        with inside_sqlite():
            super().rollback()

    def __exit__(self, *error: Any) -> Any:
        with inside_sqlite():
            return super().__exit__(*error)

    def close(self) -> None:
        with inside_sqlite():
            super().close()
