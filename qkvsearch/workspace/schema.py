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
    if catalog.ids.fold or users.fold:
        _write_folded(db, build, {"items": catalog.ids, "users": users})


def _write_folded(db: sqlite3.Connection, build: int, ids: dict[str, Ids]) -> None:
    """The table by which ids are found whose case is another; only builds that fold ids have it."""
    db.execute(
        f"CREATE TABLE folded_{build} (kind TEXT, key TEXT, position INTEGER, "
        "PRIMARY KEY (kind, key)) WITHOUT ROWID"
    )
    for kind, known in ids.items():
        rows = ((kind, text.casefold(), position) for position, text in enumerate(known.texts))
        db.executemany(f"INSERT INTO folded_{build} VALUES (?, ?, ?)", rows)


def drop_tables(db: sqlite3.Connection, build: int) -> None:
    for name in ("items", "titles", "users", "folded"):
        db.execute(f"DROP TABLE IF EXISTS {name}_{build}")


def read_rows(db: sqlite3.Connection, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of a query. Raises `WorkspaceError` where the database is damaged."""
    try:
        return db.execute(sql, values).fetchall()
    except sqlite3.DatabaseError as error:
        raise WorkspaceError(f"{DATABASE}: {error}; build the workspace again") from None


def folds_ids(db: sqlite3.Connection, build: int) -> bool:
    """Whether ids that differ in case alone are one."""
    return bool(read_rows(db, HAS_TABLE, f"folded_{build}"))


def are_whole(db: sqlite3.Connection, kind: str, build: int) -> bool:
    """Whether the ids of the "items" or the "users" are whole numbers."""
    return table_columns(db, f"{kind}_{build}")["id"] == "INTEGER"


def table_columns(db: sqlite3.Connection, table: str) -> dict[str, str]:
    """The SQL types of a table's columns, by their names."""
    info = read_rows(db, f"PRAGMA table_info({table})")
    return {name: sql_type for _, name, sql_type, *_ in info}


def quoted(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _id_type(ids: Ids) -> str:
    return "INTEGER" if ids.integer else "TEXT"


def _sql_type(column: Any) -> str:
    kind = column.dtype.kind
    return "INTEGER" if kind == "i" else "REAL" if kind == "f" else "TEXT"
