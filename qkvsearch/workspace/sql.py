"""Helpers for the SQLite database of a workspace."""

from __future__ import annotations

import sqlite3
from typing import Any

from qkvsearch.errors import WorkspaceError

DATABASE = "workspace.db"
HAS_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"


def read_rows(db: sqlite3.Connection, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of a query. Raises `WorkspaceError` where the database is damaged."""
    try:
        return db.execute(sql, values).fetchall()
    except sqlite3.DatabaseError as error:
        raise WorkspaceError(f"{DATABASE}: {error}; build the workspace again") from None


def quoted(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'
