"""What older versions recorded, as records of today."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from qkvsearch.workspace.former.database import DATABASE, connect, damaged, state
from qkvsearch.workspace.records.database import CASEFOLD, RecordsDatabase
from qkvsearch.workspace.records.rows import Record, create, insert, set_last
from qkvsearch.workspace.root import ROOT

# Columns that the first versions had not: of these, each interaction was recorded by itself.
LATER = {"weight": "NULL", "batch": "number"}


class FormerRecords(RecordsDatabase):
    """The records in an older workspace, of which nothing is written; when it was brought up to
    date meanwhile, those of today.
    """

    def __init__(self, workspace: Path) -> None:
        super().__init__(workspace)
        self.former = workspace / DATABASE
        self._state: object = None
        self._copy: sqlite3.Connection | None = None

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query finds. Raises `WorkspaceError`."""
        if (self.former.parent / ROOT).exists():
            return RecordsDatabase.of(self.former.parent).rows(sql, *values)
        with self._mutex:
            now = state(self.former)
            if self._copy is None or now != self._state:
                self._copy, self._state = in_memory(self.former), now
            return self._copy.execute(sql, values).fetchall()


def in_memory(database: Path) -> sqlite3.Connection:
    """The tables of records, filled from those of an older version. Raises `WorkspaceError`."""
    former = connect(database)
    try:
        records, last = read_records(former)
    except sqlite3.Error as error:
        raise damaged(database, error) from None
    finally:
        former.close()
    db = sqlite3.connect(":memory:", check_same_thread=False)
    db.create_function(CASEFOLD, 1, str.casefold, deterministic=True)
    fill(db, records, last)
    return db


def fill(db: sqlite3.Connection, records: list[Record], last: int) -> None:
    """Write all records into empty tables, in an open transaction."""
    create(db)
    insert(db, records)
    set_last(db, last)


def read_records(db: sqlite3.Connection) -> tuple[list[Record], int]:
    """All of them by number, and the last number ever given. Raises `sqlite3.Error`."""
    there = {name for _, name, *_ in db.execute("PRAGMA table_info(recorded)")}
    if not there:
        return [], 0
    weight, batch = (f"coalesce({name}, {otherwise})" if name in there else otherwise
                     for name, otherwise in LATER.items())  # fmt: skip
    rows = db.execute(
        f"SELECT number, user, item, rating, {weight}, time, {batch} FROM recorded ORDER BY number"
    )
    records = [Record(*row) for row in rows]
    given = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'recorded'").fetchone()
    return records, max([0, *(record.number for record in records[-1:]), *(given or ())])
