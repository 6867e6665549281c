"""The catalog of `records.db`: a row with a checksum for each record, and what they add up to."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import xxhash

PAGE_SIZE = 4096
# user_key: the user's id with its case folded, by which all spellings of one are found.
SCHEMA = (
    "CREATE TABLE recorded (number INTEGER PRIMARY KEY, user TEXT NOT NULL, "
    "user_key TEXT NOT NULL, item TEXT NOT NULL, rating REAL, weight REAL, "
    "time INTEGER NOT NULL, batch INTEGER NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE INDEX recorded_user ON recorded (user_key)",
    "CREATE TABLE totals (n INTEGER NOT NULL, sum INTEGER NOT NULL, last INTEGER NOT NULL, "
    "checksum INTEGER NOT NULL)",
)
RECORD = "number, user, item, rating, weight, time, batch"
# What fits into SQLite's integers and is never below 0.
MODULUS = 2**63


class Recorded(NamedTuple):
    """An interaction by the owner's ids. Without a time it is of the moment it is written."""

    user: str
    item: str
    rating: float | None = None
    weight: float | None = None
    time: int | None = None


class Record(NamedTuple):
    """An interaction as it is kept. No number is given twice; `batch` is that of the first of those
    that were recorded together.
    """

    number: int
    user: str
    item: str
    rating: float | None
    weight: float | None
    time: int
    batch: int

    def cells(self) -> tuple[Any, ...]:
        """The row of the table, in the order of its columns."""
        number, user, *others = self
        cells = (number, user, user.casefold(), *others)
        return (*cells, row_checksum(cells))


class Totals(NamedTuple):
    """How many rows there are, the sum of their checksums, and the last number ever given."""

    n: int = 0
    sum: int = 0
    last: int = 0


def row_checksum(cells: Sequence[Any]) -> int:
    """xxh3 of a row's other columns, as a signed number of 64 bits."""
    found = xxhash.xxh3_64_intdigest(json.dumps(cells).encode())
    return found - 2**64 if found >= MODULUS else found


def is_whole(cells: Sequence[Any]) -> bool:
    """Whether a row, its checksum at the end, is as it was written."""
    *others, checksum = cells
    try:
        return row_checksum(others) == checksum
    except TypeError:  # bytes, which nobody wrote
        return False


def create(db: sqlite3.Connection) -> None:
    """Make the catalog, in an open transaction, where there are none yet."""
    if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        for statement in SCHEMA:
            db.execute(statement)
        row = (*Totals(), row_checksum(Totals()))
        db.execute("INSERT INTO totals VALUES (?, ?, ?, ?)", row)


def insert(db: sqlite3.Connection, records: Iterable[Record]) -> None:
    """Write rows whose numbers are new."""
    rows, before = [record.cells() for record in records], totals(db)
    db.executemany("INSERT INTO recorded VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    last = max([before.last, *(row[0] for row in rows)])
    _write_totals(db, Totals(before.n + len(rows), _added(before.sum, rows), last))


def delete(db: sqlite3.Connection, records: Iterable[Record]) -> None:
    """Remove rows; their numbers are not given again."""
    rows = [record.cells() for record in records]
    db.executemany("DELETE FROM recorded WHERE number = ?", ((row[0],) for row in rows))
    before = totals(db)
    _write_totals(db, Totals(before.n - len(rows), _added(before.sum, rows, -1), before.last))


def set_last(db: sqlite3.Connection, number: int) -> None:
    """Numbers up to this one were given."""
    now = totals(db)
    _write_totals(db, now._replace(last=max(now.last, number)))


def totals(db: sqlite3.Connection) -> Totals:
    """As they were written last."""
    return Totals(*db.execute("SELECT n, sum, last FROM totals").fetchone())


def _added(total: int, rows: Iterable[Sequence[Any]], sign: int = 1) -> int:
    return (total + sign * sum(row[-1] for row in rows)) % MODULUS


def _write_totals(db: sqlite3.Connection, now: Totals) -> None:
    row = (*now, row_checksum(now))
    db.execute("UPDATE totals SET n = ?, sum = ?, last = ?, checksum = ?", row)


def is_empty(db: sqlite3.Connection) -> bool:
    """Whether there are no catalog yet. Raises `sqlite3.Error`, `ValueError` for those of others."""
    found = [sql for (sql,) in db.execute("SELECT sql FROM sqlite_master")]
    if found and sorted(found, key=str) != sorted(SCHEMA):
        raise ValueError("its catalog are not those of records")
    return not found


def require_whole(db: sqlite3.Connection) -> None:
    """Compare every row with its checksum, and all with the totals: the slow way, for a file that
    is not signed. Raises `ValueError` or `sqlite3.Error`.
    """
    if is_empty(db):
        return
    ((said, *_), *_) = db.execute("PRAGMA integrity_check(1)").fetchall()
    if said != "ok":
        raise ValueError(" ".join(said.split()))
    n, total, last = 0, 0, 0
    for row in db.execute("SELECT * FROM recorded ORDER BY number"):
        if not is_whole(row):
            raise ValueError(f"the checksum of record {row[0]} is not the one that was written")
        n, total, last = n + 1, (total + row[-1]) % MODULUS, row[0]
    rows = db.execute("SELECT * FROM totals").fetchall()
    if len(rows) != 1 or not is_whole(rows[0]) or rows[0][:2] != (n, total) or rows[0][2] < last:
        raise ValueError("the records are not those that were counted")
