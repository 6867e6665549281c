"""The tables of `workspace.db`: which builds there are, and the items, titles and users of each."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from qkvsearch.data.ids import Ids
from qkvsearch.errors import WorkspaceError
from qkvsearch.workspace.titles import title_key

if TYPE_CHECKING:
    from qkvsearch.data.catalog import Catalog

DATABASE = "workspace.db"
BUILDS = """
CREATE TABLE IF NOT EXISTS builds (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    folder TEXT NOT NULL UNIQUE,
    created TEXT NOT NULL,
    is_current INTEGER NOT NULL
)
"""
# Belongs to no build: what is recorded stays, whatever is built next.
RECORDED = """
CREATE TABLE IF NOT EXISTS recorded (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    user TEXT NOT NULL,
    item TEXT NOT NULL,
    rating REAL,
    time INTEGER NOT NULL
)
"""
# Which a table made by an older version has not yet. batch: the same of what was recorded together.
RECORDED_LATER = {"weight": "REAL", "batch": "INTEGER"}
HAS_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
CURRENT_BUILD = "SELECT id, folder, created FROM builds WHERE is_current"


def write_tables(db: sqlite3.Connection, build: int, catalog: Catalog, users: Ids | None) -> None:
    """Create and fill `items_<build>`, `titles_<build>` and `users_<build>` in an open transaction.

    Integers are stored as integers, so that the condition `id < 100` compares numbers.
    """
    frame = catalog.frame
    columns = ", ".join(f"{quoted(name)} {_sql_type(frame[name])}" for name in frame.columns[1:])
    db.execute(
        f"CREATE TABLE items_{build} (_position INTEGER PRIMARY KEY, "
        f"id {_id_type(catalog.ids)} NOT NULL UNIQUE, {columns})"
    )
    cells = [
        frame[name].astype(object).where(frame[name].notna(), None) for name in frame.columns[1:]
    ]
    rows = zip(range(len(catalog)), catalog.ids, *cells, strict=True)
    places = ", ".join("?" * (len(frame.columns) + 1))
    db.executemany(f"INSERT INTO items_{build} VALUES ({places})", rows)

    db.execute(f"CREATE TABLE titles_{build} (key TEXT NOT NULL, position INTEGER NOT NULL)")
    keys = ((title_key(title), position) for position, title in enumerate(frame["title"]))
    db.executemany(f"INSERT INTO titles_{build} VALUES (?, ?)", keys)
    db.execute(f"CREATE INDEX titles_{build}_key ON titles_{build} (key)")

    users = users or Ids([])
    db.execute(
        f"CREATE TABLE users_{build} (_position INTEGER PRIMARY KEY, "
        f"id {_id_type(users)} NOT NULL UNIQUE)"
    )
    db.executemany(f"INSERT INTO users_{build} VALUES (?, ?)", enumerate(users))


def drop_tables(db: sqlite3.Connection, build: int) -> None:
    for name in ("items", "titles", "users"):
        db.execute(f"DROP TABLE IF EXISTS {name}_{build}")


def read_rows(db: sqlite3.Connection, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of a query. Raises `WorkspaceError` where the database is damaged."""
    try:
        return db.execute(sql, values).fetchall()
    except sqlite3.DatabaseError as error:
        raise WorkspaceError(f"{DATABASE}: {error}; build the workspace again") from None


def quoted(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _id_type(ids: Ids) -> str:
    return "INTEGER" if ids.integer else "TEXT"


def _sql_type(column: Any) -> str:
    kind = column.dtype.kind
    return "INTEGER" if kind == "i" else "REAL" if kind == "f" else "TEXT"
